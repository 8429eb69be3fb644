"""No bias is to be seen, and a biased sampler is.

Every number is a function of fixed seeds: what passes passes always. For a sampler without bias,
and seeds chosen by chance, all tests of choices together fail with a probability below FAMILY.
The large run is ``python -m tests.statistics``; it writes docs/developer/statistics-results.md.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from pygsampler.torch import DataLoader
from tests.statistics import laws
from tests.statistics.cases import CASES, OTHERS, Case
from tests.statistics.flaws import FLAWS, Flaw
from tests.statistics.loaders import LOADERS, LoaderCase, workers
from tests.statistics.sources import Engine, Honest
from tests.statistics.walks import WALK_CASES, HonestWalker, WalkCase, WalkEngine

FAMILY = 1e-3
# For each case: the most surprising p-value, and whether all of them are uniform.
LEVEL = FAMILY / (2 * (len(CASES) + len(WALK_CASES) + len(LOADERS) + 1))
SEEDS = range(100, 130)
LOADER_SEEDS = range(100, 110)


def plausible(values: list[float]) -> None:
    assert len(set(values)) > len(values) // 2, "the seeds make no difference"
    assert laws.extreme(values) > LEVEL, sorted(values)
    assert laws.uniform(values) > LEVEL, sorted(values)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    yield Engine()


@pytest.mark.once
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_engine_has_no_bias(case: Case, engine: Engine) -> None:
    plausible([case.run(engine, seed, 1) for seed in SEEDS])


@pytest.mark.research
@pytest.mark.once
@pytest.mark.parametrize("case", CASES[-len(OTHERS) :], ids=lambda case: case.name)
def test_the_task_queue_has_no_bias(case: Case) -> None:
    plausible([case.run(Engine(mode="queue"), seed, 1) for seed in range(200, 206)])


@pytest.mark.once
@pytest.mark.parametrize("case", WALK_CASES, ids=lambda case: case.name)
def test_walks_have_no_bias(case: WalkCase) -> None:
    plausible([case.run(WalkEngine(), seed, 1) for seed in SEEDS])


@pytest.mark.parametrize("case", LOADERS, ids=lambda case: case.name)
def test_the_loader_has_no_bias(case: LoaderCase) -> None:
    plausible([case.run(DataLoader, seed) for seed in LOADER_SEEDS])


def test_workers_draw_afresh() -> None:
    plausible([p for seed in (1, 2) for p in workers(seed).values()])


@pytest.mark.once
@pytest.mark.parametrize("flaw", FLAWS, ids=lambda flaw: f"{flaw.name}: {flaw.case}")
def test_a_flaw_is_seen(flaw: Flaw) -> None:
    with np.errstate(divide="ignore"):
        assert flaw.p(7) < 1e-9


@pytest.mark.once
@pytest.mark.parametrize("case", CASES[::4], ids=lambda case: case.name)
def test_a_sampler_without_a_flaw_passes(case: Case) -> None:
    plausible([case.run(Honest(), seed, 1) for seed in range(10)])


@pytest.mark.once
@pytest.mark.parametrize("case", WALK_CASES[::4], ids=lambda case: case.name)
def test_a_walker_without_a_flaw_passes(case: WalkCase) -> None:
    plausible([case.run(HonestWalker(), seed, 1) for seed in range(10)])


@pytest.mark.once
def test_p_values_that_are_not_uniform() -> None:
    honest = np.random.default_rng(1).random(500)
    assert laws.uniform(honest) > 1e-3
    assert laws.extreme(honest) > 1e-3
    assert laws.uniform(honest**1.3) < 1e-6
    assert laws.extreme([*honest, 1e-9]) < 1e-5
    assert laws.extreme([*honest, 1 - 1e-9]) < 1e-5
