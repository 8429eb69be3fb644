"""The documents: their Python runs, their links lead somewhere, their commands exist.

Every ```python block of a page runs, in order, in one interpreter for the page, as a reader who
pastes them would have it. Fragments that cannot run alone are fenced as ```python notest.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\((?P<target>[^)\s]+)\)")
# A page should be its own test: most of what it shows runs.
MOST_FRAGMENTS = 2


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> Iterator[tuple[str, int, str]]:
    """(info string, number of the first line of code, code) of each fenced block."""
    text = page.read_text()
    for found in FENCE.finditer(text):
        yield found["info"].strip(), text.count("\n", 0, found.start("code")) + 1, found["code"]


def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text())


def anchors(page: Path) -> set[str]:
    """The names by which GitHub finds a page's headings."""
    titles = re.findall(r"(?m)^#+ (.*)$", prose(page))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


WITH_PYTHON = [page for page in PAGES if any(info == "python" for info, _, _ in blocks(page))]


def test_there_is_something_to_test() -> None:
    assert {"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/architecture.md"} <= {
        name(page) for page in PAGES
    }
    assert {"README.md", "docs/randomness.md", "docs/memory.md"} <= {
        name(page) for page in WITH_PYTHON
    }


@pytest.mark.parametrize("page", WITH_PYTHON, ids=name)
def test_python_runs(page: Path, tmp_path: Path) -> None:
    """Empty lines stand in for the prose, so that a traceback names the line of the page."""
    script = tmp_path / f"{page.stem}.py"
    lines: list[str] = []
    for info, first, code in blocks(page):
        if info == "python":
            lines += [""] * (first - 1 - len(lines))
            lines += code.splitlines()
    script.write_text("\n".join(lines) + "\n")
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # What a destructor raises when the interpreter ends changes no exit status.
    assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_fences_say_what_they_hold(page: Path) -> None:
    infos = [info for info, _, _ in blocks(page)]
    assert set(infos) <= {"", "python", "python notest", "sh", "text", "go"}
    assert infos.count("python notest") <= MOST_FRAGMENTS


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_relative_links_lead_somewhere(page: Path) -> None:
    for found in LINK.finditer(prose(page)):
        target, _, anchor = found["target"].partition("#")
        if target.startswith(("http://", "https://")):
            continue
        other = page if not target else (page.parent / target)
        assert other.exists(), f"{name(page)}: {target}"
        if anchor:
            assert anchor in anchors(other), f"{name(page)}: {found['target']}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_are_targets_of_the_makefile(page: Path) -> None:
    targets = set(re.findall(r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text()))
    text = page.read_text()
    named = set(re.findall(r"`make ([a-z-]+)", text))
    for info, _, code in blocks(page):
        if info == "sh":
            named |= set(re.findall(r"(?m)^make ([a-z-]+)", code))
    assert named <= targets


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_files_that_are_named_exist(page: Path) -> None:
    """`path/to/file.go` and the like in prose are files of the repository."""
    names = re.findall(r"`([\w./-]+/[\w.-]+\.(?:go|py|c|h|md|json|ipynb|txt|toml))`", prose(page))
    for path in names:
        assert (ROOT / path).exists(), f"{name(page)}: {path}"


def test_the_changelog_knows_the_version() -> None:
    version = re.search(r'(?m)^version = "(.+)"$', (ROOT / "pyproject.toml").read_text())
    assert version is not None
    assert f"## {version[1]}" in (ROOT / "CHANGELOG.md").read_text()


def test_apt_packages_are_those_that_the_build_asks_for() -> None:
    """setup.py names what is missing; the one line of the README installs it."""
    line = re.search(r"(?m)^sudo apt-get install (.+)$", (ROOT / "README.md").read_text())
    assert line is not None
    assert set(line[1].split()) == {"python3-venv", "python3-dev", "gcc", "make", "git"}


def test_figures_are_the_kept_ones() -> None:
    """`python tools/figures.py` writes them."""
    script = ROOT / "tools" / "figures.py"
    done = subprocess.run(
        [sys.executable, str(script), "--check"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_figures_have_a_place_on_their_pages() -> None:
    places = {
        place
        for page in PAGES
        for place in re.findall(r"<!-- figures (\w+) -->\n(?:.*\n)*?<!-- end -->", page.read_text())
    }
    of_a_gpu = {place for place in places if place.startswith("gpu_")}
    assert places - of_a_gpu == {"ratios", "all_rows", "growth", "threads", "hub"}
    # Those of a GPU where there are any: what is kept is shown.
    results = ROOT / "benchmarks" / "results" / "gpu"
    assert {f"gpu_{file.stem}" for file in results.glob("*.json")} <= of_a_gpu
