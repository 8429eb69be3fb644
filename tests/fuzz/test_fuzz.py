"""A slice of the long run (``python -m tests.fuzz``), and that the run notices what it is for."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from random import Random
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, rule

from tests.fuzz import episodes
from tests.fuzz.world import OPERATIONS, World, step

# The run knows NumPy 2's answers: NumPy 1 takes a truth of its own for an integer, and nothing
# read-only by DLPack.
pytestmark = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.0.0", reason="needs NumPy 2"
)
ROOT = Path(__file__).parents[2]
PROGRAM = [sys.executable, "-m", "tests.fuzz", "--quiet"]

# Every operation is a rule: what fails is shrunk to the few calls that it takes.
Machine: Any = type(
    "Machine",
    (RuleBasedStateMachine,),
    {
        name: rule(random=st.randoms(use_true_random=False))(
            lambda self, random, name=name: self.work(random, name)
        )
        for name in OPERATIONS
    },
)


class Calls(Machine):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.world = World()

    def work(self, random: Random, name: str) -> None:
        with warnings.catch_warnings():
            # Arrays that are not contiguous are copied, which is said.
            warnings.filterwarnings("ignore", r"\w+(\[[^]]+\])*: not contiguous", UserWarning)
            # torch.from_dlpack and sparse tensors say of themselves that they are new.
            warnings.filterwarnings("ignore", category=UserWarning, module="torch")
            # And that lists of arrays are slow, once in a process and in the name of our module.
            warnings.filterwarnings("ignore", "Creating a tensor from a list of", UserWarning)
            # pyarrow says so of torch, which asks again in the old way where it was refused.
            warnings.filterwarnings("ignore", "Exporting an unversioned DLPack", DeprecationWarning)
            step(self.world, random, name)


TestCalls = Calls.TestCase
TestCalls.settings = settings(max_examples=12, stateful_step_count=25, deadline=None)


def run(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *options], cwd=ROOT, capture_output=True, text=True, timeout=240
    )


def test_a_slice_of_the_long_run() -> None:
    done = run("--calls", "2500", "--seed", "7")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all well" in done.stdout


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        ("crash", "status -11"),
        ("hang --patience 3", "hangs"),
        ("wrong", "AssertionError: sabotage"),
        ("leak", "descriptors"),
    ],
)
def test_what_goes_wrong_is_noticed_and_can_be_repeated(harm: str, says: str) -> None:
    done = run("--calls", "1500", "--seed", "5", "--light", "--sabotage", *harm.split())
    assert done.returncode == 1, done.stdout + done.stderr
    assert "FAILED in episode" in done.stdout
    assert says in done.stdout, done.stdout
    assert "again: python -m tests.fuzz --seed 5 --episode" in done.stdout


def test_an_episode_says_all_of_its_calls() -> None:
    """The same seed and number are the same calls: a failure can be looked at again."""
    number = next(i for i in range(100) if not episodes.Episode(3, i).shared)
    first, second = [], []
    for names in (first, second):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            episodes.run(episodes.Episode(3, number), names.append)
    assert first == second
    assert len(first) == episodes.CALLS
