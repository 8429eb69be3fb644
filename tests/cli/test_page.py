"""docs/cli.md: its commands run, in order, and it names all of them with their exit codes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from partners import partner

from pygsampler.cli import group

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
# The command of tests/test_quickstart.py, which takes its time.
ELSEWHERE = "pygsampler quickstart"


def test_the_page_runs(tmp_path: Path) -> None:
    for name in ("numpy", "pyarrow", "matplotlib"):
        partner(name)
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    script = "\n".join(line for line in lines if not line.startswith(ELSEWHERE))
    function = f'pygsampler() {{ "{sys.executable}" -m pygsampler "$@"; }}\n'
    done = subprocess.run(
        ["bash", "-euc", function + script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert {"shop.pgs", "debian.pgs", "sample.arrow", "sample.parquet", "degrees.png"} <= {
        path.name for path in tmp_path.iterdir()
    }


def test_the_page_has_every_command() -> None:
    text = PAGE.read_text()
    for command in group.COMMANDS:
        assert f"\n## {command}\n" in text
        assert re.search(rf"(?m)^pygsampler {command}\b", text)
    for code in (0, group.FAILURE, 2, group.INTERRUPTED):
        assert f"\n| {code} | " in text
