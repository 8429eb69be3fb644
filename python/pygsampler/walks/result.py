"""``Walks``: the random walks that a sampler returns, in the arrays of any library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pygsampler._batch import layout as at
from pygsampler._batch.engine_result import ArrayT, EngineResult
from pygsampler._batch.html_tables import arrays_html, walks_html
from pygsampler._engine.checks import integer
from pygsampler.walks.visits import Visits, top_visits

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy import ndarray
    from torch import Tensor

    from pygsampler._engine.memory import Memory

__all__ = ["Walks"]


def __dir__() -> list[str]:
    return sorted(__all__)


class Walks(EngineResult[ArrayT]):
    """Random walks from some seeds: a row each, padded with -1 after its end.

    ``len(walks)`` of them: ``walks_per_seed`` of the first seed, then those of the second, and so
    on. They lie in memory step by step, so ``nodes`` and ``edge_ids`` are views that other
    libraries take with their strides, and ``per_step()`` is the memory as it lies. All arrays are
    views of one memory, which lives as long as any of them. ``form`` says whose arrays they are:
    ``"array"`` (``pygsampler.Array``), ``"torch"``, as a ``DataLoader`` yields them, or
    ``"numpy"``. Walks on a graph on a GPU are on that GPU, complete for every stream; ``cpu()``
    copies them.

    Along a metapath of edge types, column i of ``nodes`` has ids of ``node_types[i]``, and column i
    of ``edge_ids`` those of ``edge_types[i]``.
    """

    _signature, _num_words = at.WALK_MAGIC, at.WALK_WORDS
    _descriptors: ClassVar = {row.name: row for row in at.WALK_ROWS}
    _makers, _noun = "RandomWalk.sample, and by loaders", "walks"

    node_types: tuple[str, ...] | None = None
    """The type of each column of ``nodes``; None for walks on a homogeneous graph."""
    edge_types: tuple[tuple[str, str, str], ...] | None = None
    """The type of each column of ``edge_ids``; None for walks on a homogeneous graph."""
    # Returns the edges of the same walks by their roots; None where they cannot be made.
    _again: Callable[[Any], Any] | None = None

    @classmethod
    def _from_memory(
        cls,
        memory: Memory,
        epoch: int,
        batch: int,
        seed: int,
        again: Callable[[Any], Any] | None = None,
    ) -> Walks[Any]:
        attributes = {"epoch": epoch, "batch": batch, "seed": seed, "_again": again}
        return cls._of_memory(memory, memory.data, memory.header, memory.device, attributes)

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
    def nodes(self) -> ArrayT:
        """The node of each walk at each step: shape [walks, length + 1], in the graph's id dtype.

        The first is the seed, and -1 stands after the end of a walk.
        """
        return self._by_walk(self._array("nodes"))

    @property
    def edge_ids(self) -> ArrayT:
        """The original id of the edge of each step: shape [walks, length].

        It is -1 after the end of a walk, and where the walk went back to its root. Unless the
        sampler has ``edge_ids=True`` the first read walks once more, by the same random numbers.
        """
        return self._by_walk(self.per_step_edges())

    @property
    def lengths(self) -> ArrayT:
        """The steps of each walk: shape [walks], int32. ``nodes[i, lengths[i]]`` is its end."""
        lengths: ArrayT = self._array("lengths")
        return lengths

    @property
    def slots(self) -> ArrayT | None:
        """The root that took each step: shape [walks, length], int32; -1 after the end of a walk.

        None for walks without ``num_roots``.
        """
        slots = self._array("slots")
        return None if slots is None else self._by_walk(slots)

    @property
    def num_edges(self) -> int:
        """The steps that all walks would have if none ended before."""
        return len(self) * self.length

    def per_sample(self) -> ArrayT:
        """Returns ``nodes``: a row is a walk. NextDoor's first format of outputs (section 4.2)."""
        return self.nodes

    def per_step(self) -> ArrayT:
        """Returns where all walks are after each step: shape [length + 1, walks], without gaps.

        NextDoor's second format of outputs (section 4.2).
        """
        steps: ArrayT = self._array("nodes")
        return steps

    def per_step_edges(self) -> ArrayT:
        """Returns the edges of all walks by step: shape [length, walks], without gaps."""
        edges = self._array("edge_ids")
        if edges is None:
            edges = self._arrays["edge_ids"] = self._find_edges()
        found: ArrayT = edges
        return found

    def _shaped(self, name: str, flat: Any) -> Any:
        if name not in ("nodes", "edge_ids", "slots"):
            return flat
        return self._matrix(flat, 0, self.length + (name == "nodes"), len(self))

    def _by_walk(self, steps: Any) -> ArrayT:
        turned: ArrayT = steps._transposed() if self.form == "array" else steps.T
        return turned

    def _find_edges(self) -> Any:
        if self._base is not None:
            return getattr(self._base.per_step_edges(), self.form)()
        if self._again is None:
            raise ValueError(
                "edge_ids: expected walks of a sampler with edge_ids=True, got some that were "
                "copied or pickled without"
            )
        nodes = self._array("nodes")
        roots = nodes[0] if self.form == "torch" else nodes._view_at(nodes._address, (len(self),))
        edges = self._again(roots)
        # A copy's walks are made once more where the graph is.
        return edges if self._is_on_device else edges.cpu()

    def torch(self) -> Walks[Tensor]:
        """Returns the same walks with torch tensors, which share their memory."""
        walks: Walks[Tensor] = self._in_form("torch")
        return walks

    def numpy(self) -> Walks[ndarray[Any, Any]]:
        """Returns the same walks with NumPy arrays, which share their memory.

        TypeError for walks on a device, which ``cpu()`` copies.
        """
        walks: Walks[ndarray[Any, Any]] = self._in_form("numpy")
        return walks

    def arrow(self) -> Any:
        """Returns a ``pyarrow.Table`` with a row for each walk, copied.

        ``nodes`` (and ``edge_ids`` and ``slots``, if the sampler returns them) are lists without
        padding.

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
        if self._array("edge_ids") is not None:
            columns["edge_ids"] = _lists(pyarrow, numpy.edge_ids, numpy.lengths)
        if numpy.slots is not None:
            columns["slots"] = _lists(pyarrow, numpy.slots, numpy.lengths)
        return pyarrow.table(columns)

    def ends(self) -> Tensor:
        """Returns the last node of each walk: shape [walks], in the graph's id dtype.

        TypeError for walks that are not in torch tensors; ``torch()`` returns such.
        """
        import torch

        steps = self._tensors("ends").per_step()
        last = self._array("lengths").to(torch.int64)
        return steps.gather(0, last.unsqueeze(0)).squeeze(0)

    def staying(self) -> Tensor:
        """Returns a copy of ``nodes`` with each walk's last node in the place of -1.

        PyG's walks are such: they stay where no edge leads on. TypeError as for ``ends``.
        """
        import torch

        steps = self._tensors("staying").per_step()
        return torch.where(steps < 0, self.ends(), steps).t()

    def visits(self, top: int, *, ends: bool = False) -> Visits:
        """Returns the nodes that the walks of each seed are at most often, and how often.

        Parameters
        ----------
        top : int
            The number of nodes per seed.
        ends : bool
            Counts the last node of each walk alone, which with ``stop`` are draws by personalized
            PageRank. False: all of its nodes, the first too.

        Raises
        ------
        TypeError
            As ``ends``.
        ValueError
            For walks along edge types, whose places are of several node types.
        """
        walks = self._tensors("visits")
        if self.node_types is not None:
            raise ValueError(
                "visits: expected walks on a homogeneous graph, got some along edge types; "
                "PinSAGE(metapath=) counts the visits of one type"
            )
        seeds = walks.per_step()[0, :: self.walks_per_seed]
        places = walks.ends() if ends else walks.nodes
        rows = places.reshape(len(seeds), -1)
        nodes, counts = top_visits(rows, integer(top, "top", 1))
        arrays = {None: nodes}, {None: counts}, {None: seeds}
        return Visits._new("torch", *arrays, self.epoch, self.batch)

    def _tensors(self, what: str) -> Walks[Tensor]:
        if self.form != "torch":
            raise TypeError(
                f"Walks.{what}: expected walks in torch tensors, got form={self.form!r}; "
                "use .torch()"
            )
        return self  # type: ignore[return-value]

    def __repr__(self) -> str:
        dtype = str(self._array("nodes").dtype).removeprefix("torch.")
        return (
            f"Walks({len(self)}, length={self.length}, walks_per_seed={self.walks_per_seed}, "
            f"dtype={dtype}, epoch={self.epoch}, batch={self.batch}{self._place()})"
        )

    def _repr_html_(self) -> str:
        if self._is_on_device:
            arrays = ("nodes", self.nodes), ("lengths", self.lengths), ("slots", self.slots)
            return arrays_html(repr(self), arrays)
        return walks_html(repr(self), self.per_step(), self.lengths)


def _lists(pyarrow: Any, padded: Any, lengths: Any) -> Any:
    """Returns the first values of each row, as many as ``lengths`` has, as lists."""
    import numpy

    offsets = numpy.zeros(len(lengths) + 1, dtype=numpy.int64)
    numpy.cumsum(lengths, out=offsets[1:])
    values = padded[numpy.arange(padded.shape[1]) < lengths[:, None]]
    kind = pyarrow.LargeListArray if offsets[-1] >= 1 << 31 else pyarrow.ListArray
    if kind is pyarrow.ListArray:
        offsets = offsets.astype(numpy.int32)
    return kind.from_arrays(pyarrow.array(offsets), pyarrow.array(values))
