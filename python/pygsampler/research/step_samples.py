"""``StepSamples``: samples that ``KHop`` and ``LayerSample`` return, in any library's arrays."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any, ClassVar

from pygsampler._batch import layout as at
from pygsampler._batch.engine_result import ArrayT, EngineResult
from pygsampler._batch.html_tables import arrays_html

if TYPE_CHECKING:
    import numpy
    import torch

    from pygsampler._engine.memory import Memory

__all__ = ["StepSamples"]


def __dir__() -> list[str]:
    return sorted(__all__)


class StepSamples(EngineResult[ArrayT]):
    """Samples from some seeds, step by step: what NextDoor calls samples of transits.

    ``len(samples)`` of them, one for each seed. Step i of a sample has ``widths[i]`` nodes, each in
    the place that its draw has; -1 stands where there was nothing to draw. All arrays are views of
    one memory, which lives as long as any of them. ``form`` says whose arrays they are: ``"array"``
    (``pygsampler.Array``), ``"torch"``, as a ``DataLoader`` yields them, or ``"numpy"``. Samples of
    a graph on a GPU are on that GPU, complete for every stream; ``cpu()`` copies them.
    """

    _signature, _num_words = at.STEP_MAGIC, at.STEP_WORDS
    _descriptors: ClassVar = {row.name: row for row in at.STEP_ROWS}
    _makers, _noun = "KHop.sample, LayerSample.sample, and by loaders", "samples"

    @classmethod
    def _from_memory(cls, memory: Memory, epoch: int, batch: int, seed: int) -> StepSamples[Any]:
        attributes = {"epoch": epoch, "batch": batch, "seed": seed}
        return cls._of_memory(memory, memory.data, memory.header, memory.device, attributes)

    def __len__(self) -> int:
        return self._words[at.STEP_NUM_SAMPLES]

    @property
    def widths(self) -> tuple[int, ...]:
        """The number of nodes that a sample has in each step."""
        first = at.STEP_WIDTHS
        return tuple(self._words[first : first + self._words[at.STEP_STEPS]])

    @property
    def seeds(self) -> ArrayT:
        """The node that each sample begins at: shape [samples], in the graph's id dtype."""
        seeds: ArrayT = self._array("nodes")[: len(self)]
        return seeds

    @property
    def steps(self) -> tuple[ArrayT, ...]:
        """The nodes of each step: shape [samples, widths[i]], in the graph's id dtype.

        With ``KHop``, node j of a sample was drawn by node ``j // fanouts[i]`` of the step before.
        -1 where that has no edges, or is -1.
        """
        return self._matrices("nodes", len(self))

    @property
    def edge_ids(self) -> tuple[ArrayT, ...]:
        """The original id of the edge to each node of ``steps``, in like shapes, or -1.

        ValueError if the sampler does not have ``edge_ids=True``.
        """
        if self._array("edge_ids") is None:
            raise ValueError("edge_ids: expected a sampler with edge_ids=True, got one without")
        return self._matrices("edge_ids", 0)

    @property
    def num_edges(self) -> int:
        """The edges that all samples would have if no draw had found none."""
        return self._words[at.STEP_NUM_EDGES]

    def per_step(self) -> tuple[ArrayT, ...]:
        """Returns ``steps``, without gaps. NextDoor's second format of outputs (section 4.2)."""
        return self.steps

    def per_sample(self) -> list[tuple[ArrayT, ...]]:
        """Returns the steps of each sample, of shape [widths[i]] each: views.

        NextDoor's first format of outputs (section 4.2).
        """
        steps: Any = self.steps
        return [tuple(step[i] for step in steps) for i in range(len(self))]

    def _matrices(self, name: str, first: int) -> tuple[ArrayT, ...]:
        flat, count, widths = self._array(name), len(self), self.widths
        starts = accumulate((count * width for width in widths), initial=first)
        return tuple(
            self._matrix(flat, start, count, width)
            for start, width in zip(starts, widths, strict=False)
        )

    def torch(self) -> StepSamples[torch.Tensor]:
        """Returns the same samples with torch tensors, which share their memory."""
        samples: StepSamples[torch.Tensor] = self._in_form("torch")
        return samples

    def numpy(self) -> StepSamples[numpy.ndarray[Any, Any]]:
        """Returns the same samples with NumPy arrays, which share their memory.

        TypeError for samples on a device, which ``cpu()`` copies.
        """
        samples: StepSamples[numpy.ndarray[Any, Any]] = self._in_form("numpy")
        return samples

    def arrow(self) -> Any:
        """Returns a ``pyarrow.Table`` with a row for each sample.

        Its columns are ``seed`` and, for each step, ``step_1`` and so on (and ``edges_1``, if the
        sampler returns them), lists of fixed size. TypeError for samples on a device, which
        ``cpu()`` copies; ImportError without pyarrow.
        """
        self._need_cpu("arrow")
        try:
            import pyarrow
        except ImportError:
            raise ImportError(
                "StepSamples.arrow: expected pyarrow, found none; pip install pyarrow"
            ) from None
        samples = self.numpy()

        def lists(values: Any) -> Any:
            flat = pyarrow.array(values.reshape(-1))
            return pyarrow.FixedSizeListArray.from_arrays(flat, values.shape[1])

        columns = {"seed": pyarrow.array(samples.seeds)}
        for i, step in enumerate(samples.steps, 1):
            columns[f"step_{i}"] = lists(step)
            if self._array("edge_ids") is not None:
                columns[f"edges_{i}"] = lists(samples.edge_ids[i - 1])
        return pyarrow.table(columns)

    def __repr__(self) -> str:
        dtype = str(self._array("nodes").dtype).removeprefix("torch.")
        return (
            f"StepSamples({len(self)}, widths={list(self.widths)}, dtype={dtype}, "
            f"epoch={self.epoch}, batch={self.batch}{self._place()})"
        )

    def _repr_html_(self) -> str:
        steps = ((f"steps[{i}]", step) for i, step in enumerate(self.steps))
        return arrays_html(repr(self), [("seeds", self.seeds), *steps])
