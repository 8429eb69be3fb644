"""One rank of a training by DistributedDataParallel: eagerly, and each step in one CUDA graph.

    python ddp_static.py RANK WORLD_SIZE FILE

Ranks meet by FILE, which must not be there. Prints "alike" where both trainings end with the same
parameters, on all ranks, and their losses agree; fails where not.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import distributed
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

import pygsampler as pgs
from pygsampler.torch import DataLoader, capture

NODES, CLASSES, WIDTH, BATCH, EPOCHS = 4000, 5, 16, 64, 3


class Sage(torch.nn.Module):
    def __init__(self, width: int = WIDTH, classes: int = CLASSES) -> None:
        super().__init__()
        pairs = (width, 32), (32, classes)
        self.own = torch.nn.ModuleList(torch.nn.Linear(*pair) for pair in pairs)
        self.others = torch.nn.ModuleList(torch.nn.Linear(*pair, bias=False) for pair in pairs)

    def forward(self, batch: Any) -> torch.Tensor:
        first, last = batch.blocks
        h = self.own[0](batch.x[: first.num_dst_nodes]) + self.others[0](first.mean(batch.x))
        h = torch.relu(h)
        h = self.own[1](h[: last.num_dst_nodes]) + self.others[1](last.mean(h))
        return h[batch.output_index]


def train(
    graph: pgs.Graph, data: dict[str, Any], rank: int, ranks: int, captured: bool, view: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Losses of all batches of this rank, and the parameters in the end."""
    torch.manual_seed(0)
    net = Sage().cuda()
    stream = torch.cuda.Stream() if captured else torch.cuda.current_stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        # Its nodes of autograd belong to the stream that they are made in.
        model = DistributedDataParallel(net, device_ids=[rank], gradient_as_bucket_view=view)
    torch.cuda.current_stream().wait_stream(stream)
    # Steps in proportion to gradients: Adam's would show the order in which those were added up.
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    options = {"static": "max"} if captured else {}
    # Each rank has labels of its own, so that it ends elsewhere unless gradients are exchanged.
    loader = DataLoader(
        graph, range(BATCH * 14 * ranks), [6, 4], batch_size=BATCH, shuffle=True, seed=5,
        rank=rank, world_size=ranks, **data, **options,
    )  # fmt: skip

    def step(batch: Any) -> torch.Tensor:
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(batch), batch.y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    if not captured:
        losses = torch.stack([step(batch) for _ in range(EPOCHS) for batch in loader])
    else:
        loop = capture(step, loader, warmup=11, stream=stream)
        losses = torch.cat([loop.run() for _ in range(EPOCHS)])
        assert loop.captured
        assert loader._static.epochs.remade == 0
        torch.cuda.synchronize()
        # NCCL waits for graphs that use a communicator before it lets go of that.
        del loop
    assert len(losses) == EPOCHS * 14
    return losses, torch.nn.utils.parameters_to_vector(net.parameters()).detach()


def main(rank: int, ranks: int, file: str) -> None:
    torch.cuda.set_device(rank)
    distributed.init_process_group(
        "nccl", init_method=f"file://{file}", rank=rank, world_size=ranks,
        device_id=torch.device("cuda", rank),
    )  # fmt: skip
    random = torch.Generator().manual_seed(7)
    indptr = torch.zeros(NODES + 1, dtype=torch.int64)
    indptr[1:] = torch.randint(0, 30, (NODES,), generator=random).cumsum(0)
    indices = torch.randint(0, NODES, (int(indptr[-1]),), generator=random)
    graph = pgs.Graph.from_csc(indptr, indices).to(f"cuda:{rank}")
    x = torch.randn(NODES, WIDTH, generator=random).cuda()
    y = (torch.randint(CLASSES, (NODES,), generator=random).cuda() + rank) % CLASSES
    data = {"features": {"x": x}, "labels": y}
    torch.manual_seed(0)
    first = torch.nn.utils.parameters_to_vector(Sage().parameters()).cuda()
    for view in (False, True):
        losses, last = train(graph, data, rank, ranks, captured=False, view=view)
        got, mine = train(graph, data, rank, ranks, captured=True, view=view)
        torch.testing.assert_close(got, losses, rtol=1e-3, atol=1e-3)
        torch.testing.assert_close(mine, last, rtol=1e-3, atol=1e-3)
        assert (last - first).norm() > 0.1 * first.norm()
        everyone = [torch.empty_like(mine) for _ in range(ranks)]
        distributed.all_gather(everyone, mine)
        # To the bit: all of them add the same gradients up.
        assert all(torch.equal(other, mine) for other in everyone)
    torch.cuda.synchronize()
    distributed.destroy_process_group()
    print("alike")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
