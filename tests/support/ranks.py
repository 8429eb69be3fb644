"""Several processes of a Gloo group, as torchrun starts them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.interpreter import prepared

HERE = Path(__file__).parent
# In torch 2.2 a process may wait forever as it leaves a group of Gloo, or abort at its end.
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
    fresh: bool = False,
    imported: Sequence[str] = (),
) -> list[tuple[int, str, str]]:
    """Status, output and errors of each process that runs a function of a module beside this one.

    It is given rank, number of processes, and ``arguments``. With ``leaves`` the group is left in
    order at the end. ``fresh`` processes are interpreters of their own, whose sets of strings have
    orders of their own; others are forks of one that has imported torch, and more modules if they
    are named, which saves seconds.
    """
    shared = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "WORLD_SIZE": str(world),
        "OMP_NUM_THREADS": "1",
        "RANKS_PATH": os.pathsep.join(map(str, (HERE, HERE.parents[1]))),
    }
    variables = [{**shared, "RANK": str(rank)} for rank in range(world)]
    words = [module, name, str(leaves), *arguments]
    if fresh:
        return _run_fresh(words, variables, timeout)
    with tempfile.TemporaryDirectory() as scratch:
        found = prepared(*imported).run_together(
            _RUN, Path(scratch), [words] * world, variables, timeout=timeout
        )
    return [(done.returncode, done.stdout, done.stderr) for done in found]


def _run_fresh(
    words: list[str], variables: list[dict[str, str]], timeout: float
) -> list[tuple[int, str, str]]:
    started = [
        subprocess.Popen(
            [sys.executable, "-c", _RUN, *words],
            env={**os.environ, **own},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for own in variables
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


def check_ranks(world: int, name: str, *arguments: str, **options: Any) -> None:
    """All processes end well."""
    for rank, (status, printed, said) in enumerate(run_ranks(world, name, *arguments, **options)):
        assert status == 0, f"rank {rank}: {said}"
        assert printed.endswith("done\n"), f"rank {rank}: {printed}"
