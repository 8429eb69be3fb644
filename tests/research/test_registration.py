"""Research is registered from outside: the package samples the same without the folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import pygsampler as pgs
from pygsampler._sampling.extensions import FAMILIES, MODES
from pygsampler.samplers.neighbor_plan import NEIGHBOR
from tests.support.research import link_without_research

# Samples by each engine part that research extends, and prints the samples.
SAMPLES = """
import json
import pygsampler as pgs

@pgs.program
def ours(A, seeds, fanouts):
    blocks = []
    for fanout in fanouts:
        block = A[:, seeds].individual_sample(fanout)
        blocks.insert(0, block)
        seeds = seeds | block.row()
    return blocks

indptr = list(range(0, 301, 3))
indices = [7 * edge % 100 for edge in range(300)]
graph = pgs.Graph.from_csc(indptr, indices)
samples = [
    [block.edge_ids.tolist() for block in sampler.sample(graph, [1, 5, 9]).blocks]
    for sampler in (
        pgs.PGSampler([2, 2], seed=1),
        pgs.PGSampler([2, 2], mode="persistent", seed=1),
        pgs.LaborSampler([2, 2], seed=2),
        ours(fanouts=[2, 2], seed=3),
    )
]
walks = [
    pgs.RandomWalk(5, seed=4, mode_options=options).sample(graph, [1, 5, 9]).nodes.tolist()
    for options in (None, {"layout": "packed", "execution": "sample"})
]
print(json.dumps([samples, walks]))
"""
REFUSALS = """
import pygsampler as pgs

class Form:
    def next(self, A, transits, C, step):
        return None

for call in (lambda: pgs.PGSampler([2], mode="queue"), lambda: pgs.program(Form)):
    try:
        call()
    except (TypeError, ValueError) as error:
        print(error)
"""


@pytest.fixture
def package_without_research(tmp_path: Path) -> None:
    """Puts such a package into the folder of ``run_python``."""
    link_without_research(tmp_path)


def samples(output: str) -> list[object]:
    parsed: list[object] = json.loads(output)
    assert len(parsed) == 2
    return parsed


def test_the_package_samples_the_same_without_research(
    run_python: Callable[..., str],
    package_without_research: None,
    tmp_path: Path,
) -> None:
    without = run_python(
        "import sys\n"
        f"{SAMPLES}\n"
        f"assert pgs.__file__.startswith({str(tmp_path)!r}), pgs.__file__\n"
        "assert not [name for name in sys.modules if name.startswith('pygsampler.research')]\n"
    )
    (tmp_path / "pygsampler").rename(tmp_path / "renamed")
    assert samples(without) == samples(run_python(SAMPLES))


def test_without_research_its_modes_and_classes_are_refused(
    run_python: Callable[..., str], package_without_research: None
) -> None:
    assert run_python(REFUSALS).splitlines() == [
        "mode: expected one of ('auto', 'persistent'), got str 'queue'",
        "program Form: expected a function, got a class; pygsampler.research, which reads classes, "
        "is missing",
    ]


def test_an_unknown_mode_is_refused_with_the_registered_modes() -> None:
    assert (*NEIGHBOR, *MODES) == ("auto", "persistent", "fused", "bsp", "queue", "reservoir")
    with pytest.raises(ValueError, match=r"^mode: expected one of \('auto', .*'queue', 'rese"):
        pgs.PGSampler([2], mode="no such mode")


@pytest.mark.parametrize("name", MODES)
def test_a_registered_mode_is_described_by_its_batches(name: str) -> None:
    graph = pgs.Graph.from_csc(range(0, 301, 3), [7 * edge % 100 for edge in range(300)])
    mode = MODES[name]
    seeds = list(range(50))

    def edges(**options: str) -> list[list[int]]:
        batch = pgs.PGSampler([2, 2], seed=1, **options).sample(graph, seeds)
        return [block.edge_ids.tolist() for block in batch.blocks]

    assert (edges(mode=name) == edges()) is mode.equals_auto
    replacing = {"replace": True, "mode": name}
    if mode.takes_replace:
        assert pgs.PGSampler([2], **replacing).mode == name
    else:
        with pytest.raises(ValueError, match=r"^replace: "):
            pgs.PGSampler([2], **replacing)
    for option, default in mode.options.items():
        sampler = pgs.PGSampler([2], mode=name, mode_options={option: default})
        assert sampler.mode_options is None


def test_a_registered_family_counts_the_edges_of_its_samples() -> None:
    graph = pgs.Graph.from_csc(range(0, 301, 3), [7 * edge % 100 for edge in range(300)])
    family = FAMILIES["khop"]
    for sampler in (pgs.research.KHop([3, 2], seed=1), pgs.research.LayerSample([4, 3], seed=1)):
        result = sampler.sample(graph, [1, 5, 9])
        assert isinstance(sampler, family.samplers)
        assert type(result) is family.result
        assert sampler.result_kind == family.result_kind
        assert family.num_edges(sampler.plan, 3) == result.num_edges
