"""LinkLoader through the CUDA engine and its kernels, on the emulator of tests/emulator.

Torch does not take the emulator for a GPU. Its memory is the host's, so tensors on the host stand
in for those that torch would allocate on the device.
"""

from __future__ import annotations

from pathlib import Path

from tests.gpu import run_with_driver

CODE = """
import sys
sys.path.append("tests/support")
import torch
import pygsampler as pgs
import torch_cpu
from assertions import content
from pygsampler._loader import arguments, edge_seeds, pipeline
from pygsampler.torch import LinkLoader, NegativeSampling

arguments._check = lambda index: None
# Batches with excluded edges come in memory of the engine's, which torch would take for a GPU's.
as_torch = pipeline.as_torch
pipeline.as_torch = lambda batch: as_torch(
    batch.cpu() if isinstance(batch, pgs.MiniBatch) else batch
)
edge_seeds.to_device = lambda values, index: values.clone()

random = torch.Generator().manual_seed(7)
src, dst = torch.randint(0, 500, (2, 4000), generator=random)
graph = pgs.Graph.from_coo(src, dst, num_nodes=505)

for exclude in ("self", None):
    for prefetch in (0, 3, 12):
        for mode in ("binary", "triplet"):
            options = dict(
                batch_size=300, shuffle=True, seed=1, prefetch=prefetch, exclude=exclude,
                negative_sampling=NegativeSampling("structural", 2, mode=mode),
            )
            made = []
            for where in ("cpu", "cuda"):
                edges = torch.arange(0, 4000, 3)
                loader = LinkLoader(graph, edges, [4, 3], device=where, **options)
                assert loader.device.startswith(where)
                made.append([content(batch) for batch in loader])
            assert len(made[0]) == 5
            assert made[0] == made[1], options

# Rows by time, which leave the edges of the batch out, and their reverses.
when = torch.arange(4000) % 90
graph = pgs.Graph.from_coo(src, dst, num_nodes=505, edge_data={"t": when, "w": when / 3})
edges = torch.arange(0, 4000, 3)
for options in (
    {"exclude": "self"}, {"exclude": "reverse_id", "reverse_eids": torch.arange(3999, -1, -1)},
):
    for prob in (None, "w"):
        made = []
        for where in ("cpu", "cuda"):
            sampler = pgs.PGSampler([40, 3], seed=2, temporal="t", prob=prob)
            options |= dict(batch_size=300, seed=1, device=where, seed_time=when[edges])
            batches = list(LinkLoader(graph, edges, sampler, **options))
            made.append([content(batch) for batch in batches])
            for batch in batches:
                own = torch.isin(batch.minibatch.blocks[0].edge_ids, edges[batch.input_id])
                assert not own.any() and batch.minibatch.blocks[0].num_edges
        assert made[0] == made[1], (options, prob)
print(pgs.cuda.memory_stats(0)["flights"])
"""


def test_batches_of_the_cpu(emulator: Path) -> None:
    assert run_with_driver(emulator, CODE) == "0\n"
