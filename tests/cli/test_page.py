"""docs/guide/cli.md: its commands run, in order, and it names all of them with their exit codes."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from partners import partner

from pygsampler._cli import group

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "cli.md"
# The command of tests/docs/test_quickstart.py, which takes its time.
OTHER_LOADERS = "pygsampler quickstart"


def test_the_page_runs(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("numpy", "pyarrow", "matplotlib", "torch_geometric"):
        partner(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pygsampler._cli.bench.compare._ROUND_BATCHES", (4, 4))
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    for line in "".join(blocks).splitlines():
        if line.startswith(OTHER_LOADERS):
            continue
        if not line.startswith("pygsampler "):
            subprocess.run(["bash", "-euc", line], check=True)
            continue
        if line.startswith("pygsampler run "):
            # It replaces its process.
            command = [sys.executable, "-m", *shlex.split(line)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            continue
        words, _, file = line.partition(" > ")
        shown = run(*shlex.split(words)[1:]).stdout
        if file:
            Path(file).write_text(shown)
            json.loads(shown)
    made = {"shop.pgs", "debian.pgs", "sample.arrow", "sample.parquet", "degrees.png"}
    made |= {"walks.parquet", "walks.txt"}
    assert made <= {path.name for path in tmp_path.iterdir()}


def test_the_page_has_every_command() -> None:
    text = PAGE.read_text()
    for command in group.COMMANDS:
        assert f"\n## {command}\n" in text
        assert re.search(rf"(?m)^pygsampler {command}\b", text)
    for code in (0, group.FAILURE, 2, group.INTERRUPTED):
        assert f"\n| {code} | " in text
