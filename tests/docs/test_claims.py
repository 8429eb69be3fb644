"""Claims that readers act on: what to install, and figures inside sentences."""

from __future__ import annotations

import fnmatch
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

try:
    import tomllib
except ImportError:
    from pip._vendor import tomli as tomllib

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
# Packages that messages and pages name beside those of the extras.
OTHERS = {
    "kumo-engine",
    *("networkx", "nvidia-cuda-runtime-cu12", "ogb", "pandas", "pytorch-frame", "ray", "relbench"),
    *("scipy", "torch-cluster", "torch-sparse"),
}
# The whole rest of the command: words, versions in quotes, options, paths.
INSTALL = re.compile(r"pip install((?:\s+(?:'[^'\n]+'|\"[^\"\n]+\"|[-.\w/*<>\[\]=,%{}]+))+)")


def tracked(*patterns: str) -> list[Path]:
    """The files of the repository that match; the test is only run in a checkout."""
    names = subprocess.run(
        ["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    return [ROOT / name for name in names]


def installs() -> Iterator[tuple[str, str]]:
    """(place, what follows "pip install") of each line that tells a reader what to install."""
    # CHANGELOG tells what was, so its lines stay as they are.
    for path in tracked(
        "*.md", ":!CHANGELOG.md", "python/*.py", "examples/*", "*.go", "setup.py", "kernels/*.py"
    ):
        text = path.read_text()
        if path.suffix == ".py":
            # A message may be several literals, one below the other.
            text = re.sub(r'"\s*\n\s*f?"', "", text)
        for found in INSTALL.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            yield f"{path.relative_to(ROOT)}:{line}", found[1]


def named(arguments: str) -> list[str]:
    """The requirements among the arguments, up to the word that ends the sentence's command."""
    words = []
    for word in re.findall(r"'[^']+'|\"[^\"]+\"|\S+", arguments):
        if word.startswith("-"):
            continue
        words.append(word if word == "." else word.strip("'\"`").rstrip(".,;"))
        if word == "." or word.endswith((",", ".", ";")):
            break
    return words


def bare(requirement: str) -> str:
    """The name of the package: a requirement without extras and versions."""
    return re.split(r"[\[<>=~!]", requirement)[0].lower()


KNOWN = {bare(one) for extra in EXTRAS.values() for one in extra} | OTHERS
KNOWN |= {bare(one) for one in PROJECT["dependencies"]}


def test_installs_are_found() -> None:
    places = [place for place, _ in installs()]
    assert any(place.startswith("README.md") for place in places)
    assert any(place.startswith("python/pygsampler/torch.py") for place in places)


def test_no_index_is_asked_for_pygsampler() -> None:
    """No index has the package: a file, a folder of the clone, or other packages are named."""
    wrong = [
        (place, words)
        for place, words in installs()
        for one in named(words)
        if bare(one) == "pygsampler" and not one.endswith(".whl")
    ]
    assert wrong == []


def test_extras_that_are_named_exist() -> None:
    asked = {
        extra
        for _, words in installs()
        for one in named(words)
        for extras in re.findall(r"(?<=\[)[a-z,]+(?=\])", one)
        for extra in extras.split(",")
    }
    assert asked
    assert asked <= set(EXTRAS)


def test_packages_that_are_named_are_those_of_the_project() -> None:
    """The first word is always a package, a wheel or a folder; a typo is none of them."""
    wrong = [
        (place, words)
        for place, words in installs()
        for one in named(words)[:1]
        if bare(one) not in KNOWN
        and not one.startswith((".", "{"))
        and not one.partition("[")[0].endswith(".whl")
    ]
    assert wrong == []


def test_wheels_that_are_named_are_those_that_are_made() -> None:
    """Readers type or paste these names: the version, the ABI and the platforms of the build."""
    oldest = re.search(r"(?m)^ABI = \(3, (\d+)\)$", (ROOT / "setup.py").read_text())
    tool = (ROOT / "tools" / "wheels.py").read_text()
    glibc = re.search(r"(?m)^GLIBC = \((\d+), (\d+)\)$", tool)
    platforms = re.search(r"(?m)^ARCHITECTURES = \((.*)\)$", tool)
    assert oldest is not None and glibc is not None and platforms is not None
    wheels = {
        f"pygsampler-{PROJECT['version']}-cp3{oldest[1]}-abi3-manylinux_{glibc[1]}_{glibc[2]}_{one}.whl"
        for one in re.findall(r"\w+", platforms[1])
    }
    named = [
        (str(path.relative_to(ROOT)), name)
        for path in tracked("*.md", ":!CHANGELOG.md", "*.ipynb")
        for name in re.findall(r"pygsampler-[\w.*<>?-]*\.whl", path.read_text())
    ]
    assert {"README.md", "docs/index.md", "docs/get-started/notebooks.md"} <= {
        page for page, _ in named
    }
    wrong = [(page, name) for page, name in named if not fnmatch.filter(wheels, name)]
    assert wrong == []


def test_pages_say_which_python_is_the_oldest() -> None:
    oldest = PROJECT["requires-python"].removeprefix(">=")
    for page in ("README.md", "docs/index.md", "docs/faq.md"):
        text = " ".join((ROOT / page).read_text().split())
        assert re.findall(r"CPython (3\.\d+) or newer", text) == [oldest], page


def test_the_table_of_partners_has_the_versions_that_are_tested() -> None:
    """The FAQ names what exists for which Python; the tests run with the newest of these."""
    pins = {}
    for partners in ("classic", "current"):
        text = (ROOT / "tests" / f"requirements-{partners}.txt").read_text()
        pins[partners] = dict(re.findall(r"(?m)^([a-z-]+)==([^\s;]+)", text))
    minor = {name: ".".join(pin.split(".")[:2]) for name, pin in pins["current"].items()}
    page = (ROOT / "docs" / "faq.md").read_text()
    rows = re.findall(r"(?m)^\| (3\.\d+.*?) \| (.*?) \| (.*?) \| (.*?) \|$", page)
    newest = {f"up to {minor['torch']}"}
    assert {torch for python, torch, _, _ in rows if python != "3.10"} == newest
    assert {pyg for _, _, pyg, _ in rows} == {minor["torch-geometric"]}
    classic = f"{pins['classic']['dgl']} with PyTorch {pins['classic']['torch']}"
    current = f"{pins['current']['dgl']} with newer ones"
    assert {dgl for _, _, _, dgl in rows} == {f"{classic}, {current}", classic, "none"}


def test_the_install_line_of_dgl_has_the_versions_of_the_extra() -> None:
    """DGL 2.1's wheel works with one version of torch alone."""
    pins = {bare(one): one for one in EXTRAS["dgl"]}
    text = (ROOT / "python" / "pygsampler" / "dgl" / "__init__.py").read_text()
    line = re.search(r"pip install (dgl.*?)\(", re.sub(r'"\s*\n\s*"', "", text))
    assert line is not None
    words = named(line[1])
    assert words
    assert all(pins[bare(one)] == one for one in words)


# A figure that compares or times: "2 to 28 times", "1.3 times", "9 to 14 us", "35 G steps".
FIGURE = re.compile(
    r"(?<![\w.,(])\d[\d,]*(?:\.\d+)?(?: (?:to|and|or) \d[\d,]*(?:\.\d+)?)?"
    r"(?: times|x\b| ?%| us\b| microseconds| ms\b| G steps)"
)
MARKED = re.compile(r"<!-- figures? (\w+) -->.*?<!-- end -->", re.DOTALL)
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
# How many figures may stand in the sentences of a page without a mark: pages about measurements and
# papers quote single runs, others' figures and accuracies, of which no record is kept. The numbers
# only ever get smaller.
UNMARKED = {
    "README.md": 3,
    "algorithms/samplers.md": 7,
    "developer/statistics-results.md": 4,
    "developer/statistics.md": 2,
    "developer/tried.md": 36,
    "guide/cuda-graphs.md": 5,
    "guide/debian.md": 9,
    "guide/heterogeneous.md": 6,
    "guide/large-graphs.md": 1,
    "guide/layers.md": 8,
    "guide/links.md": 2,
    "guide/multi-gpu.md": 2,
    "guide/partitioned.md": 6,
    "guide/prefetching.md": 1,
    "guide/shared-graphs.md": 2,
    "guide/temporal.md": 3,
    "guide/weights.md": 44,
    "performance/cpu.md": 5,
    "performance/features.md": 3,
    "performance/gpu-bounds.md": 26,
    "performance/gpu.md": 40,
    "performance/heterogeneous.md": 8,
    "performance/loaders.md": 6,
    "performance/programs-bounds.md": 10,
    "performance/programs-cpu.md": 3,
    "performance/programs.md": 2,
    "performance/walks.md": 31,
    "research/gnnsampler-figures.md": 1,
    "research/gnnsampler.md": 8,
    "research/nextdoor.md": 10,
    "research/pgsampler.md": 2,
    "research/turbognn.md": 14,
}


def place(page: Path) -> str:
    """The path of a page within docs/, or README.md."""
    return str(page.relative_to(ROOT / "docs" if page.is_relative_to(ROOT / "docs") else ROOT))


def figures(page: Path) -> list[str]:
    """The figures in the sentences of a page that tools/figures.py does not write."""
    text = CODE.sub("", MARKED.sub("", page.read_text()))
    return [found[0] for found in FIGURE.finditer(text)]


def test_a_figure_in_a_sentence_is_found() -> None:
    assert [found[0] for found in FIGURE.finditer("2 to 28 times, 91 to 100 %, 46 us, 1.5x")] == [
        "2 to 28 times",
        "91 to 100 %",
        "46 us",
        "1.5x",
    ]


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))], ids=place
)
def test_figures_in_sentences_are_kept_ones(page: Path) -> None:
    """``tools/figures.py`` writes them from benchmarks/results, and another test compares them."""
    found = figures(page)
    assert len(found) <= UNMARKED.get(place(page), 0), found
