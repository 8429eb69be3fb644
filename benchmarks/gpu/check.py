"""No time without proof: what a case must show before its clock starts."""

from __future__ import annotations

from collections.abc import Sequence

import torch

import pygsampler as pgs
from pygsampler._cli.bench.check import CheckError

from .cases import Case
from .direct import Direct, unequal
from .graphs import Made

# The seeds of a batch that is compared with the CPU, which takes long for a large one.
_SEEDS = 256
# Two sets of seeds differ in the number of edges by the hubs among them.
_NOISE = 0.04


def parity(made: Made, on_cpu: pgs.Graph, fanouts: Sequence[int], mode: str) -> None:
    """CheckError unless a small batch is the CPU engine's byte for byte."""
    seeds = made.seeds(_SEEDS, 1, torch.int64, seed=99)[0]
    got = pgs.PGSampler(fanouts, seed=1, mode=mode).sample(made.graph, seeds, epoch=3, batch=5)
    # The batches of all other modes are equal.
    alike = mode if mode == "reservoir" else "auto"
    want = pgs.PGSampler(fanouts, seed=1, mode=alike).sample(on_cpu, seeds.cpu(), epoch=3, batch=5)
    where = unequal(got, want)
    if where is not None:
        raise CheckError(f"{made.name} {list(fanouts)} mode {mode}: {where} is not the CPU's")


def large(direct: Direct, on_cpu: pgs.Graph, seeds: torch.Tensor) -> None:
    """CheckError unless a batch of the size that is timed is the CPU engine's, too."""
    got = direct.sampler.sample(direct.made.graph, seeds, epoch=0, batch=0)
    want = direct.sampler.sample(on_cpu, seeds.cpu(), epoch=0, batch=0)
    where = unequal(got, want)
    if where is not None:
        raise CheckError(f"{direct.made.name} {direct.sampler}: {where} is not the CPU's")


def edges(case: Case, found: Sequence[tuple[int, int]]) -> None:
    """CheckError unless batches have as many edges as those of the reference, within noise."""
    mean = sum(count for count, _ in found) / len(found)
    if case.edges and abs(mean / case.edges - 1) > _NOISE:
        raise CheckError(f"{case}: expected about {case.edges} edges a batch, got {mean:.0f}")
