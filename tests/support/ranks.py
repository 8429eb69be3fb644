"""Several processes of a Gloo group, as torchrun starts them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
# Of Gloo in torch 2.2 a process may wait forever as it leaves the group, or abort at its end.
_RUN = """
import os, sys
sys.path[:0] = os.environ["RANKS_PATH"].split(os.pathsep)
import torch
import torch.distributed as dist
from importlib import import_module
dist.init_process_group("gloo")
module, name, leaves, *given = sys.argv[1:]
getattr(import_module(module), name)(dist.get_rank(), dist.get_world_size(), *given)
old = torch.__version__ < "2.4"
if leaves == "True":
    dist.barrier() if old else dist.destroy_process_group()
print("done", flush=True)
if old:
    os._exit(0)
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def run_ranks(
    world: int,
    name: str,
    *arguments: str,
    timeout: float = 120,
    leaves: bool = True,
    module: str = "partitioned_ranks",
) -> list[tuple[int, str, str]]:
    """Status, output and errors of each process that runs a function of a module beside this one.

    It is given rank, number of processes, and ``arguments``. With ``leaves`` the group is left in
    order at the end.
    """
    environment = {
        **os.environ,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "WORLD_SIZE": str(world),
        "OMP_NUM_THREADS": "1",
        "RANKS_PATH": os.pathsep.join(map(str, (HERE, HERE.parents[1]))),
    }
    started = [
        subprocess.Popen(
            [sys.executable, "-c", _RUN, module, name, str(leaves), *arguments],
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
            with process:
                process.kill()
    return found


def check_ranks(
    world: int, name: str, *arguments: str, timeout: float = 120, module: str = "partitioned_ranks"
) -> None:
    """All processes end well."""
    for rank, (status, printed, said) in enumerate(
        run_ranks(world, name, *arguments, timeout=timeout, module=module)
    ):
        assert status == 0, f"rank {rank}: {said}"
        assert printed.endswith("done\n"), f"rank {rank}: {printed}"
