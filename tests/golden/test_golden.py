"""Results have the bytes that they had in every build before, and the same bytes everywhere.

A digest may be added, by ``python tests/golden --write``. A digest that changes is a fault.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.golden import digests
from tests.golden.cases import Case, Sampled
from tests.golden.results import SHA256, digest
from tests.gpu import need_cuda

HERE = Path(__file__).parent
CASES = digests.cases()
SAMPLED = {name: case for name, case in CASES.items() if isinstance(case, Sampled)}
RECORDED = digests.recorded()
PACKAGES = {"arrow": "pyarrow", "torch": "torch", "numpy": "numpy"}


def compare(name: str, **place: str | int) -> None:
    case = CASES[name]
    assert digests.matches(case, RECORDED[digests.line_of(case)], **place)


def need(case: Case, *packages: str) -> None:
    lacking = [*case.lacks(), *Case("", case.make, packages).lacks()]
    if lacking:
        pytest.skip(f"needs {', '.join(lacking)}")


@pytest.mark.parametrize("name", CASES)
def test_result_has_the_recorded_digest(name: str) -> None:
    need(CASES[name])
    compare(name)


@pytest.mark.parametrize(
    ("name", "form"), [(name, form) for name, case in SAMPLED.items() for form in case.all_forms()]
)
def test_forms_of_a_batch_have_the_same_arrays(name: str, form: str) -> None:
    need(SAMPLED[name], PACKAGES[form])
    compare(name, form=form)


@pytest.mark.parametrize("name", [name for name, case in SAMPLED.items() if case.bits == 64])
def test_ids_of_32_bits_give_the_same_results(name: str) -> None:
    need(SAMPLED[name])
    compare(name, bits=32)


def test_gpu_gives_the_same_results() -> None:
    need_cuda()
    assert "as recorded" in digests.check("cuda")


@pytest.mark.once
def test_emulated_gpu_gives_the_same_results(emulator: Path) -> None:
    variables = {
        "LD_LIBRARY_PATH": str(emulator),
        "PYGSAMPLER_NVRTC": str(emulator / "libnvrtc.so.12"),
    }
    done = subprocess.run(
        [sys.executable, str(HERE), "--check", "--device", "cuda", "--emulated"],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    chosen = digests.to_run("cuda", emulated=True)
    assert len(chosen) > 200
    assert done.stdout == f"{len(chosen)} results on cuda as recorded\n"


def test_every_case_has_a_digest_and_every_digest_a_case() -> None:
    assert {digests.line_of(case) for case in CASES.values()} == set(RECORDED)
    # The first were made by SHA-256, and a digest that is written anew is not.
    assert sum(len(line) == SHA256 for line in RECORDED.values()) == 59


def test_check_names_results_that_differ(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    few = {name: CASES[name] for name in ("walk", "ladies")}
    monkeypatch.setattr(digests, "cases", lambda: few)
    monkeypatch.setattr(digests, "FILE", tmp_path / "digests.json")
    lines = {name: RECORDED[name] for name in few}

    def check_of(written: dict[str, str]) -> str:
        digests.FILE.write_text(json.dumps(written))
        return digests.check()

    assert check_of(lines) == "2 results on cpu as recorded"
    for wrong in ({**lines, "ladies": "0" * 16}, {"ladies": lines["ladies"]}, {**lines, "x": "0"}):
        with pytest.raises(SystemExit, match=r"^golden: expected .*(ladies|walk|x)"):
            check_of(wrong)


def test_write_adds_digests_and_changes_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    few = {name: CASES[name] for name in ("neighbors one hop", "ladies")}
    monkeypatch.setattr(digests, "cases", lambda: few)
    monkeypatch.setattr(digests, "FILE", tmp_path / "digests.json")
    digests.FILE.write_text(json.dumps({"ladies": RECORDED["ladies"]}))
    assert digests.write() == "1 digests added to 1"
    assert digests.recorded() == {name: RECORDED[name] for name in few}
    wrong = json.dumps({"ladies": "0" * 16})
    digests.FILE.write_text(wrong)
    with pytest.raises(SystemExit, match=r"^golden: digests never change, got others: ladies$"):
        digests.write()
    assert digests.FILE.read_text() == wrong


def test_cases_whose_packages_are_missing_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = Case("without", lambda: pytest.fail("was run"), ("no_such_package",))
    few = {"walk": CASES["walk"], "without": missing}
    monkeypatch.setattr(digests, "cases", lambda: few)
    monkeypatch.setattr(digests, "recorded", lambda: {"walk": RECORDED["walk"], "without": "0"})
    assert digests.check() == ("1 results on cpu as recorded; 1 not run without no_such_package")


def test_digest_tells_arrays_apart_by_name_type_shape_and_value() -> None:
    array = np.arange(200)
    others = [array.astype("int32"), array.reshape(2, 100), array + 1, [array], {"x": array}]
    for length in (SHA256, 24):
        assert len({digest(value, length) for value in [array, *others]}) == 6
    with pytest.raises(AssertionError, match="got 3 numbers"):
        digest(array[:3])
