"""Results have the bytes that they had in every build before, and the same bytes everywhere.

A digest may be added, by ``python tests/golden --write``. One that changes is a fault of the change.
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
from tests.golden.loaders import Loaded
from tests.golden.results import digest
from tests.gpu import need_cuda, run_with_driver
from tests.support.static_scripts import PRELUDE

HERE = Path(__file__).parent
CASES = digests.cases()
SAMPLED = {name: case for name, case in CASES.items() if isinstance(case, Sampled)}
STATIC = [name for name, case in CASES.items() if isinstance(case, Loaded) and case.static]
ON_GPU = [*SAMPLED, *(name for name, case in CASES.items() if isinstance(case, Loaded))]
RECORDED = digests.recorded()
PACKAGES = {"arrow": "pyarrow", "torch": "torch", "numpy": "numpy"}

# DGL and PyG warn of their own dependencies, and of how processes are bound to cores.
pytestmark = pytest.mark.filterwarnings("default")


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


@pytest.mark.parametrize("name", ON_GPU)
def test_gpu_gives_the_same_results(name: str) -> None:
    need_cuda()
    need(CASES[name])
    compare(name, device="cuda")


@pytest.mark.parametrize("name", STATIC)
def test_static_batches_have_the_same_arrays_when_trimmed(name: str) -> None:
    need_cuda()
    need(CASES[name])
    compare(name, device="cuda", form="static")
