"""``Walks``: what a sampler of random walks returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from pygsampler._arrays import devices
from pygsampler._arrays.array import Array
from pygsampler._batch import buffer as batch_buffer
from pygsampler._batch import layout as at
from pygsampler._batch.buffer import check_signature, integer_view
from pygsampler._batch.html_tables import arrays_html, walks_html
from pygsampler._engine import memory as memories
from pygsampler._engine.checks import integer
from pygsampler._engine.memory import Memory, from_pickle, to_pickle
from pygsampler.walks.visits import TorchVisits, top_visits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy
    import torch

__all__ = ["HeteroWalks", "NumpyWalks", "TorchWalks", "Walks"]


def __dir__() -> list[str]:
    return sorted(__all__)


W = TypeVar("W", bound="Walks")

_NO_EDGES = (
    "edge_ids: expected walks of a sampler with edge_ids=True, got some that were copied or "
    "pickled without"
)


class Walks:
    """Random walks from some seeds: a row each, padded with -1 after its end.

    ``len(walks)`` of them: ``walks_per_seed`` of the first seed, then those of the second, and so
    on. They lie in memory step by step, so ``nodes`` and ``edge_ids`` are views that other
    libraries take with their strides, and ``per_step()`` is the memory as it lies. All arrays are
    views of one memory, which lives as long as any of them. Walks of a graph on a GPU are on that
    GPU, complete for every stream; ``cpu()`` copies them.
    """

    __slots__ = (
        "__weakref__",
        "_again",
        "_arrays",
        "_device",
        "_memory",
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
    _arrays: dict[str, Array]
    # Makes the same walks with their edges.
    _again: Callable[[Array], Walks] | None

    def __init__(self) -> None:
        raise TypeError("Walks: made by RandomWalk.sample")

    @classmethod
    def _of(
        cls: type[W],
        memory: Memory,
        epoch: int,
        batch: int,
        seed: int,
        again: Callable[[Array], Walks] | None = None,
    ) -> W:
        place = memory.data, memory.header, memory.device
        return cls._read(memory, *place, epoch, batch, seed, again)

    @classmethod
    def _read(
        cls: type[W],
        memory: Memory | memoryview,
        data: int,
        header: int,
        device: int,
        epoch: int,
        batch: int,
        seed: int,
        again: Callable[[Array], Walks] | None = None,
    ) -> W:
        made = object.__new__(cls)
        words = made._words = memories.read_int64(header, at.WALK_WORDS)
        check_signature(words[at.SIGNATURE], at.WALK_MAGIC)
        made._memory, made._device, made._again = memory, device, again
        made.epoch, made.batch, made.seed = epoch, batch, seed
        made._arrays = {}
        for row in at.WALK_ROWS:
            array = Array._of_row(row, words, words, data, memory, device)
            if array is not None:
                made._arrays[row.name] = array
        return made

    def __len__(self) -> int:
        return self._words[at.WALK_NUM_WALKS]

    @property
    def length(self) -> int:
        """The number of steps that a walk has at most."""
        return self._words[at.WALK_STEPS]

    @property
    def walks_per_seed(self) -> int:
        """The number of walks of each seed."""
        return self._words[at.WALK_PER_SEED]

    @property
    def device(self) -> str:
        """Where all arrays are: ``"cpu"`` or, for one, ``"cuda:0"``."""
        return devices.name(self._device)

    @property
    def nodes(self) -> Array:
        """Where each walk is: shape [walks, length + 1], in the graph's id dtype.

        The first is the seed, and -1 stands after the end of a walk.
        """
        return self._by_step("nodes", self.length + 1)._transposed()

    @property
    def edge_ids(self) -> Array:
        """The original id of the edge of each step: shape [walks, length].

        -1 after the end of a walk, and where it went back to its root. Unless the sampler was made
        with ``edge_ids=True`` the walks are made once more for them when they are first asked for,
        by the same random numbers.
        """
        return self._edges()._transposed()

    @property
    def lengths(self) -> Array:
        """The steps of each walk: shape [walks], int32. ``nodes[i, lengths[i]]`` is its end."""
        return self._arrays["lengths"]

    @property
    def slots(self) -> Array | None:
        """Of ``MultiRW``: which of its roots took each step, shape [walks, length], int32; -1 after
        the end. None of other samplers."""
        flat = self._arrays.get("slots")
        if flat is None:
            return None
        return flat._at(flat._address, (self.length, len(self)))._transposed()

    @property
    def num_edges(self) -> int:
        """The steps that all walks would have if none ended before."""
        return self._words[at.WALK_NUM_EDGES]

    def per_sample(self) -> Array:
        """A row is a walk: ``nodes``. NextDoor's first format of outputs (section 4.2)."""
        return self.nodes

    def per_step(self) -> Array:
        """A row is a step: where all walks are after it, shape [length + 1, walks], without gaps.

        NextDoor's second format of outputs (section 4.2).
        """
        return self._by_step("nodes", self.length + 1)

    def _by_step(self, name: str, steps: int) -> Array:
        flat = self._arrays[name]
        return flat._at(flat._address, (steps, len(self)))

    def _edges(self) -> Array:
        known = self._arrays.get("edge_ids")
        if known is None:
            if self._again is None:
                raise ValueError(_NO_EDGES)
            roots = self._arrays["nodes"]
            again = self._again(roots._at(roots._address, (len(self),)))
            # A copy's walks are made once more where the graph is.
            edges = again._arrays["edge_ids"]
            known = self._arrays["edge_ids"] = edges.cpu() if self._device < 0 else edges
        return known._at(known._address, (self.length, len(self)))

    def torch(self) -> TorchWalks:
        """The same walks with torch tensors, which share their memory."""
        return TorchWalks._of(self)

    def numpy(self) -> NumpyWalks:
        """The same walks with NumPy arrays, which share their memory.

        TypeError for walks on a device, which ``cpu()`` copies.
        """
        self._need_cpu("numpy")
        return NumpyWalks(self)

    def arrow(self) -> Any:
        """Returns a ``pyarrow.Table``: a row for each walk, whose ``nodes`` (and ``edge_ids`` and
        ``slots``, where the sampler made them) are lists without padding. They are copied.

        TypeError for walks on a device, which ``cpu()`` copies; ImportError without pyarrow.
        """
        self._need_cpu("arrow")
        try:
            import pyarrow
        except ImportError:
            raise ImportError(
                "Walks.arrow: expected pyarrow, found none; pip install pyarrow"
            ) from None
        numpy = self.numpy()
        columns = {"nodes": _lists(pyarrow, numpy.nodes, numpy.lengths + 1)}
        if "edge_ids" in self._arrays:
            columns["edge_ids"] = _lists(pyarrow, numpy.edge_ids, numpy.lengths)
        if numpy.slots is not None:
            columns["slots"] = _lists(pyarrow, numpy.slots, numpy.lengths)
        return pyarrow.table(columns)

    def cpu(self) -> Walks:
        """These walks on the CPU: themselves, or a copy of walks on a device."""
        if self._device < 0:
            return self
        words = self._words
        memory = batch_buffer.copy_to_host(
            self._data(), words[at.SIZE], words, self._memory, self._device
        )
        numbers = self.epoch, self.batch, self.seed
        place = memory.data, memory.data, devices.CPU
        return type(self)._read(memory, *place, *numbers, self._again)

    def _data(self) -> int:
        first = self._arrays["lengths"]._address - self._words[at.WALK_LENGTHS]
        return int(first)

    def __repr__(self) -> str:
        where = "" if self._device < 0 else f", device={self.device}"
        return (
            f"{type(self).__name__}({len(self)}, length={self.length}, "
            f"walks_per_seed={self.walks_per_seed}, "
            f"dtype={self._arrays['nodes'].dtype}, epoch={self.epoch}, batch={self.batch}{where})"
        )

    def _repr_html_(self) -> str:
        return self._table(repr(self))

    def _table(self, title: str) -> str:
        if self._device >= 0:
            return arrays_html(title, self._named())
        nodes, count = self._arrays["nodes"], len(self)
        by_step = [nodes[i * count : (i + 1) * count] for i in range(self.length + 1)]
        return walks_html(title, by_step, self.lengths)

    def _named(self) -> list[tuple[str, Any]]:
        """The arrays that were made, by name."""
        return [("nodes", self.nodes), ("lengths", self.lengths), ("slots", self.slots)]

    def _need_cpu(self, what: str) -> None:
        if self._device >= 0:
            raise TypeError(
                f"Walks.{what}: expected walks on the CPU, got some on {self.device}; "
                ".cpu() copies them"
            )

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        self._need_cpu("pickle")
        raw = memories.buffer_view(self._data(), self._words[at.SIZE], self._memory)
        return _restore, (to_pickle(raw, protocol), self.epoch, self.batch, self.seed)


