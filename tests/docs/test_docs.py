"""The documents: their Python runs, their links lead somewhere, their commands exist.

Every ```python block of a page runs, in order, in one process for the page, as a reader who pastes
them would have it. Fragments that cannot run alone are fenced as ```python notest, and those that
need a newer torch than the oldest that is supported as ```python torch-2.4.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from partners import partner

from tests.support.interpreter import imports_of, prepared

ROOT = Path(__file__).parents[2]
REFERENCE = sorted(ROOT.glob("docs/reference/*.md"))
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
PARTNERS = (
    "torch",
    "dgl",
    "torch_geometric",
    "pyarrow",
    "scipy",
    "networkx",
    "pandas",
    "torch_frame",
)
FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
NEWER_TORCH = re.compile(r"python torch-(?P<major>\d+)\.(?P<minor>\d+)")
LINK = re.compile(r"!?\[[^\]]*\]\((?P<target>[^)\s]+)\)")
FENCES = {"", "python", "python notest", "sh", "text", "go"}
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


def runs_here(info: str) -> bool:
    """Whether the installed torch is new enough for a fragment of Python."""
    needed = NEWER_TORCH.fullmatch(info)
    if needed is None:
        return info == "python"
    major, minor, *_ = partner("torch").__version__.split(".")
    return (int(major), int(minor)) >= (int(needed["major"]), int(needed["minor"]))


WITH_PYTHON = [page for page in PAGES if any(info == "python" for info, _, _ in blocks(page))]


def test_there_is_something_to_test() -> None:
    assert {"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/developer/overview.md"} <= {
        name(page) for page in PAGES
    }
    assert {"README.md", "docs/concepts/randomness.md", "docs/concepts/memory.md"} <= {
        name(page) for page in WITH_PYTHON
    }


# Pages where old versions of partners differ: first pages, references of DGL and PyG, layers.
WITH_ALL_PARTNERS = ("get-started", "dgl.md", "features.md", "layers.md", "pyg.md")


@pytest.mark.parametrize(
    "page",
    [
        page
        if page.name in WITH_ALL_PARTNERS or page.parent.name in WITH_ALL_PARTNERS
        else pytest.param(page, marks=pytest.mark.once)
        for page in WITH_PYTHON
    ],
    ids=name,
)
def test_python_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty lines stand in for the prose, so that a traceback names the line of the page."""
    script = tmp_path / f"{page.stem}_page.py"
    lines: list[str] = []
    for info, first, code in blocks(page):
        if runs_here(info):
            lines += [""] * (first - 1 - len(lines))
            lines += code.splitlines()
    text = "\n".join(lines) + "\n"
    for package in PARTNERS:
        if re.search(rf"(?m)^(?:import|from) {package}\b", text):
            partner(package)
    script.write_text(text)
    # Pages write files.
    monkeypatch.chdir(tmp_path)
    done = prepared(*imports_of(text)).run_file(script, scratch=tmp_path, timeout=600)
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    # What a destructor raises when the interpreter ends changes no exit status.
    assert "Exception ignored" not in output


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_fences_say_what_they_hold(page: Path) -> None:
    infos = [info for info, _, _ in blocks(page)]
    assert {info for info in infos if not NEWER_TORCH.fullmatch(info)} <= FENCES
    assert infos.count("python notest") <= MOST_FRAGMENTS


def shown(page: Path) -> list[str]:
    """The objects that mkdocstrings shows on a page of the reference."""
    return re.findall(r"(?m)^::: (\S+)$", page.read_text())


