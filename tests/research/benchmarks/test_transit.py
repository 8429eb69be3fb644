"""The benchmark of walks by transits goes through all of it on the emulator.

Its times mean nothing there, and the profiler sees no kernels. Torch's memory is the host's.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.gpu import run_with_driver

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[3]

CODE = """
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest import mock
sys.path[:0] = [{root!r}, {root!r} + "/tests/support"]
import torch
import torch_cpu
from benchmarks.gpu import graphs, record, summary, walks
from benchmarks.research import transit

def kernels(sampler, graph, seeds):
    return {{"transit_open": 1.0, "transit_step32": 3.0, "else": 9.0}} if {seen} else {{}}

with mock.patch.multiple(
    torch.cuda,
    current_stream=lambda *a: SimpleNamespace(cuda_stream=0),
    synchronize=lambda: None,
    empty_cache=lambda: None,
    get_device_properties=lambda i: SimpleNamespace(multi_processor_count=1, total_memory=1),
), mock.patch.multiple(
    transit, make=lambda name: graphs.make(name, device="cpu"), kernels=kernels,
    KINDS={{name: {{**transit.KINDS[name], "length": 20}} for name in {kinds!r}}}, _ROUNDS=3,
):
    kept = record.Record("transit", Path({out!r}), ["transit", "--trial"], "0" * 40)
    transit.run(kept, record.Budget(600), True)
    kept.write()
print("\\n".join(summary.lines(Path({out!r}))))
"""


KINDS = ("DeepWalk", "DeepWalk, unweighted", "PPR", "node2vec")


@pytest.mark.parametrize(("kinds", "seen"), [(KINDS, True), (KINDS[:1], False)])
def test_on_the_emulator(
    emulator: Path, tmp_path: Path, kinds: tuple[str, ...], seen: bool
) -> None:
    pytest.importorskip("torch", reason="needs torch")
    code = CODE.format(root=str(ROOT), out=str(tmp_path), kinds=kinds, seen=seen)
    text = run_with_driver(emulator, code)
    content = json.loads((tmp_path / "transit.json").read_text())
    rows = content["rows"]
    assert {(row["walks"], row["walk"]) for row in rows} == {
        (n, k) for n in (100, 1000) for k in kinds
    }
    assert not content["left_out"]
    for row in rows:
        assert set(row["us"]) == set(row["gsteps"]) == {"sample", "csr", "transit"}
        # Every vertex of the graph has an edge, so that walks end by stopping alone.
        whole = row["walks"] * row["length"]
        assert row["steps"] == whole if row["walk"] != "PPR" else 0 < row["steps"] < whole
        assert row["index_share"] == (0.25 if seen else None)
    assert ("the profiler saw no kernels" in (content["note"] or "")) is not seen
    assert "x of sample" in text
