"""The benchmark of TurboGNN's kernels goes through all of it on the emulator.

Its times mean nothing there, and the profiler sees no kernels. Torch's memory is the host's.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.gpu import run_with_driver

ROOT = Path(__file__).resolve().parents[2]

CODE = """
import ctypes
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest import mock
sys.path[:0] = [{root!r}, {root!r} + "/tests/support"]
import torch
import pygsampler as pgs
import torch_cpu
from benchmarks.gpu import graphs, record, summary
from benchmarks.gpu.direct import Direct
from benchmarks.research import turbo
from pygsampler._engine import request_layout as at

class Event:
    def __init__(self, enable_timing): pass
    def record(self): pass
    def synchronize(self): pass
    def elapsed_time(self, other): return 1.0

def make(name):
    made = graphs.make(name, device="cpu")
    made.graph = made.graph.to("cuda")
    return made

def on_host(function):
    return lambda *a, device=None, **k: function(*a, **k)

def of_host(self):
    submit = self._submit
    def on_host(address, size):
        words = (ctypes.c_int64 * size).from_address(address)
        words[at.FLAGS] &= ~at.FLAG_ON_DEVICE
        return submit(address, size)
    self._submit = on_host

begin, as_torch = Direct.__init__, pgs.MiniBatch.torch
class FromHost(Direct):
    def __init__(self, *a, **k):
        super().__init__(*a, **k)
        of_host(self)

def kernels(direct, batches):
    if direct.sampler.mode == "persistent" or not {seen}:
        return {{}}
    found = {{"reservoir_count32": 1.0, "reservoir_draw32": 3.0}}
    options = direct.sampler.mode_options or {{}}
    # What the sweep is to find.
    good = (options.get("degree_threshold") == 64) + (options.get("block_threshold") == 512)
    return found | {{"reservoir_order": 2.0 - 0.5 * good}}

with mock.patch.multiple(
    torch.cuda,
    current_stream=lambda: SimpleNamespace(cuda_stream=0),
    synchronize=lambda: None,
    empty_cache=lambda: None,
    get_device_properties=lambda i: SimpleNamespace(multi_processor_count=1, total_memory=1),
    Event=Event,
), mock.patch.multiple(torch, empty=on_host(torch.empty), zeros=on_host(torch.zeros)), \\
     mock.patch.multiple(turbo, make=make, Direct=FromHost, drawing=kernels), \\
     mock.patch.object(pgs.MiniBatch, "torch", lambda self: as_torch(self.cpu())):
    kept = record.Record("turbo", Path({out!r}), ["turbo", "--trial"], "0" * 40)
    turbo.run(kept, record.Budget(600), True)
    kept.write()
print("\\n".join(summary.lines(Path({out!r}))))
"""


@pytest.mark.parametrize("seen", [True, False])
def test_on_the_emulator(emulator: Path, tmp_path: Path, seen: bool) -> None:
    pytest.importorskip("torch", reason="needs torch")
    text = run_with_driver(emulator, CODE.format(root=str(ROOT), out=str(tmp_path), seen=seen))
    content = json.loads((tmp_path / "turbo.json").read_text())
    kinds = [row["kind"] for row in content["rows"]]
    assert (kinds.count("kernel"), kinds.count("hops")) == (6, 1)
    assert kinds.count("sweep") == 18
    assert not content["left_out"]
    for row in content["rows"]:
        if row["kind"] != "sweep":
            assert set(row["call_us"]) >= {"off", "B", "B+S", "B+S+A", "streams", "bsp"}
            assert row["edges"] > 0
    if seen:
        assert content["note"] is None
        assert content["thresholds"] == {"degree_threshold": 64, "block_threshold": 512}
        assert all(row["bytes"] > 0 for row in content["rows"] if row["kind"] == "kernel")
        assert all("of_copy" in row for row in content["rows"] if row["kind"] == "kernel")
        assert "ms to draw every row" in text
    else:
        assert "the profiler saw no kernels" in content["note"]
