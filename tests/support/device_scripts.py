"""Scripts in a process of their own whose driver is the emulator's, with a small graph at hand."""

from __future__ import annotations

import textwrap
from pathlib import Path

from tests.gpu import run_with_driver

PRELUDE = """
import gc, os, pickle
import numpy as np
import pygsampler as pgs
from pygsampler._engine import library

def graph(ids=np.int64, edge_ids=None):
    random = np.random.default_rng(3)
    indptr = np.concatenate([[0], random.integers(0, 9, 200).cumsum()])
    indices = random.integers(0, 200, indptr[-1]).astype(ids)
    if edge_ids is not None:
        edge_ids = random.permutation(len(indices)).astype(edge_ids)
    return pgs.Graph.from_csc(indptr, indices, edge_ids=edge_ids)

def lists(batch):
    blocks = [(b.indptr, b.indices, b.edge_ids, b.src_nodes, b.dst_nodes) for b in batch.blocks]
    arrays = [batch.input_nodes, batch.output_nodes, batch.output_index, *sum(blocks, ())]
    return [a.cpu().tolist() for a in arrays]

def error(work, *args, **options):
    try:
        return work(*args, **options)
    except Exception as caught:
        return f"{type(caught).__name__}: {caught}"

def in_child(work):
    read, write = os.pipe()
    if not os.fork():
        try:
            os.write(write, str(error(work)).encode())
        finally:
            os._exit(0)
    os.close(write)
    os.wait()
    return open(read).read()

def handed_over(stats="used"):
    gc.collect()
    return pgs.cuda.memory_stats()[stats]

cpu = graph()
sampler = pgs.PGSampler([4, 3], seed=1)
SEEDS = [5, 6, 199, 5]
IN_FLIGHT = dict(epoch=0, batch=2, form="torch", asynchronous=True)
want = lists(sampler.sample(cpu, SEEDS, batch=2))
"""


def run(driver: Path, script: str, **variables: str) -> list[str]:
    code = "import warnings; warnings.simplefilter('ignore', DeprecationWarning)\n" + PRELUDE
    # Each array has pages of its own: the emulator's memory is the heap's too, and pages that are
    # locked for an array would hold memory of a device at the same time.
    alone = {"MALLOC_MMAP_THRESHOLD_": "1024", **variables}
    return run_with_driver(driver, code + textwrap.dedent(script), **alone).splitlines()
