"""The engine's programs against the slow reference, byte for byte.

``PYGSAMPLER_PROGRAMS=200000`` tries so many random programs.
"""

from __future__ import annotations

import os
import random

import pytest
from program_examples import EXAMPLES
from program_graphs import Arrays, graphs, large, larger, seeds_of
from program_parity import PASSES, Trial
from random_programs import program

NUMBER = int(os.environ.get("PYGSAMPLER_PROGRAMS", "400"))
CHUNK = 2000
CASES = {**graphs(), "larger": larger()}


@pytest.mark.parametrize("name", list(EXAMPLES))
def test_examples(name: str) -> None:
    example, rng = EXAMPLES[name], random.Random(name)
    for number, case in enumerate(CASES.values()):
        for seeds in (seeds_of(case, rng), list(range(case.num_nodes))):
            trial = Trial(example.code, case, seeds, example.weight, number + 1)
            trial.check()
            trial.check(threads=4, width=32)
            trial.check(PASSES)
            for one in PASSES:
                trial.check((one,))
            trial.many()


@pytest.fixture(scope="module")
def edges_for_threads() -> Arrays:
    return large()


@pytest.mark.parametrize("name", list(EXAMPLES))
def test_threads(name: str, edges_for_threads: Arrays) -> None:
    example, case = EXAMPLES[name], edges_for_threads
    trial = Trial(example.code, case, list(range(case.num_nodes)), example.weight, 1)
    trial.check(threads=1)
    trial.check(threads=4, width=32)


@pytest.mark.parametrize("first", range(0, NUMBER, CHUNK))
def test_random_programs(first: int) -> None:
    names = list(CASES)
    for number in range(first, min(first + CHUNK, NUMBER)):
        rng = random.Random(number)
        # The large graph seldom: the reference takes its time.
        case = CASES["larger" if rng.random() < 0.03 else rng.choice(names[:-1])]
        weight = rng.choice([None, "w", "w", "t", "m"])
        trial = Trial(program(rng), case, seeds_of(case, rng), weight, number)
        trial.check(threads=rng.choice([1, 4]), width=rng.choice([32, 64]))
        trial.check(PASSES, threads=rng.choice([1, 4]), width=rng.choice([32, 64]))
        for one in rng.sample(PASSES, 3):
            trial.check((one,))
        if number % 5 == 0:
            trial.many()
