"""The same wheel on every Python: installed, sampled and trained with, in fresh environments.

``PYGSAMPLER_PYTHONS=path:path`` names interpreters beside those that are found; tools/pythons.py
makes some. Packages that an interpreter has already, such as torch, are used.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.packaging.scripts import tool

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]
NAMED = re.findall(r"[^:\s]+", os.environ.get("PYGSAMPLER_PYTHONS", ""))
# CPython with a GIL, and what makes environments.
PROBE = """
import pip, platform, sys, sysconfig, venv
gil = "-" if sysconfig.get_config_var("Py_GIL_DISABLED") else "gil"
print(platform.python_implementation(), "%d.%d" % sys.version_info[:2], gil, sys.executable)
"""


def supported() -> list[str]:
    text = (ROOT / "pyproject.toml").read_text()
    return re.findall(r'"Programming Language :: Python :: (3\.\d+)"', text)


def candidates(version: str) -> Iterator[Path]:
    """Yields where an interpreter may be: as named, on PATH, in pyenv's and uv's folders."""
    yield from map(Path, NAMED)
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        for file in (Path(folder) / f"python{version}", Path(folder) / "python3"):
            if folder and file.is_file():
                yield file
    home = Path.home()
    pyenv = Path(os.environ.get("PYENV_ROOT", home / ".pyenv")) / "versions"
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR", home / ".local" / "share" / "uv" / "python"))
    for folder, pattern in ((pyenv, f"{version}.*"), (uv, f"cpython-{version}.*")):
        yield from sorted(folder.glob(f"{pattern}/bin/python{version}"), reverse=True)


def probe(file: Path) -> list[str]:
    """Implementation, version, GIL and path of an interpreter; nothing if it does not run."""
    try:
        done = subprocess.run(
            [file, "-I", "-c", PROBE], cwd="/", capture_output=True, text=True, timeout=240
        )
    except OSError:
        return []
    return done.stdout.strip().split(maxsplit=3) if done.returncode == 0 else []


def interpreter(version: str) -> str | None:
    for file in candidates(version):
        if probe(file)[:3] == ["CPython", version, "gil"]:
            return str(file)
    return None


@pytest.fixture(scope="module")
def smoke() -> ModuleType:
    return tool("smoke")


@pytest.fixture(scope="module")
def pythons() -> ModuleType:
    return tool("pythons")


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "sources.list.d/debian.sources",
            "# one\nTypes: deb\nURIs: http://a.example/debian/\nSuites: x\nComponents: main\n"
            "Signed-By: /k.gpg\n",
            ("http://a.example/debian/", "/k.gpg"),
        ),
        (
            "sources.list",
            "deb http://b.example/other x main\n"
            "deb [arch=amd64 signed-by=/b.gpg] http://a.example/debian x contrib main\n",
            ("http://a.example/debian", "/b.gpg"),
        ),
        ("sources.list", "deb http://a.example/debian x main", ("http://a.example/debian", "")),
    ],
)
def test_archive_is_the_one_of_the_machine(
    pythons: ModuleType, tmp_path: Path, name: str, text: str, expected: tuple[str, str]
) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    assert pythons.archive(tmp_path) == expected
    file.write_text(text.replace("main", "contrib"))
    with pytest.raises(SystemExit, match=r"^pythons: expected a Debian archive in the sources of"):
        pythons.archive(tmp_path)


def test_archive_that_cannot_be_read_stops_the_update(
    pythons: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("apt-get") is None:
        pytest.skip("needs apt-get, on a machine or in a container with Debian")
    # A port that refuses, at once: apt alone only warns of connections that fail.
    monkeypatch.setattr(pythons, "archive", lambda: ("http://127.0.0.1:9/debian", ""))
    (tmp_path / "apt.conf").write_text('Acquire::Retries "0";\n')
    monkeypatch.setenv("APT_CONFIG", str(tmp_path / "apt.conf"))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SystemExit, match=r"\npythons: apt-get .* update failed, see above$"):
        pythons.unpack(tmp_path / "3.14" / "root", "sid", "x86_64", "python3.14")


def test_unknown_names_are_refused() -> None:
    command = [sys.executable, ROOT / "tools" / "pythons.py", "riscv64"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 1
    assert done.stderr == "pythons: expected versions such as 3.14, or aarch64; got riscv64\n"


def test_interpreters_that_are_named_run() -> None:
    for name in NAMED:
        found = probe(Path(name))
        assert found[:1] + found[2:3] == ["CPython", "gil"], f"PYGSAMPLER_PYTHONS: {name}: {found}"
        assert found[1] in supported()


@pytest.mark.parametrize(
    "version",
    [
        supported()[0],
        "newest",
        *(pytest.param(version, marks=pytest.mark.slow) for version in supported()[1:]),
    ],
)
def test_wheel_samples_and_trains(
    wheel: Path, smoke: ModuleType, tmp_path: Path, version: str
) -> None:
    if version == "newest":
        version = next(filter(interpreter, reversed(supported())), supported()[-1])
    python = interpreter(version)
    if python is None:
        pytest.skip(
            f"needs a CPython {version}: pyenv install {version}, uv python install {version}, or "
            f"python tools/pythons.py {version} and PYGSAMPLER_PYTHONS=<what it prints>"
        )
    subprocess.run([python, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    executable = tmp_path / "env" / "bin" / "python"
    # Debian's pip is in another folder than what pip installs.
    code = "import pathlib, pip, site; print(pathlib.Path(pip.__file__).parents[1])"
    code += "; print(*site.getsitepackages(), sep='\\n')"
    theirs = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout
    (ours,) = (tmp_path / "env" / "lib").glob("python*/site-packages")
    (ours / "theirs.pth").write_text(theirs)
    pip = [executable, "-m", "pip", "install", "-q", "--only-binary", ":all:"]
    pip += ["--disable-pip-version-check"]
    subprocess.run([*pip, f"{wheel}[cli]", "numpy"], check=True, cwd=tmp_path)
    # No Go and no compiler.
    env = {"PATH": str(executable.parent), "HOME": str(tmp_path)}
    command = [executable, "-W", "error", ROOT / "tools" / "smoke.py"]
    done = subprocess.run(
        command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["python"].startswith(f"{version}.")
    assert report["sample"] == smoke.sample()
    sys.stdout.write(f"{report}\n")
