"""What the extension needs and shows, read from the file and seen when it is loaded."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import abi3info
import pytest

pytestmark = pytest.mark.once

LOAD = """
import importlib.machinery, importlib.util, sys
def load(path):
    loader = importlib.machinery.ExtensionFileLoader("pygsampler._engine._bridge", path)
    spec = importlib.util.spec_from_loader(loader.name, loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module
"""


def read(tool: str, *arguments: str) -> str:
    return subprocess.run([tool, *arguments], capture_output=True, text=True, check=True).stdout


def python(code: str, *arguments: str) -> str:
    """What a fresh interpreter prints, with `load(path)` at hand."""
    command = [sys.executable, "-c", LOAD + code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_needs_the_c_library_alone(extension: Path) -> None:
    dynamic = read("readelf", "-d", "-W", str(extension))
    needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic))
    # Before glibc 2.34 the C library came in several files.
    assert "libc.so.6" in needed
    assert needed <= {"libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0"}


def test_has_no_search_path(extension: Path) -> None:
    dynamic = read("readelf", "-d", "-W", str(extension))
    assert "(NEEDED)" in dynamic
    assert "RPATH" not in dynamic
    assert "RUNPATH" not in dynamic


def test_exports_its_entry_alone(extension: Path) -> None:
    defined = read("nm", "-D", "--defined-only", str(extension))
    assert [line.split()[-1] for line in defined.splitlines()] == ["PyInit__bridge"]


def test_asks_others_for_no_symbol_of_the_driver(extension: Path) -> None:
    undefined = read("nm", "-D", "--undefined-only", str(extension)).split()
    assert "PyErr_SetString" in undefined
    assert [name for name in undefined if re.match(r"(cu|nv)[A-Z]", name)] == []


def test_asks_python_for_the_stable_abi_of_3_10_alone(extension: Path) -> None:
    """CPython keeps those functions in every later version."""
    undefined = read("nm", "-D", "--undefined-only", str(extension)).split()
    asked = [abi3info.models.Symbol(name) for name in undefined if re.match(r"_?Py", name)]
    known = {**abi3info.FUNCTIONS, **abi3info.DATAS}
    oldest = abi3info.models.PyVersion(3, 10)
    assert len(asked) > 20
    assert [at.name for at in asked if at not in known or known[at].added > oldest] == []


def test_is_stripped_and_names_no_path_of_the_build(extension: Path, root: Path) -> None:
    sections = read("readelf", "-S", "-W", str(extension))
    assert ".dynsym" in sections
    assert ".symtab" not in sections
    assert ".debug" not in sections
    content = extension.read_bytes()
    assert str(root).encode() not in content
    assert b"pip-build-env" not in content


def test_functions_are_those_of_the_stub(extension: Path, root: Path) -> None:
    """gopy leaves out, without a word, what it cannot wrap."""
    stub = (root / "python" / "pygsampler" / "_engine" / "_bridge.pyi").read_text()
    declared = set(re.findall(r"(?m)^def (\w+)", stub))
    shown = python("print(*dir(load(sys.argv[1])))", str(extension)).split()
    assert {name for name in shown if not name.startswith("__")} == declared


def test_leaves_floating_point_as_it_was(extension: Path) -> None:
    """An extension linked with -Ofast makes the whole process flush denormal numbers to zero."""
    code = """
load(sys.argv[1]).bridge_Threads()
tiny = float(sys.argv[2])
print(tiny / 2 > 0, tiny / 2 * 2 == tiny)
"""
    assert python(code, str(extension), "2.2250738585072014e-308").split() == ["True", "True"]


@pytest.mark.parametrize("copies", [1, 2])
def test_loads_from_memory_and_more_than_once(extension: Path, copies: int) -> None:
    code = """
import os
for _ in range(int(sys.argv[2])):
    memory = os.memfd_create("bridge")
    with open(sys.argv[1], "rb") as file, open(memory, "wb", closefd=False) as copy:
        copy.write(file.read())
    print(load(f"/proc/self/fd/{memory}").bridge_Threads())
"""
    counts = python(code, str(extension), str(copies)).split()
    assert len(counts) == copies
    assert all(int(count) >= 1 for count in counts)
