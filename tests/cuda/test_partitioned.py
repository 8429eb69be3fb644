"""Graphs in parts whose processes exchange over NCCL: the batches of the whole graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import partitioned_graphs
import pytest
from ranks import check_ranks

from pygsampler.distributed import partition
from tests.gpu import need_cuda


def test_an_exchange_over_nccl(tmp_path: Path, torch: Any) -> None:
    need_cuda(2)
    if not torch.distributed.is_nccl_available():
        pytest.skip("needs a torch that is built with NCCL")
    partition(partitioned_graphs.of("ids"), tmp_path / "ids 2", 2, out_edges=True)
    check_ranks(2, "nccl", str(tmp_path), fresh=True)
