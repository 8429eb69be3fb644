"""The build for another architecture: what it asks for, and that no product is fused with a sum."""

from __future__ import annotations

import json
import platform
import shutil
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.packaging.scripts import one_line, script

pytestmark = pytest.mark.once

# The architecture that is not this machine's; Go's and Debian's names of it.
OTHER, SHORT = ("x86_64", "amd64") if platform.machine() == "aarch64" else ("aarch64", "arm64")
GCC = f"{OTHER}-linux-gnu-gcc"
HOOK = "import setup; print(*setup.get_requires_for_build_wheel())"


def ask(
    root: Path, path: Path, code: str = HOOK, target: str = OTHER, **env: str
) -> subprocess.CompletedProcess[str]:
    """Runs a piece of setup.py for the target, with `path` as the whole PATH."""
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=root,
        env={"PATH": str(path), "HOME": str(path), "PYGSAMPLER_TARGET": target, **env},
        capture_output=True,
        text=True,
        timeout=240,
    )


def test_missing_cross_compiler_names_its_package(root: Path, tmp_path: Path) -> None:
    line = one_line(ask(root, tmp_path))
    package = f"gcc-{OTHER.replace('_', '-')}-linux-gnu"
    assert line.endswith(
        f"no C compiler ({GCC}) on PATH; install it with: apt-get install {package}"
    )


def test_missing_headers_name_the_package_of_the_target(root: Path, tmp_path: Path) -> None:
    script(tmp_path / GCC, "exit 1")
    line = one_line(ask(root, tmp_path))
    assert line.endswith(f"install it with: apt-get install libc6-dev-{SHORT}-cross")


def test_compiler_for_another_architecture_is_refused(root: Path, tmp_path: Path) -> None:
    # A preprocessor that does not know the target's macro leaves it as it is.
    script(tmp_path / "other-cc", f"echo machine __{OTHER}__")
    line = one_line(ask(root, tmp_path, CC="other-cc -O2"))
    assert f"CC: expected a compiler for {OTHER}, got other-cc -O2," in line
    assert line.endswith(f"unset CC or set CC={GCC}")


def test_unknown_target_is_refused(root: Path, tmp_path: Path) -> None:
    line = one_line(ask(root, tmp_path, target="sparc64"))
    assert line.endswith("PYGSAMPLER_TARGET: expected aarch64 or x86_64, got sparc64")


ENVIRONMENT = """
import json, pathlib, setup, sysconfig
setup.native = lambda: pathlib.Path("/native")
setup.go_on_path = lambda: pathlib.Path("/go")
print(json.dumps(sysconfig.get_platform()), json.dumps(setup.go_env()), sep="\\n")
"""


def environment(root: Path, path: Path, target: str) -> tuple[str, dict[str, str]]:
    done = ask(root, path, ENVIRONMENT, target)
    assert done.returncode == 0, done.stderr
    platform_name, env = map(json.loads, done.stdout.splitlines())
    return platform_name, env


@pytest.mark.parametrize("target", [OTHER, platform.machine()])
def test_environment_and_tag_follow_the_target(root: Path, tmp_path: Path, target: str) -> None:
    script(tmp_path / GCC, "echo machine 1")
    script(tmp_path / "ar", "exit 0")
    name, env = environment(root, tmp_path, target)
    assert name == f"linux-{target}"
    crosses = target == OTHER
    assert env.get("GOARCH") == (SHORT if crosses else None)
    assert env.get("CC") == (GCC if crosses else None)
    # Compilers for ARM alone may fuse.
    assert ("fmahash=qn" in env["GOFLAGS"]) == (target == "aarch64")
    assert ("-ffp-contract=off" in env["CGO_CFLAGS"]) == (target == "aarch64")


