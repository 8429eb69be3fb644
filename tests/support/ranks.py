"""Several processes of a Gloo group, as torchrun starts them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

_RUN = """
import os, sys
sys.path.insert(0, os.environ["RANKS_PATH"])
import torch.distributed as dist
import parts_ranks
dist.init_process_group("gloo")
name, leaves, *given = sys.argv[1:]
getattr(parts_ranks, name)(dist.get_rank(), dist.get_world_size(), *given)
if leaves == "True":
    dist.destroy_process_group()
print("done", flush=True)
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def run_ranks(
    world: int, name: str, *arguments: str, timeout: float = 120, leaves: bool = True
) -> list[tuple[int, str, str]]:
    """Status, output and errors of each process that runs a function of ``parts_ranks``.

    It is given rank, number of processes, and ``arguments``. With ``leaves`` the group is left in
    order at the end.
    """
    environment = {
        **os.environ,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "WORLD_SIZE": str(world),
        "OMP_NUM_THREADS": "1",
        "RANKS_PATH": str(Path(__file__).parent),
    }
    started = [
        subprocess.Popen(
            [sys.executable, "-c", _RUN, name, str(leaves), *arguments],
            env={**environment, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(world)
    ]
    found = []
    try:
        for process in started:
            printed, said = process.communicate(timeout=timeout)
            found.append((process.returncode, printed, said))
    finally:
        for process in started:
            process.kill()
    return found


def check_ranks(world: int, name: str, *arguments: str, timeout: float = 120) -> None:
    """All processes end well."""
    for rank, (status, printed, said) in enumerate(
        run_ranks(world, name, *arguments, timeout=timeout)
    ):
        assert status == 0, f"rank {rank}: {said}"
        assert printed.endswith("done\n"), f"rank {rank}: {printed}"
