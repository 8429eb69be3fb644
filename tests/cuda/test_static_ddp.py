"""Captured steps of a model in DistributedDataParallel, over NCCL: those of an eager training."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.gpu import need_cuda

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tests" / "support" / "ddp_static.py"
# Torch's notes on CUDA graphs ask for it.
VARIABLES = {"TORCH_NCCL_ASYNC_ERROR_HANDLING": "0"}
# Torch warns, and goes on, if the model was wrapped in another stream than it is captured in.
WARNING = "error:The AccumulateGrad node:UserWarning"
SECONDS = 150


@pytest.mark.parametrize("ranks", [1, 2])
def test_parameters_of_an_eager_training(tmp_path: Path, torch: Any, ranks: int) -> None:
    need_cuda(ranks)
    if not torch.distributed.is_nccl_available():
        pytest.skip("needs a torch that is built with NCCL")
    path = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    environment = {**os.environ, **VARIABLES, "PYTHONPATH": path}
    command = [sys.executable, "-W", WARNING, str(SCRIPT)]
    outputs = [tmp_path / f"rank{rank}" for rank in range(ranks)]
    started = []
    for rank, output in enumerate(outputs):
        arguments = [str(rank), str(ranks), str(tmp_path / "meeting")]
        with output.open("wb") as file:
            started.append(
                subprocess.Popen([*command, *arguments], env=environment, stdout=file, stderr=file)
            )
    try:
        end = time.monotonic() + SECONDS
        # Others wait for one that failed, and would never say why.
        while any(process.poll() is None for process in started) and time.monotonic() < end:
            if any(process.poll() for process in started):
                break
            time.sleep(0.1)
    finally:
        codes = [process.poll() for process in started]
        for process in started:
            process.kill()
            process.wait()
    said = [output.read_text() for output in outputs]
    assert codes == [0] * ranks, f"{codes}, None where one had to be ended\n" + "\n".join(said)
    assert all(text.splitlines()[-1:] == ["alike"] for text in said), said
