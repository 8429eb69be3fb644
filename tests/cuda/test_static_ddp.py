"""Captured steps of a model in DistributedDataParallel, over NCCL: those of an eager training."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cuda.conftest import torch_on_cuda
from tests.gpu import need_cuda

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tests" / "support" / "ddp_static.py"
# Torch's notes on CUDA graphs ask for it.
VARIABLES = {"TORCH_NCCL_ASYNC_ERROR_HANDLING": "0"}
# Where the model was wrapped in another stream than it is captured in, torch says so and goes on.
WARNING = "error:The AccumulateGrad node:UserWarning"
SECONDS = 150


@pytest.mark.parametrize("ranks", [1, 2])
def test_parameters_of_an_eager_training(tmp_path: Path, ranks: int) -> None:
    torch = torch_on_cuda()
    need_cuda(ranks)
    if not torch.distributed.is_nccl_available():
        pytest.skip("needs a torch that is built with NCCL")
    path = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    environment = {**os.environ, **VARIABLES, "PYTHONPATH": path}
    command = [sys.executable, "-W", WARNING, str(SCRIPT)]
    started = [
        subprocess.Popen(
            [*command, str(rank), str(ranks), str(tmp_path / "meeting")],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(ranks)
    ]
    try:
        said = [process.communicate(timeout=SECONDS) for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
    for process, (out, err) in zip(started, said, strict=True):
        assert (process.returncode, out.splitlines()[-1:]) == (0, ["alike"]), out + err