class HeteroWalks(Walks):
    """Walks along a metapath of a graph with types: column i of ``nodes`` has ids of
    ``node_types[i]``, step i took an edge of ``edge_types[i]``, by whose ids ``edge_ids`` are."""

    __slots__ = ("edge_types", "node_types")

    node_types: tuple[str, ...]
    """The type of each column of ``nodes``."""
    edge_types: tuple[tuple[str, str, str], ...]
    """The type of each column of ``edge_ids``."""

    def cpu(self) -> HeteroWalks:
        """These walks on the CPU: themselves, or a copy of walks on a device."""
        if self._device < 0:
            return self
        made = super().cpu()
        assert isinstance(made, HeteroWalks)
        made.node_types, made.edge_types = self.node_types, self.edge_types
        return made

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        _, given = super().__reduce_ex__(protocol)
        return _restore_typed, (*given, self.node_types, self.edge_types)


def _restore(values: Any, epoch: int, batch: int, seed: int, kind: type[Walks] = Walks) -> Walks:
    buffer, address = from_pickle(values)
    return kind._read(buffer, address, address, devices.CPU, epoch, batch, seed)


def _restore_typed(
    values: Any, epoch: int, batch: int, seed: int, node_types: Any, edge_types: Any
) -> HeteroWalks:
    made = _restore(values, epoch, batch, seed, HeteroWalks)
    assert isinstance(made, HeteroWalks)
    made.node_types, made.edge_types = node_types, edge_types
    return made


