"""Budgets of bytes for batches that a GPU samples ahead, on the emulator.

Torch does not take the emulator for a GPU: its tensors and its seeds are on the host.
"""

from __future__ import annotations

from pathlib import Path

from tests.gpu import run_with_driver

CODE = """
import warnings
warnings.simplefilter("ignore")
import sys
sys.path.append("tests/support")
import numpy as np
import pygsampler as pgs
import pygsampler.torch as pgt
import torch_cpu
from pygsampler._loader import arguments, node_seeds
from pygsampler._sampling import torch_group

arguments._check = lambda index: None
node_seeds.to_device = lambda values, index: values
rng = np.random.default_rng(3)
graph = pgs.Graph.from_coo(*rng.integers(0, 500, (2, 6000)), num_nodes=500).to("cuda")
groups = []
launch = torch_group.TorchLauncher.__call__

def counted(launcher, seeds, batches):
    groups.append(len(batches))
    return launch(launcher, seeds, batches)

torch_group.TorchLauncher.__call__ = counted

def passed(memory):
    groups.clear()
    how = dict(batch_size=16, prefetch=8, prefetch_memory=memory, seed=1)
    loader = pgt.DataLoader(graph, np.arange(320), [4, 3], **how)
    batches = [batch.input_nodes.tolist() for batch in loader]
    return batches, list(groups)

plain, sizes = passed(None)
assert sizes == [4] * 5
found = []
for memory in [1, *(1 << bits for bits in range(12, 30))]:
    batches, sizes = passed(memory)
    assert batches == plain
    # All groups of an epoch have one size, but for the last.
    assert set(sizes[:-1]) == {sizes[0]}
    found.append(sizes[0])
assert found[0] == 1 and found[-1] == 4 and sorted(found) == found and {2, 3} & {*found}
print("same")
"""


def test_groups_are_as_large_as_a_budget_has_room_for(emulator: Path) -> None:
    assert run_with_driver(emulator, CODE) == "same\n"
