"""What the wheel holds and says of itself."""

from __future__ import annotations

import importlib.metadata
import platform
import re
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def test_holds_the_extension_the_package_and_nothing_else(names: set[str], root: Path) -> None:
    source = root / "python"
    package = {
        str(file.relative_to(source))
        for pattern in ("*.py", "*.pyi", "py.typed", "*.npz")
        for file in (source / "pygsampler").rglob(pattern)
    }
    assert {
        "pygsampler/__init__.py",
        "pygsampler/py.typed",
        "pygsampler/_engine/_bridge.pyi",
    } <= package
    extension = "pygsampler/_engine/_bridge.abi3.so"
    # auditwheel packs folders, too.
    shipped = {name for name in names if ".dist-info/" not in name and not name.endswith("/")}
    assert shipped == package | {extension}


def test_carries_the_licence(wheel: Path, names: set[str], root: Path) -> None:
    (name,) = (name for name in names if name.endswith("/LICENSE"))
    with zipfile.ZipFile(wheel) as archive:
        assert archive.read(name) == (root / "LICENSE").read_bytes()
    assert "Version 3, 29 June 2007" in (root / "LICENSE").read_text()


def test_is_small(wheel: Path) -> None:
    """Some 9 MB of it are machine code of kernels, for seven architectures and as PTX."""
    assert wheel.stat().st_size < 20_000_000


def test_tag_names_every_python_and_this_processor(wheel: Path) -> None:
    platforms = rf"(many)?linux\w*_{platform.machine()}"
    assert re.search(rf"-cp310-abi3-{platforms}\.whl$", wheel.name)


def test_version_stands_in_one_place(metadata: Message, root: Path) -> None:
    (version,) = re.findall(r'(?m)^version = "(.+)"$', (root / "pyproject.toml").read_text())
    assert metadata["Version"] == version == importlib.metadata.version("pygsampler")
    again = [
        file
        for file in [root / "setup.py", *(root / "python").rglob("*.py")]
        if re.search(rf"""["']{re.escape(version)}["']""", file.read_text())
    ]
    assert again == []


def test_metadata(metadata: Message) -> None:
    assert metadata["Name"] == "pygsampler"
    assert metadata["License"] == "GPL-3.0-or-later"
    assert (
        "License :: OSI Approved :: GNU General Public License v3 or later (GPLv3+)"
        in metadata.get_all("Classifier", [])
    )
    assert metadata["Requires-Python"] == ">=3.10"
    extras = set(metadata.get_all("Provides-Extra", []))
    assert extras == {
        *("cuda", "torch", "dgl", "pyg", "arrow", "flight", "cli", "metis"),
        *("quickstart", "dev"),
    }
    needed: dict[str, set[str]] = {}
    for requirement in metadata.get_all("Requires-Dist", []):
        package, _, extra = requirement.partition(";")
        needed.setdefault(extra.strip(), set()).add(package.strip())
    assert {re.split(r"[<>=]", one)[0] for one in needed[""]} == {"tqdm"}
    cli = needed['extra == "cli"']
    assert {re.split(r"[<>=]", one)[0] for one in cli} == {"click", "rich"}
    # The quickstart is a command.
    assert cli < needed['extra == "quickstart"']


def test_command_is_installed() -> None:
    (command,) = importlib.metadata.entry_points(group="console_scripts", name="pygsampler")
    assert command.value == "pygsampler.__main__:main"
    assert callable(command.load())