def _lists(pyarrow: Any, rows: Any, lengths: Any) -> Any:
    """The first so many values of each row as lists."""
    import numpy

    offsets = numpy.zeros(len(lengths) + 1, dtype=numpy.int64)
    numpy.cumsum(lengths, out=offsets[1:])
    values = rows[numpy.arange(rows.shape[1]) < lengths[:, None]]
    kind = pyarrow.LargeListArray if offsets[-1] >= 1 << 31 else pyarrow.ListArray
    if kind is pyarrow.ListArray:
        offsets = offsets.astype(numpy.int32)
    return kind.from_arrays(pyarrow.array(offsets), pyarrow.array(values))


class NumpyWalks:
    """``Walks`` in NumPy arrays, by the same names."""

    __slots__ = ("_walks",)

    def __init__(self, walks: Walks) -> None:
        self._walks = walks

    @property
    def nodes(self) -> numpy.ndarray[Any, Any]:
        """As ``Walks.nodes``: shape [walks, length + 1]."""
        return self._walks.nodes.numpy()

    @property
    def edge_ids(self) -> numpy.ndarray[Any, Any]:
        """As ``Walks.edge_ids``: shape [walks, length]."""
        return self._walks.edge_ids.numpy()

    @property
    def lengths(self) -> numpy.ndarray[Any, Any]:
        """As ``Walks.lengths``: shape [walks], int32."""
        return self._walks.lengths.numpy()

    @property
    def slots(self) -> numpy.ndarray[Any, Any] | None:
        """``Walks.slots`` in NumPy: shape [walks, length], int32, or None."""
        slots = self._walks.slots
        return None if slots is None else slots.numpy()

    @property
    def node_types(self) -> tuple[str, ...] | None:
        """The type of each column of ``nodes``; None of walks on a graph without types."""
        return self._walks.node_types if isinstance(self._walks, HeteroWalks) else None

    @property
    def edge_types(self) -> tuple[tuple[str, str, str], ...] | None:
        """The type of each column of ``edge_ids``; None likewise."""
        return self._walks.edge_types if isinstance(self._walks, HeteroWalks) else None

    @property
    def length(self) -> int:
        """The number of steps that a walk has at most."""
        return self._walks.length

    @property
    def walks_per_seed(self) -> int:
        """The number of walks of each seed."""
        return self._walks.walks_per_seed

    @property
    def num_edges(self) -> int:
        """The steps that all walks would have if none ended before."""
        return self._walks.num_edges

    @property
    def epoch(self) -> int:
        """The epoch of the walks."""
        return self._walks.epoch

    @property
    def batch(self) -> int:
        """The batch's number."""
        return self._walks.batch

    @property
    def seed(self) -> int:
        """The seed of the sampler."""
        return self._walks.seed

    def __len__(self) -> int:
        return len(self._walks)

    def __repr__(self) -> str:
        return f"Numpy{self._walks!r}"

    def _repr_html_(self) -> str:
        return self._walks._table(repr(self))

    def per_step(self) -> numpy.ndarray[Any, Any]:
        """As ``Walks.per_step``: shape [length + 1, walks]."""
        return self._walks.per_step().numpy()


