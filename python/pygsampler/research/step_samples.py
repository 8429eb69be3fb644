"""``StepSamples``: what ``KHop`` and ``LayerSample`` return."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pygsampler._arrays import devices
from pygsampler._arrays.array import Array
from pygsampler._batch import buffer as batch_buffer
from pygsampler._batch import layout as at
from pygsampler._batch.buffer import check_signature, integer_view
from pygsampler._batch.html_tables import arrays_html
from pygsampler._engine import memory as memories
from pygsampler._engine.memory import Memory, from_pickle, to_pickle

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy  # noqa: F401
    import torch

__all__ = ["NumpyStepSamples", "StepSamples", "TorchStepSamples"]


def __dir__() -> list[str]:
    return sorted(__all__)


T = TypeVar("T")


class StepSamples:
    """Samples from some seeds, step by step: what NextDoor calls samples of transits.

    ``len(samples)`` of them, one for each seed. Step i of a sample has ``widths[i]`` vertices, each
    in the place that its draw has; -1 stands where there was nothing to draw. All arrays are views
    of one memory, which lives as long as any of them. Samples of a graph on a GPU are on that GPU,
    complete for every stream; ``cpu()`` copies them.
    """

    __slots__ = (
        "__weakref__",
        "_device",
        "_edge_ids",
        "_memory",
        "_nodes",
        "_words",
        "batch",
        "epoch",
        "seed",
    )

    epoch: int
    batch: int
    seed: int
    _memory: Memory | memoryview
    _words: Sequence[int]
    _device: int
    _nodes: Array
    _edge_ids: Array | None

    def __init__(self) -> None:
        raise TypeError("StepSamples: made by KHop.sample and LayerSample.sample")

    @classmethod
    def _of(cls, memory: Memory, epoch: int, batch: int, seed: int) -> StepSamples:
        place = memory.data, memory.header, memory.device
        return cls._read(memory, *place, epoch, batch, seed)

    @classmethod
    def _read(
        cls,
        memory: Memory | memoryview,
        data: int,
        header: int,
        device: int,
        epoch: int,
        batch: int,
        seed: int,
    ) -> StepSamples:
        made = object.__new__(cls)
        words = made._words = memories.read_int64(header, at.STEP_WORDS)
        check_signature(words[at.SIGNATURE], at.STEP_MAGIC)
        made._memory, made._device = memory, device
        made.epoch, made.batch, made.seed = epoch, batch, seed
        found = {
            row.name: Array._of_row(row, words, words, data, memory, device) for row in at.STEP_ROWS
        }
        nodes = found["nodes"]
        assert nodes is not None
        made._nodes, made._edge_ids = nodes, found["edge_ids"]
        return made

    def __len__(self) -> int:
        return self._words[at.STEP_NUM_SAMPLES]

    @property
    def widths(self) -> tuple[int, ...]:
        """How many vertices a sample has in each step."""
        return _widths(self._words)

    @property
    def device(self) -> str:
        """Where all arrays are: ``"cpu"`` or, for one, ``"cuda:0"``."""
        return devices.name(self._device)

    @property
    def seeds(self) -> Array:
        """The vertex that each sample begins at: shape [samples], in the graph's id dtype."""
        return self._nodes._at(self._nodes._address, (len(self),))

    @property
    def steps(self) -> tuple[Array, ...]:
        """The vertices of each step: shape [samples, widths[i]], in the graph's id dtype.

        With ``KHop``, vertex j of a sample was drawn by vertex ``j // fanouts[i]`` of the step
        before. -1 where that has no edges, or is -1.
        """
        return self._parts(self._nodes, len(self))

    @property
    def edge_ids(self) -> tuple[Array, ...]:
        """The original id of the edge to each vertex of ``steps``, in like shapes; -1 likewise.

        ValueError where the sampler was made without ``edge_ids=True``.
        """
        if self._edge_ids is None:
            raise ValueError("edge_ids: expected a sampler with edge_ids=True, got one without")
        return self._parts(self._edge_ids, 0)

    @property
    def num_edges(self) -> int:
        """The edges that all samples would have if no draw had found none."""
        return self._words[at.STEP_NUM_EDGES]

    def per_step(self) -> tuple[Array, ...]:
        """``steps``, without gaps. NextDoor's second format of outputs (section 4.2)."""
        return self.steps

    def per_sample(self) -> list[tuple[Array, ...]]:
        """For each sample its steps, each of shape [widths[i]]: views.

        NextDoor's first format of outputs (section 4.2).
        """
        width = self._nodes._bits // 8
        steps = [(part, n, n * width) for part, n in zip(self.steps, self.widths, strict=True)]
        return [
            tuple(part._at(part._address + i * size, (n,)) for part, n, size in steps)
            for i in range(len(self))
        ]

    def _parts(self, flat: Array, first: int) -> tuple[Array, ...]:
        return tuple(
            flat._at(flat._address + start * flat._bits // 8, (len(self), width))
            for start, width in _starts(self._words, first)
        )

    def torch(self) -> TorchStepSamples:
        """The same samples with torch tensors, which share their memory."""
        edges = None if self._edge_ids is None else self._edge_ids.torch()
        numbers = self.epoch, self.batch, self.seed
        made: TorchStepSamples
        made = TorchStepSamples._of(self._nodes.torch(), edges, self._words, *numbers)
        return made

    def numpy(self) -> NumpyStepSamples:
        """The same samples with NumPy arrays, which share their memory.

        TypeError for samples on a device, which ``cpu()`` copies.
        """
        self._need_cpu("numpy")
        edges = None if self._edge_ids is None else self._edge_ids.numpy()
        numbers = self.epoch, self.batch, self.seed
        made: NumpyStepSamples
        made = NumpyStepSamples._of(self._nodes.numpy(), edges, self._words, *numbers)
        return made

    def arrow(self) -> Any:
        """A ``pyarrow.Table``: a row for each sample, with its ``seed`` and, for each step,
        ``step_1`` and so on (and ``edges_1``, where the sampler made them), lists of fixed size.

        TypeError for samples on a device, which ``cpu()`` copies; ImportError without pyarrow.
        """
        self._need_cpu("arrow")
        try:
            import pyarrow
        except ImportError:
            raise ImportError(
                "StepSamples.arrow: expected pyarrow, found none; pip install pyarrow"
            ) from None
        made = self.numpy()

        def lists(values: Any) -> Any:
            flat = pyarrow.array(values.reshape(-1))
            return pyarrow.FixedSizeListArray.from_arrays(flat, values.shape[1])

        columns = {"seed": pyarrow.array(made.seeds)}
        for i, step in enumerate(made.steps, 1):
            columns[f"step_{i}"] = lists(step)
            if self._edge_ids is not None:
                columns[f"edges_{i}"] = lists(made.edge_ids[i - 1])
        return pyarrow.table(columns)

    def cpu(self) -> StepSamples:
        """These samples on the CPU: themselves, or a copy of samples on a device."""
        if self._device < 0:
            return self
        words = self._words
        memory = batch_buffer.copy_to_host(
            self._data(), words[at.SIZE], words, self._memory, self._device
        )
        numbers = self.epoch, self.batch, self.seed
        return StepSamples._read(memory, memory.data, memory.data, devices.CPU, *numbers)

    def _data(self) -> int:
        return int(self._nodes._address - self._words[at.STEP_NODES])

    def _need_cpu(self, what: str) -> None:
        if self._device >= 0:
            raise TypeError(
                f"StepSamples.{what}: expected samples on the CPU, got some on {self.device}; "
                ".cpu() copies them"
            )

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        self._need_cpu("pickle")
        raw = memories.buffer_view(self._data(), self._words[at.SIZE], self._memory)
        return _restore, (to_pickle(raw, protocol), self.epoch, self.batch, self.seed)

    def __repr__(self) -> str:
        where = "" if self._device < 0 else f", device={self.device}"
        return (
            f"StepSamples({len(self)}, widths={list(self.widths)}, dtype={self._nodes.dtype}, "
            f"epoch={self.epoch}, batch={self.batch}{where})"
        )

    def _repr_html_(self) -> str:
        return _html(self)


def _restore(values: Any, epoch: int, batch: int, seed: int) -> StepSamples:
    buffer, address = from_pickle(values)
    return StepSamples._read(buffer, address, address, devices.CPU, epoch, batch, seed)


def _html(samples: Any) -> str:
    steps = ((f"steps[{i}]", step) for i, step in enumerate(samples.steps))
    return arrays_html(repr(samples), [("seeds", samples.seeds), *steps])


def _widths(words: Sequence[int]) -> tuple[int, ...]:
    first = at.STEP_WIDTHS
    return tuple(words[first : first + words[at.STEP_STEPS]])


def _starts(words: Sequence[int], first: int) -> list[tuple[int, int]]:
    """Where each step begins, in elements, and how wide it is."""
    widths, samples = _widths(words), words[at.STEP_NUM_SAMPLES]
    starts = accumulate((samples * width for width in widths), initial=first)
    return list(zip(starts, widths, strict=False))


class _StepViews(Generic[T]):
    """Samples in arrays of another library's, of all steps and then of each."""

    epoch: int
    batch: int
    seed: int
    seeds: T
    """The vertex that each sample begins at: shape [samples]."""
    steps: tuple[T, ...]
    """As ``StepSamples.steps``: shape [samples, widths[i]]."""
    widths: tuple[int, ...]
    """How many vertices a sample has in each step."""

    _edge_ids: tuple[T, ...] | None
    _samples: int

    def __init__(self) -> None:
        raise TypeError(f"{type(self).__name__}: made by StepSamples, and by loaders")

    @classmethod
    def _of(
        cls, nodes: Any, edges: Any, words: Sequence[int], epoch: int, batch: int, seed: int
    ) -> Any:
        made = object.__new__(cls)
        made.epoch, made.batch, made.seed = epoch, batch, seed
        samples = made._samples = words[at.STEP_NUM_SAMPLES]
        made.widths = _widths(words)

        def parts(flat: Any, first: int) -> tuple[T, ...]:
            return tuple(
                flat[start : start + samples * width].reshape(samples, width)
                for start, width in _starts(words, first)
            )

        made.seeds, made.steps = nodes[:samples], parts(nodes, samples)
        made._edge_ids = None if edges is None else parts(edges, 0)
        return made

    def __len__(self) -> int:
        return self._samples

    @property
    def edge_ids(self) -> tuple[T, ...]:
        """As ``StepSamples.edge_ids``."""
        if self._edge_ids is None:
            raise ValueError("edge_ids: expected a sampler with edge_ids=True, got one without")
        return self._edge_ids

    @property
    def num_edges(self) -> int:
        """The edges that all samples would have if no draw had found none."""
        return self._samples * sum(self.widths)

    def per_step(self) -> tuple[T, ...]:
        """``steps``."""
        return self.steps

    def per_sample(self) -> list[tuple[T, ...]]:
        """As ``StepSamples.per_sample``."""
        return [tuple(step[i] for step in self.steps) for i in range(self._samples)]  # type: ignore[index]

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self._samples}, widths={list(self.widths)}, "
            f"epoch={self.epoch}, batch={self.batch})"
        )

    def _repr_html_(self) -> str:
        return _html(self)


