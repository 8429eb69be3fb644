"""A plugin of pytest for tools/check.py: a limit of time, which says what it left out.

No test begins later than ``--budget SECONDS`` after the first. A file of tests gets a quarter of
it, so that one slow file does not take the others' time. ``--page NAME`` (repeated) has the code of
that document run; that of other documents does not run.
"""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

SHARE = 4
PAGES = "test_python_runs["


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--budget", type=float, required=True)
    parser.addoption("--page", action="append", default=[])


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Budget(config.getoption("budget"), config.getoption("page")))


class Budget:
    """The clock of a run, and what it left out by file."""

    def __init__(self, seconds: float, pages: list[str]) -> None:
        self.seconds, self.pages = seconds, pages
        self.begin: float | None = None
        self.spent: Counter[Path] = Counter()
        self.left_out: Counter[Path] = Counter()

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        wanted = {f"{PAGES}{page}]" for page in self.pages}
        others = [i for i in items if i.name.startswith(PAGES) and i.name not in wanted]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in others]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        begin = time.monotonic()
        self.begin = self.begin or begin
        over = begin - self.begin > self.seconds
        if over or self.spent[item.path] > self.seconds / SHARE:
            self.left_out[item.path] += 1
            item.add_marker(pytest.mark.skip("no time left"))
        try:
            return (yield)
        finally:
            self.spent[item.path] += time.monotonic() - begin

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        for path, count in self.left_out.items():
            name = path.relative_to(terminalreporter.config.rootpath)
            terminalreporter.write_line(f"left out, no time: {count} tests of {name}")
