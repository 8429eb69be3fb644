"""``dispatch``: the engine's way to a batch, whatever the sampler makes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygsampler._engine.pending import is_profiling, profiled
from pygsampler._sampling.device_job import DeviceJob, TorchJob
from pygsampler._sampling.job import PartitionedJob, SampleJob

if TYPE_CHECKING:
    from pygsampler._sampling.request import SampleRequest


def dispatch(request: SampleRequest) -> SampleJob:
    """Begins a batch, by the job for its graph and for where the result is to be."""
    graph, job = request.graph, SampleJob
    if graph._service is not None:
        job = PartitionedJob
    elif graph._device >= 0:
        job = TorchJob if request.form == "torch" else DeviceJob
    if is_profiling():
        with profiled("sample"):
            return job(request).begin()
    return job(request).begin()