class NumpyStepSamples(_StepViews["numpy.ndarray[Any, Any]"]):
    """``StepSamples`` in NumPy arrays."""


class TorchStepSamples(_StepViews["torch.Tensor"]):
    """``StepSamples`` in torch tensors, on the device where they are.

    A ``DataLoader`` of ``KHop`` or ``LayerSample`` yields them.
    """

    @classmethod
    def _of_region(
        cls, region: torch.Tensor, words: Sequence[int], epoch: int, batch: int, seed: int
    ) -> TorchStepSamples:
        """Of samples in a tensor of torch's, of the ids' dtype."""
        about = words[at.STEP_NODES], words[at.STEP_NUM_NODES], words[at.ID_BITS]
        nodes = integer_view(region, *about)
        edges = None
        if words[at.STEP_EDGE_IDS]:
            about = words[at.STEP_EDGE_IDS], words[at.STEP_NUM_EDGES], words[at.STEP_EDGE_ID_BITS]
            edges = integer_view(region, *about)
        made: TorchStepSamples = cls._of(nodes, edges, words, epoch, batch, seed)
        return made

    @property
    def device(self) -> torch.device:
        """Where the tensors are."""
        return self.seeds.device

    def torch(self) -> TorchStepSamples:
        """Itself."""
        return self
