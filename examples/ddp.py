"""GraphSAGE on the Debian packages in several processes, each of which samples its part.

With a GPU for each process they sample and train on GPUs, over NCCL; without any, on the CPU over
gloo. The seeds are dealt out exactly: each belongs to one rank, and all ranks have as many batches.
With --parts each process has a part of the graph alone, and of the features, and asks the others;
with a folder, too, the parts are written there, for torchrun.

    python examples/ddp.py --processes 2
    python examples/ddp.py --processes 2 --parts
    torchrun --nproc-per-node 4 examples/ddp.py
    python examples/ddp.py --processes 3 --parts debian.parts
    torchrun --nproc-per-node 3 examples/ddp.py --parts debian.parts
"""

from __future__ import annotations

import argparse
import os
import socket
import tempfile

import torch
from torch import distributed
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

import pygsampler as pgs
from pygsampler import datasets
from pygsampler.torch import DataLoader


class GraphSAGE(torch.nn.Module):
    def __init__(self, features: int, hidden: int, classes: int) -> None:
        super().__init__()
        sizes = [(features, hidden), (hidden, classes)]
        self.own = torch.nn.ModuleList(torch.nn.Linear(*size) for size in sizes)
        self.others = torch.nn.ModuleList(torch.nn.Linear(*size, bias=False) for size in sizes)

    def forward(self, blocks, h: torch.Tensor) -> torch.Tensor:
        for block, own, others in zip(blocks, self.own, self.others, strict=True):
            src, dst = block.coo()
            count = block.num_dst_nodes
            sums = h.new_zeros(count, own.out_features).index_add_(0, dst, others(h)[src])
            degrees = block.indptr.diff().clamp(min=1).unsqueeze(1)
            h = own(h[:count]) + sums / degrees
            if own is not self.own[-1]:
                h = functional.relu(h)
        return h


def train(rank: int, processes: int, epochs: int, seed: int, parts: str | None) -> None:
    """One process: its rank's part of every epoch."""
    on_gpu = parts is None and torch.cuda.is_available() and torch.cuda.device_count() >= processes
    device = torch.device("cuda", rank) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    else:
        # The processes share the cores.
        cores = max(1, (os.cpu_count() or 1) // processes)
        torch.set_num_threads(cores)
        pgs.set_num_threads(cores)
    distributed.init_process_group("nccl" if on_gpu else "gloo", rank=rank, world_size=processes)
    torch.manual_seed(seed)
    data = datasets.debian()
    labels = torch.from_numpy(data.labels).to(device)
    if parts is None:
        graph = data.graph()
        features = torch.from_numpy(data.features()).to(device)
    else:
        graph = pgs.distributed.open_graph(parts)
        features = graph.features("x")
    loader = DataLoader(
        graph,
        data.train,
        [5, 5],
        batch_size=1024,
        shuffle=True,
        seed=seed,
        rank=rank,
        world_size=processes,
        device=device,
        features={"x": features},
    )
    plain = GraphSAGE(data.num_features, 32, data.num_classes).to(device)
    model = DistributedDataParallel(plain, device_ids=[rank] if on_gpu else None)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(epochs):
        total = torch.zeros(2, device=device)
        for batch in loader:
            logits = model(batch.blocks, batch.x)[batch.output_index]
            loss = functional.cross_entropy(logits, labels[batch.output_nodes])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seeds = len(batch.output_nodes)
            total += torch.tensor([seeds * loss.item(), seeds], device=device)
        distributed.all_reduce(total)
        if rank == 0:
            loss, seeds = total.tolist()
            print(f"epoch {epoch}: {seeds:.0f} seeds, loss {loss / seeds:.3f}", flush=True)
    if parts is not None:
        graph.close()
    distributed.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--parts", nargs="?", const="", metavar="FOLDER")
    arguments = parser.parse_args()
    if "RANK" in os.environ:
        # torchrun has started the processes.
        if arguments.parts == "":
            parser.error("--parts: expected the folder that this example has written")
        ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        train(*ranks, arguments.epochs, arguments.seed, arguments.parts)
        return
    with tempfile.TemporaryDirectory() as folder:
        parts = arguments.parts
        if parts is not None:
            data = datasets.debian()
            graph = data.graph().with_data(node_data={"x": data.features()})
            where = parts or f"{folder}/debian"
            made = pgs.distributed.partition(graph, where, arguments.processes, replace=True)
            parts = str(made.folder)
        spawn(arguments.processes, arguments.epochs, arguments.seed, parts)


def spawn(processes: int, *options: object) -> None:
    """Starts the processes, and waits for them."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(port)
    torch.multiprocessing.spawn(train, (processes, *options), nprocs=processes)


if __name__ == "__main__":
    main()