# Of torch, when PyG is imported.
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:FutureWarning")
@pytest.mark.research
def test_the_reference_has_every_public_name() -> None:
    """And nothing that is not there. mkdocs itself checks the docstrings: `make docs`."""
    import pygsampler

    listed = {entry for page in REFERENCE for entry in shown(page)}
    modules = {"cuda", "datasets", "dgl", "distributed", "engine", "errors", "flight", "pyg"}
    modules |= {"evaluate", "research", "torch", "walks"}
    public = {f"pygsampler.{one}" for one in pygsampler.__all__ if one not in modules}
    for module in sorted(modules):
        source = ROOT / "python" / "pygsampler" / f"{module}.py"
        if not source.exists():
            source = source.with_suffix("") / "__init__.py"
        # Read, not imported: no environment has the partners of all.
        found = re.search(r"(?ms)^__all__ = \[(.*?)\]", source.read_text())
        assert found is not None, module
        own = set(re.findall(r'"(\w+)"', found[1]))
        if module in ("errors", "walks"):
            # The root has some of their names, which have their place there.
            own -= set(pygsampler.__all__)
        public |= {f"pygsampler.{module}.{one}" for one in own}
    missing = {one for one in public if one not in listed and one.rpartition(".")[0] not in listed}
    assert not missing
    for entry in sorted(listed - public):
        module, _, member = entry.rpartition(".")
        source = ROOT / "python" / Path(*module.split(".")).with_suffix(".py")
        # There, or brought there from where it is written.
        written = rf"(?m)^class {member}\b|^from .* import (?:.*\b)?{member}\b"
        defined = source.exists() and re.search(written, source.read_text())
        assert entry == "pygsampler.cuda" or defined or hasattr(import_module(module), member), (
            entry
        )


def test_contributing_has_every_layer_and_package() -> None:
    """The layers in the order of the import contract, and the folders of the Go core."""
    page = (ROOT / "CONTRIBUTING.md").read_text()
    drawn = next(text for info, _, text in blocks(ROOT / "CONTRIBUTING.md") if info == "text")
    shown = [name for line in drawn.splitlines() for name in line[:38].split()]
    layers = re.search(r"(?ms)^layers = \[(.*?)^\]", (ROOT / "pyproject.toml").read_text())
    assert layers is not None
    assert shown == re.findall(r"\w+", re.sub("#.*", "", layers[1]))
    packages = re.findall(r"(?m)^\| `pygsampler/internal/(.*?) \|", page)
    named = {name for row in packages for name in re.findall(r"\w+", row)}
    folders = {path.name for path in (ROOT / "pygsampler" / "internal").iterdir() if path.is_dir()}
    assert folders <= named


def test_the_architecture_is_read_in_three_minutes() -> None:
    """tests/style bounds the words of all other pages."""
    assert len((ROOT / "docs" / "developer" / "overview.md").read_text().split()) <= 600


def test_every_page_is_in_the_navigation() -> None:
    nav = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    assert sorted(re.findall(r"(\S+\.md)$", nav, re.MULTILINE)) == sorted(
        ["CHANGELOG.md", "CONTRIBUTING.md"]
        + [
            str(page.relative_to(ROOT / "docs"))
            for page in PAGES
            if page.is_relative_to(ROOT / "docs")
        ]
    )


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_relative_links_lead_somewhere(page: Path) -> None:
    for found in LINK.finditer(prose(page)):
        target, _, anchor = found["target"].partition("#")
        if target.startswith(("http://", "https://")):
            continue
        other = page if not target else (page.parent / target)
        assert other.exists(), f"{name(page)}: {target}"
        if anchor and not any(anchor.startswith(entry) for entry in shown(other)):
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
        [sys.executable, str(script), "--check"], capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_figures_have_a_place_on_their_pages() -> None:
    places = {
        place
        for page in PAGES
        for place in re.findall(r"<!-- figures (\w+) -->\n(?:.*\n)*?<!-- end -->", page.read_text())
    }
    of_a_gpu = {place for place in places if place.startswith("gpu_")}
    assert places - of_a_gpu == {
        *("ratios", "all_rows", "cache_hits", "growth", "threads", "hub"),
        *("pyg_layers", "pyg_share", "pipeline_cache", "pipeline_shares"),
        *("locality", "locality_graphs", "locality_training", "locality_sweep"),
        *("locality_subgraphs", "locality_cache"),
        *("convergence", "convergence_of_gpu", "gsampler_training", "gsampler_training_of_gpu"),
        *("nextdoor_training", "nextdoor_training_of_gpu"),
        *("parts", "parts_model", "copies", "small_calls", "contexts", "overview"),
    }
    # Those of a GPU where there are any: what is kept is shown, in one table or several.
    results = ROOT / "benchmarks" / "results" / "gpu"
    tables = "".join(file.read_text() for file in (ROOT / "tools/figure_tables").glob("*.py"))
    for file in results.glob("*.json"):
        found = re.findall(rf'"gpu/{file.stem}\.json"(?:.*\n)+?def (\w+)', tables)
        assert of_a_gpu.intersection(found), file.stem
