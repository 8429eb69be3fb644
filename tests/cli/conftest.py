from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from skewed_graph import NODES, edges

from pygsampler import Graph
from pygsampler.__main__ import main


@pytest.fixture
def graph() -> Graph:
    return Graph.from_coo(*edges(), num_nodes=NODES)


@pytest.fixture
def file(graph: Graph, tmp_path: Path) -> Path:
    path = tmp_path / "graph.pgs"
    graph.save(path, arrays={"features": np.zeros((NODES, 4), np.float32)})
    return path


@pytest.fixture
def run() -> Callable[..., Result]:
    """Runs a command; an exit code other than ``ends_with`` fails the test."""

    def command(*arguments: object, ends_with: int = 0) -> Result:
        result = CliRunner().invoke(main, [str(argument) for argument in arguments])
        assert result.exit_code == ends_with, (result.output, result.exception)
        return result

    return command


@pytest.fixture
def ask(run: Callable[..., Result]) -> Callable[..., Any]:
    """The one document that a command prints with ``--json``; nothing else is said."""

    def command(*arguments: object, ends_with: int = 0) -> Any:
        result = run(*arguments, "--json", ends_with=ends_with)
        assert result.stderr == ""
        return json.loads(result.stdout)

    return command


@pytest.fixture
def refused(run: Callable[..., Result]) -> Callable[..., str]:
    """The one line of an error; nothing is printed beside it."""

    def command(*arguments: object, ends_with: int = 1) -> str:
        result = run(*arguments, ends_with=ends_with)
        assert result.stdout == ""
        (line,) = result.stderr.splitlines()
        assert line.startswith("Error: ")
        return line.removeprefix("Error: ")

    return command
