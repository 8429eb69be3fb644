"""The engine's programs against the slow reference, byte for byte.

``PYGSAMPLER_PROGRAMS=200000`` tries so many random programs.
"""

from __future__ import annotations

import os
import random

import pytest
from program_examples import EXAMPLES
from program_graphs import Arrays, graphs, large, larger, seeds_of
from program_parity import LAYOUTS, PASSES, Trial, check_algorithm
from random_programs import program

from pygsampler import samplers
from pygsampler.samplers import layer_wise

pytestmark = pytest.mark.once

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
            trial.check(layouts=LAYOUTS[-1], threads=4)
            trial.many()


# What comes with the package, as it is traced.
SHIPPED = {
    "graphsage": samplers.graphsage(fanouts=[3, 2]),
    "kgcn": samplers.kgcn(fanouts=[2, 3], weight="w"),
    "vrgcn": samplers.vrgcn(fanouts=[2, 2]),
    "ladies": samplers.ladies(nodes=[4, 3], weight="w"),
    "ladies, iid": samplers.ladies(nodes=[4, 3], method="iid"),
    "ladies, conditioned": samplers.ladies(nodes=[4, 3], method="conditioned", weight="w"),
    "ladies, poisson": samplers.ladies(nodes=[4, 3], method="poisson"),
    "exp3": samplers.learned.exp3(fanouts=[2, 3], eta=0.4, log_weights="w"),
    "exp3m": samplers.learned.exp3m(fanouts=[2, 3], eta=0.4, log_weights="w"),
    "fastgcn": samplers.fastgcn(nodes=[4, 3], weight="w"),
    "labor": layer_wise.labor(fanouts=[3, 2]),
    "labor, weighted": layer_wise.labor(fanouts=[3, 2], weight="w", normalize="mean"),
    "labor-2": layer_wise.labor(fanouts=[-1, 2], weight="w", importance=2),
    "labor-1": layer_wise.labor(fanouts=[3, 2], importance=1),
    "saint_node": samplers.saint_node(budget=5),
    "saint_node, by weights": samplers.saint_node(budget=5, by="weights", weight="w"),
    "saint_edge": samplers.saint_edge(budget=4),
    "saint_edge, independent": samplers.saint_edge(budget=4, method="independent"),
    "saint_walk": samplers.saint_walk(roots=3, length=2),
    "seal": samplers.seal(fanouts=[3, -1]),
    "seal, capped": samplers.seal(fanouts=[3, -1, 4], max_nodes_per_hop=3),
    "shadow": samplers.shadow(fanouts=[2, 3]),
    "cluster_gcn": samplers.cluster_gcn(),
}


@pytest.mark.parametrize("name", list(SHIPPED))
def test_algorithms_of_the_package(name: str) -> None:
    check_algorithm(SHIPPED[name], CASES, random.Random(name))


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
        code, seeds, without = program(rng), seeds_of(case, rng), None
        if number % 7 == 3:
            ids = range(len(case.indices)) if case.edge_ids is None else case.edge_ids
            without = rng.choices(ids, k=rng.choice([1, 2, 9])) if ids else None
        trial = Trial(code, case, seeds, weight, number, without)
        trial.check(threads=rng.choice([1, 4]), width=rng.choice([32, 64]))
        trial.check(PASSES, threads=rng.choice([1, 4]), width=rng.choice([32, 64]))
        for one in rng.sample(PASSES, 2):
            trial.check((one,))
        trial.check(layouts=rng.choice(LAYOUTS), threads=rng.choice([1, 4]))
        if number % 5 == 0 and without is None:
            trial.many()
