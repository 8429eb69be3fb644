"""``dispatch``: the engine's way to a batch, whatever the sampler makes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygsampler._sampling.device_job import DeviceJob, TorchJob
from pygsampler._sampling.job import PartitionedJob, SampleJob

if TYPE_CHECKING:
    from pygsampler._sampling.request import SampleRequest


def dispatch(request: SampleRequest) -> SampleJob:
    """Begins a batch, by the job for its graph and for where the result is to be."""
    graph = request.graph
    if graph._service is not None:
        return PartitionedJob(request).begin()
    if graph._device < 0:
        return SampleJob(request).begin()
    if request.form == "torch":
        return TorchJob(request).begin()
    return DeviceJob(request).begin()
