"""``SampleJob`` and ``PartitionedJob``: a batch on its way on the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygsampler._engine import request_layout as at
from pygsampler._engine.pending import PackedJob

if TYPE_CHECKING:
    from pygsampler._sampling.request import SampleRequest


class SampleJob(PackedJob):
    """A batch that the engine samples in the background, returned by ``PGSampler.submit``.

    ``result()`` waits for it, ``cancel()`` ends it, and so does dropping the job. The job holds the
    graph's arrays. It belongs to the process that submitted it: it cannot be pickled, and in a
    forked child ``result()`` raises Error.
    """

    __slots__ = ("_request",)

    def __init__(self, request: SampleRequest) -> None:
        PackedJob.__init__(self, request.words)
        self._request = request

    @property
    def epoch(self) -> int:
        """The epoch of the batch."""
        return self._request.epoch

    @property
    def batch(self) -> int:
        """The number of the batch in its epoch."""
        return self._request.batch

    def result(self) -> Any:
        """Waits for the result and returns it; a second call returns the same object.

        Ctrl-C while waiting cancels the job and raises KeyboardInterrupt.

        Raises
        ------
        IndexError, CudaError, MemoryError, ...
            The error of the batch, as ``PGSampler.sample`` raises it.
        Error
            The job was cancelled, or belongs to another process.
        """
        return self._result()

    def __repr__(self) -> str:
        return f"Job(epoch={self.epoch}, batch={self.batch}, {self._state()})"

    def _wrap_result(self, engine_result: Any) -> Any:
        """The batch that the engine has handed over; None where it is still to come."""
        request = self._request
        if self._words[at.FLAGS] & at.FLAG_EDGE_LISTS:
            return engine_result
        return request.sampler._view(request.graph, engine_result, request.epoch, request.batch)


class PartitionedJob(SampleJob):
    """A batch of a partitioned graph, whose service brings the rows that the job asks for."""

    __slots__ = ("_asks",)

    # An object that has to live as long as the job asks for rows.
    _asks: Any

    def begin(self) -> PartitionedJob:
        """Submits the request, and tells the graph's service of the job."""
        super().begin()
        request = self._request
        sampler = request.sampler
        asked = request.row_plan or sampler._plan
        when = request.epoch, request.batch
        self._asks = request.graph._service.register(
            self._number, asked.document, sampler._seed, when, request.excluded
        )
        return self