def test_headers_of_this_machine_serve_the_target(root: Path, tmp_path: Path) -> None:
    """The copy has no file that looks for a folder of this machine's architecture."""
    include = tmp_path / "include" / "python3"
    include.mkdir(parents=True)
    (include / "Python.h").write_text('#include "pyconfig.h"\n')
    (include / "pyconfig.h").write_text("#include <here-linux-gnu/python3/pyconfig.h>\n")
    own = tmp_path / "include" / "here-linux-gnu" / "python3"
    own.mkdir(parents=True)
    (own / "pyconfig.h").write_text("#define SIZEOF_LONG 8\n")
    code = (
        "import pathlib, setup; "
        "setup.sysconfig.get_config_var = lambda name: {'MULTIARCH': 'here-linux-gnu'}[name]; "
        f"folder = pathlib.Path({str(tmp_path)!r}); "
        "setup.copy_headers(folder / 'include' / 'python3', folder / 'to')"
    )
    done = ask(root, tmp_path, code)
    assert done.returncode == 0, done.stderr
    assert sorted(file.name for file in (tmp_path / "to").iterdir()) == ["Python.h", "pyconfig.h"]
    assert (tmp_path / "to" / "pyconfig.h").read_text() == "#define SIZEOF_LONG 8\n"


# ---- machine code ----------------------------------------------------------------------------


def text_of(elf: bytes) -> bytes:
    """The section of code of an ELF file of 64 bits."""
    (table,) = struct.unpack_from("<Q", elf, 40)
    size, count, names = struct.unpack_from("<3H", elf, 58)
    headers = [struct.unpack_from("<2I4Q", elf, table + size * i) for i in range(count)]
    for name, _, _, _, offset, length in headers:
        if elf[headers[names][4] + name :].startswith(b".text\0"):
            return elf[offset : offset + length]
    raise AssertionError("no section of code")


def fused(code: bytes) -> np.ndarray:
    """Places of ARM's instructions that add a product without rounding it first."""
    words = np.frombuffer(code[: len(code) // 4 * 4], "<u4")
    scalar = words >> 24 == 0x1F  # fmadd, fmsub, fnmadd, fnmsub
    vector = words & 0xBF20FC00 == 0x0E20CC00  # fmla, fmls
    element = words & 0xAF80B400 == 0x0F801000  # by one element
    return np.flatnonzero(scalar | vector | element) * 4


def assembled(folder: Path, lines: str) -> bytes:
    (folder / "code.s").write_text(lines)
    command = [GCC, "-c", "-o", str(folder / "code.o"), str(folder / "code.s")]
    subprocess.run(command, check=True)
    return text_of((folder / "code.o").read_bytes())


@pytest.mark.skipif(
    OTHER != "aarch64" or shutil.which(GCC) is None,
    reason="needs an assembler for ARM (apt-get install gcc-aarch64-linux-gnu)",
)
def test_every_kind_of_fused_instruction_is_found(tmp_path: Path) -> None:
    kinds = (
        "fmadd d0, d1, d2, d3", "fmsub d0, d1, d2, d3", "fnmadd s0, s1, s2, s3",
        "fnmsub s0, s1, s2, s3", "fmla v0.2d, v1.2d, v2.2d", "fmls v0.4s, v1.4s, v2.4s",
        "fmla v0.2d, v1.2d, v2.d[1]", "fmls v0.4s, v1.4s, v2.s[3]", "fmla d0, d1, v2.d[0]",
    )  # fmt: skip
    others = (
        "fmul d0, d1, d2", "fadd d0, d1, d2", "fmul v0.2d, v1.2d, v2.2d", "madd x0, x1, x2, x3",
        "fadd v0.4s, v1.4s, v2.4s", "fmul v0.2d, v1.2d, v2.d[1]", "mla v0.4s, v1.4s, v2.4s",
        "fsub v0.2d, v1.2d, v2.2d", "prfm pldl2keep, [x3]",
    )  # fmt: skip
    pairs = zip(kinds, others, strict=True)
    code = assembled(tmp_path, "".join(f"{kind}\n{other}\n" for kind, other in pairs))
    assert list(fused(code)) == [8 * i for i in range(len(kinds))]


def test_extension_for_arm_fuses_no_product_with_a_sum(root: Path) -> None:
    """Else the last bits of weights, times and values differ from those of x86-64."""
    wheels = list((root / "wheelhouse").glob("pygsampler-*_aarch64.whl"))
    if not wheels:
        pytest.skip("needs the wheel for ARM in wheelhouse/ (make wheels ARCH=aarch64)")
    with zipfile.ZipFile(wheels[0]) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".so"))
        places = fused(text_of(archive.read(name)))
    # Go's exponential function, which is written in assembly, has some; no sampler calls it.
    assert len(places) == 0 or places[-1] - places[0] < 1024, f"{len(places)} fused instructions"
