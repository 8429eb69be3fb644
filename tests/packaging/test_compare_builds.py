"""Tests of tools/compare_builds.py: the gate on given figures, and a build against itself."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

import pygsampler
from tests.packaging.scripts import tool

pytestmark = pytest.mark.once

compare_builds = tool("compare_builds")


class Fake:
    """A process whose calls take as long as they are told to, beside others that take a share."""

    def __init__(self, log: list[str], name: str, us: float, result: Any = None) -> None:
        self.log, self.name, self.us = log, name, us
        self.result = result or {"digest": "ab", "arrays": 1, "numbers": 9}
        self.others = 0.0
        self.calls: list[tuple[int, int]] = []

    def __call__(self, command: str, *arguments: Any) -> Any:
        if command == "prepare":
            return self.result
        self.log.append(self.name)
        self.calls.append(arguments)
        return {"seconds": self.us * arguments[1] / 1e6, "others": self.others}


@pytest.fixture
def fakes() -> tuple[Fake, Fake]:
    log: list[str] = []
    return Fake(log, "old", 100.0), Fake(log, "new", 103.0)


def row(*rounds: tuple[float, float]) -> Any:
    return compare_builds.Row.of("case", rounds)


def test_ratio_is_the_median_of_the_ratios_within_rounds() -> None:
    found = row((100, 101), (200, 204), (50, 50), (100, 300), (10, 10.3))
    assert found.ratio == pytest.approx(1.02)
    assert (found.q25, found.q75) == pytest.approx((1.005, 2.015))
    assert (found.old_us, found.new_us) == (100, 101)


@pytest.mark.parametrize(
    "rounds, device, passes",
    [
        ([(100, 100.9)] * 3, "cpu", True),
        ([(100, 101.1)] * 3, "cpu", False),
        ([(100, 101.1)] * 3, "cuda", True),
        ([(100, 102.1)] * 3, "cuda", False),
        ([(100, 60)] * 3, "cpu", True),
        # Short calls: by microseconds, whatever the ratio is.
        ([(5, 5.19)] * 3, "cpu", True),
        ([(5, 5.21)] * 3, "cpu", False),
        ([(19.9, 20.09)] * 3, "cpu", True),
        ([(20.1, 20.35)] * 3, "cpu", False),
    ],
)
def test_gate_is_the_median(rounds: list[tuple[float, float]], device: str, passes: bool) -> None:
    found = row(*rounds)
    status, sentence = compare_builds.verdict([found], device)
    assert (status == 0) == passes == (found.fault(device) is None)
    assert ("passed" in sentence) == passes
    assert ("| passes |" in compare_builds.table([found], device)) == passes
    assert "| not judged |" in compare_builds.table([found], None)


def test_builds_take_turns_in_changing_order_on_the_same_calls(fakes: Any) -> None:
    found = compare_builds.measure("case", fakes, rounds=2, wait=0, force=False)
    assert found.ratio == pytest.approx(1.03)
    log = fakes[0].log
    assert log[-8:] == ["old", "new", "new", "old", "new", "old", "old", "new"]
    # The epochs of loaders count the calls.
    assert fakes[0].calls == fakes[1].calls


def test_nothing_is_judged_beside_other_processes(fakes: Any) -> None:
    fakes[1].others = 0.2
    with pytest.raises(compare_builds.Refused, match="20% of the cores"):
        compare_builds.measure("case", fakes, rounds=2, wait=0, force=False)
    found = compare_builds.measure("case", fakes, rounds=2, wait=0, force=True)
    assert found.disturbed == 2


def test_builds_with_different_results_are_refused(fakes: Any) -> None:
    fakes[1].result = fakes[0].result | {"digest": "cd"}
    with pytest.raises(compare_builds.Different, match="case: expected the results"):
        compare_builds.measure("case", fakes, rounds=2, wait=0, force=False)
    for fake in fakes:
        fake.result = {"digest": "ab", "arrays": 0, "numbers": 0}
    with pytest.raises(compare_builds.Different, match="got none"):
        compare_builds.measure("case", fakes, rounds=2, wait=0, force=False)


def test_builds_are_wheels_folders_and_environments(tmp_path: Path) -> None:
    python = Path("/usr/bin/python3")
    package = tmp_path / "unpacked" / "pygsampler" / "__init__.py"
    package.parent.mkdir(parents=True)
    package.touch()
    with zipfile.ZipFile(tmp_path / "some.whl", "w") as wheel:
        wheel.write(package, "pygsampler/__init__.py")
    interpreter = tmp_path / "venv" / "bin" / "python"
    interpreter.parent.mkdir(parents=True)
    interpreter.touch()

    def build(name: str) -> Any:
        return compare_builds.build_at(tmp_path / name, python, tmp_path / "here")

    assert build("unpacked") == compare_builds.Build(python, tmp_path / "unpacked")
    assert build("some.whl") == compare_builds.Build(python, tmp_path / "here")
    assert (tmp_path / "here" / "pygsampler" / "__init__.py").exists()
    assert build("venv") == compare_builds.Build(interpreter, None)
    assert "PYTHONPATH" not in build("venv").environment()
    with pytest.raises(SystemExit, match="expected a wheel"):
        build("nothing")


def test_a_build_is_compared_with_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(Path(pygsampler.__file__).parents[1])
    arguments = [folder, folder, "--force", "--rounds=2", "--wait=0", "--case=walk 80"]
    size = ["--nodes=2000", "--edges=20000", f"--out={tmp_path / 'out.json'}"]
    assert compare_builds.main(arguments + size) == 0
    printed = capsys.readouterr().out
    assert "| walk 80 |" in printed and "no verdict" in printed
    record = json.loads((tmp_path / "out.json").read_text())
    assert record["old"]["package"] == record["new"]["package"]
    (found,) = record["rows"]
    assert found["rounds"] == 2 and found["ratio"] > 0


def test_few_rounds_give_no_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        compare_builds.main([".", ".", "--rounds=5"])
    assert "expected at least 40, got 5" in capsys.readouterr().err