class TorchWalks:
    """``Walks`` in torch tensors, on the device where they are.

    A ``DataLoader`` of a sampler of walks yields them.
    """

    epoch: int
    batch: int
    seed: int

    def __init__(self) -> None:
        raise TypeError("TorchWalks: made by Walks.torch, and by loaders")

    @classmethod
    def _of(cls, walks: Walks) -> TorchWalks:
        made = object.__new__(cls)
        made.epoch, made.batch, made.seed = walks.epoch, walks.batch, walks.seed
        made._nodes = walks.per_step().torch()
        made._lengths = walks.lengths
        made._edge_ids = None
        made._ask = lambda: walks._edges().torch()
        slots = walks.slots
        made.slots = None if slots is None else slots.torch()
        made.walks_per_seed = walks.walks_per_seed
        if isinstance(walks, HeteroWalks):
            made.node_types, made.edge_types = walks.node_types, walks.edge_types
        return made

    @classmethod
    def _of_region(
        cls,
        region: torch.Tensor,
        words: Sequence[int],
        epoch: int,
        batch: int,
        seed: int,
        again: Callable[[torch.Tensor], TorchWalks],
    ) -> TorchWalks:
        """Of walks in a tensor of torch's, of the ids' dtype."""
        made = object.__new__(cls)
        made.epoch, made.batch, made.seed = epoch, batch, seed
        walks, steps = words[at.WALK_NUM_WALKS], words[at.WALK_STEPS]
        made.walks_per_seed = words[at.WALK_PER_SEED]

        nodes = words[at.WALK_NODES], words[at.WALK_NUM_NODES], words[at.ID_BITS]
        made._nodes = integer_view(region, *nodes).view(steps + 1, walks)
        made._lengths = integer_view(region, words[at.WALK_LENGTHS], walks, 32)
        made._edge_ids = None
        if words[at.WALK_EDGE_IDS]:
            edges = words[at.WALK_EDGE_IDS], words[at.WALK_NUM_EDGES], words[at.WALK_EDGE_ID_BITS]
            made._edge_ids = integer_view(region, *edges).view(steps, walks)
        made._ask = lambda: again(made._nodes[0]).per_step_edges()
        made.slots = None
        if words[at.WALK_SLOTS]:
            slots = integer_view(region, words[at.WALK_SLOTS], words[at.WALK_NUM_EDGES], 32)
            made.slots = slots.view(steps, walks).t()
        return made

    _nodes: torch.Tensor
    # An array until somebody asks: few do, and a tensor costs a tenth of a small walk.
    _lengths: torch.Tensor | Array
    _edge_ids: torch.Tensor | None
    _ask: Callable[[], torch.Tensor] | None
    walks_per_seed: int
    """The number of walks of each seed."""
    node_types: tuple[str, ...] | None = None
    """The type of each column of ``nodes``; None of walks on a graph without types."""
    edge_types: tuple[tuple[str, str, str], ...] | None = None
    """The type of each column of ``edge_ids``; None likewise."""
    slots: torch.Tensor | None
    """As ``Walks.slots``."""

    def __len__(self) -> int:
        return int(self._nodes.shape[1])

    @property
    def length(self) -> int:
        """The number of steps that a walk has at most."""
        return int(self._nodes.shape[0]) - 1

    @property
    def nodes(self) -> torch.Tensor:
        """As ``Walks.nodes``: shape [walks, length + 1], a view that is contiguous step by step."""
        return self._nodes.t()

    @property
    def edge_ids(self) -> torch.Tensor:
        """As ``Walks.edge_ids``: shape [walks, length]."""
        return self.per_step_edges().t()

    @property
    def lengths(self) -> torch.Tensor:
        """As ``Walks.lengths``: shape [walks], int32."""
        if isinstance(self._lengths, Array):
            self._lengths = self._lengths.torch()
        return self._lengths

    @property
    def num_edges(self) -> int:
        """The steps that all walks would have if none ended before."""
        return len(self) * self.length

    @property
    def device(self) -> torch.device:
        """Where the tensors are."""
        return self._nodes.device

    def per_step(self) -> torch.Tensor:
        """As ``Walks.per_step``: shape [length + 1, walks], contiguous."""
        return self._nodes

    def per_step_edges(self) -> torch.Tensor:
        """The edges likewise: shape [length, walks], contiguous."""
        if self._edge_ids is None:
            if self._ask is None:
                raise ValueError(_NO_EDGES)
            self._edge_ids = self._ask()
        return self._edge_ids

    def __getstate__(self) -> dict[str, Any]:
        # Without what finds the edges, as Walks are: the graph stays where it is.
        return {**self.__dict__, "_ask": None, "_lengths": self.lengths}

    def ends(self) -> torch.Tensor:
        """The last vertex of each walk: shape [walks], in the graph's id dtype."""
        import torch

        last = self.lengths.to(torch.int64)
        return self._nodes.gather(0, last.unsqueeze(0)).squeeze(0)

    def staying(self) -> torch.Tensor:
        """``nodes`` with each walk's last vertex after its end, in the place of -1: a copy.

        So PyG's walks are, which stay where no edge leads on.
        """
        import torch

        return torch.where(self._nodes < 0, self.ends(), self._nodes).t()

    def visits(self, top: int, *, ends: bool = False) -> TorchVisits:
        """Of each seed the ``top`` vertices that its walks are at most often, and how often.

        All places of its walks count, the first too; with ``ends`` the last one of each alone,
        which for ``PersonalizedPageRank`` are draws by that law.
        """
        seeds = len(self) // self.walks_per_seed
        places = self.ends() if ends else self.nodes
        return TorchVisits(*top_visits(places.reshape(seeds, -1), integer(top, "top", 1)))

    def torch(self) -> TorchWalks:
        """Itself."""
        return self

    def __repr__(self) -> str:
        return (
            f"TorchWalks({len(self)}, length={self.length}, walks_per_seed={self.walks_per_seed}, "
            f"dtype={self._nodes.dtype}, epoch={self.epoch}, batch={self.batch}, "
            f"device={str(self.device)!r})"
        )

    def _repr_html_(self) -> str:
        if self._nodes.is_cuda:
            arrays = ("nodes", self.nodes), ("lengths", self.lengths), ("slots", self.slots)
            return arrays_html(repr(self), arrays)
        return walks_html(repr(self), self._nodes, self._lengths)
