"""Tests that need ``pygsampler.research``, and the package without it, which passes all others.

    python -m tests.support.research FOLDER    # for PYTHONPATH: the installed package without it

Tests that need it have the marker ``research``.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

HAS_RESEARCH = find_spec("pygsampler.research") is not None


def of_research(*values: Any) -> list[Any]:
    """Returns parameters, or tuples of some, that are left out where there is no research."""
    return [
        pytest.param(*(value if isinstance(value, tuple) else [value]), marks=pytest.mark.research)
        for value in values
    ]


def link_without_research(folder: Path) -> None:
    """Puts the package, without the folder of research and its import, into a folder."""
    import pygsampler

    source, target = Path(pygsampler.__file__).parent, folder / "pygsampler"
    target.mkdir(parents=True)
    for entry in source.iterdir():
        if entry.name not in ("research", "__init__.py", "__pycache__"):
            (target / entry.name).symlink_to(entry)
    text = (source / "__init__.py").read_text()
    for line in ("from pygsampler import research\n", '    "research",\n'):
        assert text.count(line) == 1
        text = text.replace(line, "")
    (target / "__init__.py").write_text(text)


if __name__ == "__main__":
    link_without_research(Path(sys.argv[1]).resolve())
