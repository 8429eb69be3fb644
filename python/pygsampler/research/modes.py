"""The modes of ``PGSampler`` that are there for comparison, with their options.

``"fused"``
    All hops in one launch on a GPU, with rows dealt out beforehand.
``"bsp"``
    A few launches for each hop on a GPU, whose size the host reads in between. ``gpu_share`` does
    not bound them.
``"queue"``
    The task queue of the paper PGSampler (sections III-B and III-C), without a barrier between
    hops, on a GPU and on the CPU. ``ordered`` (True): False skips, on a GPU, the step that numbers
    nodes in the canonical order; the edges are the same in original ids, and the nodes after the
    seeds are numbered as they arrive. ``fetch_size`` (None), from 1 to 256: the number of tasks
    that a worker, or a block of threads, takes from the queue at a time. None is 16 on the CPU, and
    on a GPU more where more tasks wait. The paper has 5. It changes no batch.
``"reservoir"``
    The kernels of the paper "TurboGNN: Improving the End-to-End Performance for Sampling-Based GNN
    Training on GPUs" (Wu et al., section III-B), which read every row in full: its batches are
    uniform too, but by other random numbers, so they are other batches. Its options are the paper's
    (docs/research/turbognn.md).

The CPU samples in ``"fused"`` and ``"bsp"`` as in mode ``"auto"``.

None of these modes goes with ``frontier="new"``, ``disjoint=True``, ``prob``, ``mask`` or
``edge_weights``, and ``"reservoir"`` goes without ``replace`` alone.
"""

from __future__ import annotations

from pygsampler._sampling.extensions import Mode

__all__ = ["MODES"]

MODES = {
    "fused": Mode({}),
    "bsp": Mode({}),
    "queue": Mode({"ordered": True, "fetch_size": None}, has_cpu_code=True),
    "reservoir": Mode(
        {
            "degree_threshold": None,
            "block_threshold": None,
            "memory": "adaptive",
            "schedule": True,
            "streams": None,
        },
        has_cpu_code=True,
        equals_auto=False,
        takes_replace=False,
    ),
}
