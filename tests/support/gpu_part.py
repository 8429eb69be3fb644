"""The code that parts of benchmarks.gpu need on the emulator, where torch's memory is the host's.

``PRELUDE`` goes before a script, and is formatted with ``root``: ``on_emulator(module)`` is a
context in which the part ``module`` creates small graphs, and times of events mean nothing.
"""

PRELUDE = """
import contextlib
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
from pygsampler._engine import request_layout as at

class Event:
    def __init__(self, enable_timing): pass
    def record(self): pass
    def synchronize(self): pass
    def elapsed_time(self, other): return 1.0

def make(name, *dtype):
    made = graphs.make(name, *dtype, device="cpu")
    made.graph = made.graph.to("cuda")
    return made

def on_host(function):
    return lambda *a, device=None, **k: function(*a, **k)

class FromHost(Direct):
    def __init__(self, *a, **k):
        super().__init__(*a, **k)
        submit = self._submit
        def on_host(address, size):
            words = (ctypes.c_int64 * size).from_address(address)
            words[at.FLAGS] &= ~at.FLAG_ON_DEVICE
            return submit(address, size)
        self._submit = on_host

@contextlib.contextmanager
def on_emulator(module, **others):
    as_torch = pgs.MiniBatch.torch
    with mock.patch.multiple(
        torch.cuda,
        current_stream=lambda: SimpleNamespace(cuda_stream=0),
        synchronize=lambda: None,
        empty_cache=lambda: None,
        get_device_properties=lambda i: SimpleNamespace(multi_processor_count=1, total_memory=1),
        Event=Event,
    ), mock.patch.multiple(torch, empty=on_host(torch.empty), zeros=on_host(torch.zeros)), \\
         mock.patch.multiple(module, make=make, **others), \\
         mock.patch.object(module, "Direct", FromHost, create=True), \\
         mock.patch.object(pgs.MiniBatch, "torch", lambda self: as_torch(self.cpu())):
        yield
"""
