"""One of the processes of an epoch of ``peers``: ``python -m benchmarks.gpu.shared_epoch JSON``.

GraphSAGE in DistributedDataParallel, a copy of the graph on each GPU and rows of features in the
memory of all of them together. Process 0 prints a line of JSON.
"""

from __future__ import annotations

import functools
import gc
import json
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import pygsampler as pgs
from pygsampler import distributed
from pygsampler._cli.bench.check import CheckError
from pygsampler.torch import DataLoader, capture

from .. import models
from . import check
from .graphs import make
from .training_steps import stepping

_WIDTH = 128
# The training nodes of ogbn-papers100M, and all its nodes.
_TRAINED, _OF = 1_207_179, 111_059_956
_WRITTEN = 10_000  # rows that are not zeros
_EPOCHS = 3


class Sage(models.Sage):
    """GraphSAGE of the rows that the loader reads."""

    takes_rows = True


def epochs(run: Callable[[], object]) -> float:
    """Seconds of the slowest process in the best of some epochs, after one that does not count."""
    times = []
    for _ in range(_EPOCHS + 1):
        torch.cuda.synchronize()
        dist.barrier()
        begin = time.perf_counter()
        run()
        torch.cuda.synchronize()
        mine = torch.tensor([time.perf_counter() - begin], device="cuda")
        dist.all_reduce(mine, dist.ReduceOp.MAX)
        times.append(float(mine))
    return min(times[1:])


def shared(nodes: int, device: int) -> pgs.Features:
    """Rows of zeros but for some, in the memory of all GPUs; proven by those."""
    # Pages that nobody has written to take no memory of the host.
    table = torch.zeros(nodes, _WIDTH)
    random = torch.Generator().manual_seed(3)
    some = torch.randperm(nodes, generator=random)[:_WRITTEN]
    table[some] = torch.randn(len(some), _WIDTH, generator=random)
    rows = distributed.share_features(pgs.Features.from_tensor(table), device=device)
    if not torch.equal(rows[some.cuda()].cpu(), table[some]):
        raise CheckError("features: other rows than the table's")
    return rows


def passed(loader: DataLoader) -> None:
    for _ in loader:
        pass


def trained(loader: DataLoader, device: int, *, captured: bool) -> Callable[[], object]:
    """An epoch of training, whose model is a new one."""
    torch.manual_seed(0)
    net = Sage(3, torch.empty(0, _WIDTH), helpers=True).cuda()
    stream = torch.cuda.Stream() if captured else torch.cuda.current_stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        # Its nodes of autograd belong to the stream that they are made in.
        model = DistributedDataParallel(net, device_ids=[device], gradient_as_bucket_view=True)
    torch.cuda.current_stream().wait_stream(stream)
    step = stepping(model)
    if captured:
        # DistributedDataParallel has its buckets after eleven steps.
        return capture(step, loader, warmup=11, stream=stream).run

    def run() -> None:
        for batch in loader:
            step(batch)

    return run


def main(given: dict[str, Any]) -> None:
    rank, world = given["rank"], given["world"]
    device = given["devices"][rank]
    torch.cuda.set_device(device)
    dist.init_process_group(
        "nccl", init_method=f"file://{given['meeting']}", rank=rank, world_size=world,
        timeout=timedelta(seconds=300), device_id=torch.device("cuda", device),
    )  # fmt: skip
    made = make(given["shape"], device=f"cuda:{device}")
    check.parity(made, made.on_cpu(), given["fanouts"], "auto")
    nodes = made.num_nodes
    x = shared(nodes, device)
    y = torch.randint(models.CLASSES, (nodes,), device="cuda")
    random = torch.Generator().manual_seed(4)
    seeds = torch.randperm(nodes, generator=random)[: max(nodes * _TRAINED // _OF, 64 * world)]
    of = functools.partial(
        DataLoader, made.graph, seeds.cuda(), given["fanouts"], batch_size=given["batch"],
        shuffle=True, seed=0, rank=rank, world_size=world, drop_last=True,
    )  # fmt: skip
    with_rows = {"features": {"x": x}, "labels": y}
    row = {
        "ways": "epoch",
        "shape": given["shape"],
        "fanouts": given["fanouts"],
        "batch": given["batch"],
        "gpus": world,
        "steps": len(of()),
        "sampling_s": epochs(functools.partial(passed, of())),
        "loader_s": epochs(functools.partial(passed, of(**with_rows))),
        "training_s": epochs(trained(of(**with_rows), device, captured=False)),
    }
    gc.collect()
    fixed = of(**with_rows, static="max")
    row["fixed_s"] = epochs(functools.partial(passed, fixed))
    run = trained(fixed, device, captured=True)
    row["captured_s"] = epochs(run)
    row["gb"] = pgs.cuda.memory_stats(device)["used"] / 1e9
    if rank == 0:
        print(json.dumps({k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()}))
    torch.cuda.synchronize()
    # NCCL waits for graphs that use a communicator before it lets go of that.
    del run
    gc.collect()
    x.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
