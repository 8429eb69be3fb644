"""Tensors of programs on the emulated GPU: the CPU's bytes, and budgets of ``sample_many``."""

from __future__ import annotations

from pathlib import Path

from tests.gpu import run_with_driver

CODE = """
import warnings
warnings.simplefilter("ignore")
import numpy as np
import pygsampler as pgs
from pygsampler.programs import stack
from tests.support.assertions import assert_equal, content

rng = np.random.default_rng(3)
NODES, EDGES = 200, 2500
graph = pgs.Graph.from_coo(
    *rng.integers(0, NODES, (2, EDGES)),
    num_nodes=NODES,
    edge_data={"w": rng.uniform(0.5, 1.5, EDGES).astype("f4")},
)
tensors = {
    "X": rng.normal(size=(NODES, 5)),
    "V": rng.uniform(0.5, 2, NODES),
    "D": rng.normal(size=(NODES, NODES)),
    "W": rng.normal(size=(5, 3)),
    "a": np.ones(3),
}

@pgs.program
def mixed(A, seeds, *, X, V, D, W, a):
    C = A[:, seeds]
    score = stack([C * ((X @ W) @ (X[seeds] @ W).T), C.add(V, axis=1), C * D]) @ a.softmax()
    chance = (score - C.max() + C.sum() / C.count()).exp().minimum(5)
    B = C.individual_sample(3, chance)
    extra = {"h": A.T @ X, "v": V[seeds], "x": X[seeds], "m": V * 0 + C.mean() + C.min()}
    return B.mul(V[seeds]), extra

sampler = mixed(**tensors, weight="w", seed=2)
there, seeds = graph.to("cuda"), np.array([3, 9, 3, 40, 77, 9])
assert there.device == "cuda:0"

def same(batch):
    ours, theirs = (sampler.sample(g, seeds, epoch=0, batch=batch) for g in (graph, there))
    assert_equal(ours, theirs)

same(0)
same(1)
sampler.update(V=tensors["V"] * 2, D=-tensors["D"])
same(2)
many = [seeds, seeds[:2], seeds]
wanted = [content(batch) for batch in sampler.sample_many(graph, many, epoch=0, batch=0)]
for memory in (None, 1, 10**9):
    found = sampler.sample_many(there, many, epoch=0, batch=0, memory=memory)
    assert [content(batch) for batch in found] == wanted
print("same")
"""


def test_bytes_of_the_cpu(emulator: Path) -> None:
    assert run_with_driver(emulator, CODE) == "same\n"
