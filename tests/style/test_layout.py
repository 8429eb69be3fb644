"""The shape of the package: entries, floors, arrows, files and folders, which only get fewer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.style import layout
from tests.style.findings import ROOT
from tests.style.limits import GOALS, LIMITS

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def figures() -> dict[str, int]:
    return layout.figures(ROOT)


@pytest.mark.parametrize("name", LIMITS)
def test_a_figure_is_within_its_limit(name: str, figures: dict[str, int]) -> None:
    assert figures[name] <= LIMITS[name]


def test_goals_are_of_figures_and_within_limits(figures: dict[str, int]) -> None:
    assert GOALS.keys() | LIMITS.keys() <= figures.keys()
    assert all(GOALS[name] <= limit for name, limit in LIMITS.items())


def test_floors_are_the_longest_chain() -> None:
    assert layout.floors({"a": {"b", "c"}, "b": {"c"}, "c": {"d"}}) == 4
    assert layout.floors({}) == 0


def test_a_circle_is_one_floor() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}}
    assert layout.components(graph) == {frozenset("a"), frozenset("bc"), frozenset("d")}
    assert layout.floors(graph) == 3


def test_arrows_are_of_all_imports(tmp_path: Path) -> None:
    package = tmp_path / "python" / "pygsampler"
    (package / "sub").mkdir(parents=True)
    (package / "__init__.py").write_text("from pygsampler.one import name\n")
    (package / "one.py").write_text("def f():\n    import pygsampler.sub.two as t\n")
    (package / "sub" / "__init__.py").write_text("")
    (package / "sub" / "two.py").write_text("from pygsampler import sub, three\nimport os\n")
    (package / "three.py").write_text("")
    (package / "py.typed").write_text("")
    assert layout.arrows(tmp_path) == {"__init__": {"one"}, "one": {"sub"}, "sub": {"three"}}
    assert len(layout.entries(package)) == 4


def test_only_the_package_itself_imports_research() -> None:
    graph = layout.arrows(ROOT)
    assert {entry for entry, targets in graph.items() if "research" in targets} == {"__init__"}
