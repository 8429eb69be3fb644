"""``Visits``: the nodes that the walks of each seed visit most."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from pygsampler._arrays.array import Array
from pygsampler._arrays.ids import IdView
from pygsampler._batch import layout as at
from pygsampler._batch.attached_features import HasFeatures
from pygsampler._batch.buffer import integer_view
from pygsampler._batch.html_tables import arrays_html
from pygsampler._engine import memory as memories

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import torch

    from pygsampler._engine.memory import Memory

__all__ = ["Visits"]


def __dir__() -> list[str]:
    return sorted(__all__)


_ROWS = {row.name: row for row in at.WALK_ROWS}


class Visits(HasFeatures):
    """The nodes that the walks of each seed visit most, and how often.

    A row is a seed: the most visited node first, and among nodes with as many visits the one that
    came first, walk after walk. -1 (and 0 visits) stands behind the last. ``form`` says whose
    arrays these are: ``"array"`` (``pygsampler.Array``), views of one memory, ``"torch"``, as a
    ``DataLoader`` yields them, or ``"numpy"``. Arrays of a graph on a GPU are there, complete for
    every stream.

    ``nodes``, ``counts`` and everything else that has a value per neighbor are arrays for
    ``PinSAGE`` on a homogeneous graph, and else mappings of node types to arrays, each with a row
    for each seed. ``output_nodes``, ``input_nodes`` and ``output_index`` are arrays for a
    homogeneous graph and mappings of node types for a heterogeneous one.

    A loader with ``features`` puts the rows of ``input_nodes`` there too, as attributes and in
    ``features``, and the ``labels`` of ``output_nodes`` as ``y``:

        own = batch.x[batch.output_index]    # x: rows of batch.input_nodes
        near = batch.neighbor_rows(batch.x)  # [seeds, num_neighbors, ...], most visited first
        mean = (near * batch.importance.unsqueeze(2)).sum(dim=1)
    """

    form: str
    """Whose arrays the visits have: ``"array"``, ``"torch"`` or ``"numpy"``."""
    epoch: int
    batch: int
    # By node type; of a homogeneous graph under None.
    _nodes: dict[Any, Any]
    _counts: dict[Any, Any]
    _seeds: dict[Any, Any]
    _memory: Memory

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self) -> None:
        raise TypeError(
            "Visits: created by PinSAGE.sample, RestartNeighbors.sample and Walks.visits only"
        )

    @classmethod
    def _new(
        cls,
        form: str,
        nodes: dict[Any, Any],
        counts: dict[Any, Any],
        seeds: dict[Any, Any],
        epoch: int,
        batch: int,
    ) -> Visits:
        visits = object.__new__(cls)
        visits.__dict__ = {"form": form, "epoch": epoch, "batch": batch}
        visits.__dict__ |= {"_nodes": nodes, "_counts": counts, "_seeds": seeds}
        return visits

    @classmethod
    def _from_memory(cls, memory: Memory, epoch: int, batch: int) -> Visits:
        words = memories.read_int64(memory.header, at.WALK_WORDS)
        found = []
        for name in ("top_nodes", "visits"):
            place = words, words, memory.data, memory, memory.device
            flat = Array._of_row(_ROWS[name], *place)
            assert flat is not None
            found.append({None: flat._view_at(flat._address, _shape(words))})
        nodes, counts = found
        visits = cls._new("array", nodes, counts, {}, epoch, batch)
        visits._memory = memory
        return visits

    @classmethod
    def _of_region(
        cls, region: torch.Tensor, words: Sequence[int], epoch: int, batch: int
    ) -> Visits:
        """Returns the visits that lie in a torch tensor of the dtype of ids."""
        shape, count = _shape(words), words[at.WALK_NUM_TOP]
        nodes = integer_view(region, words[at.WALK_TOP_NODES], count, words[at.ID_BITS])
        counts = integer_view(region, words[at.WALK_VISITS], count, 32)
        return cls._new(
            "torch", {None: nodes.view(shape)}, {None: counts.view(shape)}, {}, epoch, batch
        )

    def _by(self, seeds: IdView, node_type: str | None) -> Visits:
        """Returns itself, with its seeds; of a heterogeneous graph all nodes are of one type."""
        self._seeds = {node_type: seeds}
        if node_type is not None:
            self._nodes = {node_type: self._nodes[None]}
            self._counts = {node_type: self._counts[None]}
        return self

    def __len__(self) -> int:
        return int(self._first.shape[0])

    @property
    def _first(self) -> Any:
        """The nodes of the first type."""
        return next(iter(self._nodes.values()))

    @property
    def nodes(self) -> Any:
        """The nodes: shape [seeds, num_neighbors], in the graph's id dtype; -1 behind the last."""
        return _value(self._nodes)

    @property
    def counts(self) -> Any:
        """The number of visits of each: shape [seeds, num_neighbors], int32; 0 behind the last."""
        return _value(self._counts)

    @cached_property
    def output_nodes(self) -> Any:
        """The seeds, in the order of the rows, with duplicates; several types one after another.

        In NumPy and ``pygsampler.Array`` they have the dtype of the seeds.
        """
        return _value({node_type: self._ids(ids) for node_type, ids in self._seeds.items()})

    def _ids(self, ids: Any) -> Any:
        if isinstance(ids, IdView):
            ids = Array._of_view(ids)
        if self.form == "array":
            return ids
        if isinstance(ids, Array):
            ids = getattr(ids, self.form)()
        return ids.to(self._first.device, self._first.dtype) if self.form == "torch" else ids

    @property
    def device(self) -> Any:
        """The device of the arrays: ``"cpu"`` or ``"cuda:0"``, for tensors a ``torch.device``."""
        return "cpu" if self.form == "numpy" else self._first.device

    @property
    def num_edges(self) -> int:
        """The number of places for neighbors of all seeds."""
        return sum(math.prod(nodes.shape) for nodes in self._nodes.values())

    @property
    def importance(self) -> Any:
        """PinSAGE's weights: the share of each node in the visits of its row that ``counts`` has.

        Shape [seeds, num_neighbors], float32; 0 behind the last (section 3.2 of the paper).
        """
        return _value(
            {
                node_type: counts / counts.sum(dim=1, keepdim=True).clamp(min=1)
                for node_type, counts in self._tensors("importance")._counts.items()
            }
        )

    def coo(self) -> Any:
        """Returns edges from neighbors to seeds: nodes, row of the seed, and counts.

        Three tensors of shape [edges], seed after seed; ``nodes`` that are a mapping give one.
        """
        edges = {}
        for node_type, nodes in self._tensors("coo")._nodes.items():
            there = nodes >= 0
            rows = there.nonzero()[:, 0]
            edges[node_type] = nodes[there], rows, self._counts[node_type][there]
        return _value(edges)

    @property
    def input_nodes(self) -> Any:
        """The distinct seeds and neighbors, the seeds first: features are needed of these."""
        return _value({node_type: found.nodes for node_type, found in self._numbered.items()})

    @property
    def output_index(self) -> Any:
        """The place of each seed among ``input_nodes`` of its type."""
        return _value({node_type: found.seeds for node_type, found in self._numbered.items()})

    @property
    def neighbor_index(self) -> Any:
        """The place of each neighbor among ``input_nodes`` of its type.

        Shape [seeds, num_neighbors]; -1 behind the last.
        """
        return _value(self._indices)

    def neighbor_rows(self, x: Any) -> Any:
        """Returns the rows of each seed's neighbors: shape [seeds, num_neighbors, ...].

        Parameters
        ----------
        x : tensor or mapping of node types to tensors
            A row for each of ``input_nodes``. Gradients go to it. From a mapping the types that it
            has are taken.

        Returns
        -------
        tensor or mapping of node types to tensors
            The shape of ``nodes``; 0 behind the last neighbor.

        Raises
        ------
        ValueError
            For another number of rows.
        """
        rows = {}
        for node_type, index in self._indices.items():
            if not isinstance(x, Mapping):
                rows[node_type] = self._take(index, x, None)
            elif node_type in x:
                rows[node_type] = self._take(index, x[node_type], node_type)
        return _value(rows)

    def _take(self, index: torch.Tensor, x: torch.Tensor, node_type: str | None) -> torch.Tensor:
        count = len(self._numbered[node_type].nodes)
        if len(x) != count:
            raise ValueError(f"x: expected a row for each of {count} nodes, got {len(x)}")
        there = index >= 0
        rows = x.new_zeros(*index.shape, *x.shape[1:])
        rows[there] = x[index[there].long()]
        return rows

    @cached_property
    def _numbered(self) -> dict[Any, _UniqueNodes]:
        nodes = self._tensors("input_nodes")._nodes
        seeds = {node_type: self._ids(ids) for node_type, ids in self._seeds.items()}
        if None in seeds:
            return {None: _unique(seeds[None], nodes)}
        return {
            node_type: _unique(ids, {node_type: nodes[node_type]} if node_type in nodes else {})
            for node_type, ids in seeds.items()
        }

    @property
    def _indices(self) -> dict[Any, torch.Tensor]:
        found: dict[Any, torch.Tensor] = {}
        for numbered in self._numbered.values():
            found |= numbered.neighbors
        return {node_type: found[node_type] for node_type in self._nodes}

    @property
    def features(self) -> Mapping[str, Any]:
        """The rows that a loader was asked for, by name; each is an attribute too."""
        return super().features

    def _attach(self, name: str, feature_rows: Any, node_type: str | None = None) -> None:
        if hasattr(type(self), name) or name in type(self).__annotations__:
            raise ValueError(f"features: expected names that visits do not have, got {name!r}")
        super()._attach(name, feature_rows, node_type)

    def _tensors(self, what: str) -> Visits:
        if self.form != "torch":
            raise TypeError(
                f"Visits.{what}: expected visits in torch tensors, got form={self.form!r}; "
                "use .torch()"
            )
        return self

    def torch(self) -> Visits:
        """Returns the same visits with torch tensors, which share the memory."""
        if self.form == "torch":
            return self
        if self.form == "numpy":
            from torch import from_numpy

            return self._moved(from_numpy, "torch")
        return self._moved(lambda array: array.torch(), "torch")

    def numpy(self) -> Visits:
        """Returns the same visits with NumPy arrays, which share the memory.

        TypeError for visits on a device, which ``cpu()`` copies.
        """
        return self if self.form == "numpy" else self._moved(lambda array: array.numpy(), "numpy")

    def cpu(self) -> Visits:
        """Returns these visits if they are on the CPU, or a copy of them on the CPU."""
        if str(self.device) == "cpu":
            return self
        visits = self._moved(lambda array: array.cpu(), self.form)
        for name, rows in self.features.items():
            by_type = isinstance(rows, Mapping)
            visits._attach(name, {k: v.cpu() for k, v in rows.items()} if by_type else rows.cpu())
        return visits

    def _moved(self, move: Callable[[Any], Any], form: str) -> Visits:
        nodes = {node_type: move(ids) for node_type, ids in self._nodes.items()}
        counts = {node_type: move(values) for node_type, values in self._counts.items()}
        seeds = self._seeds
        # Arrays, and what a caller gave, become tensors or NumPy arrays when they are needed.
        if self.form != "array" or form == "array":
            seeds = {node_type: move(self._ids(ids)) for node_type, ids in seeds.items()}
        return self._new(form, nodes, counts, seeds, self.epoch, self.batch)

    def __repr__(self) -> str:
        widths: Any = {node_type: ids.shape[1] for node_type, ids in self._nodes.items()}
        form = "" if self.form == "array" else f", form={self.form!r}"
        place = "" if str(self.device) == "cpu" else f", device={self.device}"
        widths = widths.get(None, widths)
        return (
            f"Visits({len(self)}, num_neighbors={widths}, epoch={self.epoch}, "
            f"batch={self.batch}{form}{place})"
        )

    def _repr_html_(self) -> str:
        arrays = []
        for name, values in (("nodes", self._nodes), ("counts", self._counts)):
            for node_type, array in values.items():
                arrays.append((name if node_type is None else f"{name}[{node_type!r}]", array))
        return arrays_html(repr(self), arrays)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        if self.form == "array" and self.device != "cpu":
            raise TypeError(
                f"Visits.pickle: expected visits on the CPU, got some on {self.device}; "
                ".torch() makes tensors, which pickle"
            )
        seeds = {node_type: self._ids(ids) for node_type, ids in self._seeds.items()}
        arrays = self.form, self._nodes, self._counts, seeds, self.epoch, self.batch
        return _restored, arrays, dict(self.features)


def _restored(*arrays: Any) -> Visits:
    return Visits._new(*arrays)


def _shape(words: Sequence[int]) -> tuple[int, int]:
    seeds = words[at.WALK_NUM_WALKS] // words[at.WALK_PER_SEED]
    return seeds, words[at.WALK_NUM_TOP] // max(seeds, 1)


def _value(values: dict[Any, Any]) -> Any:
    """Returns the value of a homogeneous graph, or a mapping of node types."""
    return values[None] if None in values else MappingProxyType(values)


class _UniqueNodes(NamedTuple):
    """Seeds and their neighbors as distinct nodes."""

    nodes: torch.Tensor
    seeds: torch.Tensor
    neighbors: dict[Any, torch.Tensor]


def _unique(seeds: torch.Tensor, nodes: Mapping[Any, torch.Tensor]) -> _UniqueNodes:
    import torch

    from pygsampler._batch.repeated_seeds import unique_by_first

    there = {node_type: ids >= 0 for node_type, ids in nodes.items()}
    parts = [seeds, *(ids[there[node_type]] for node_type, ids in nodes.items())]
    distinct, places = unique_by_first(torch.cat(parts))
    of_seeds, *rest = torch.split(places.to(distinct.dtype), list(map(len, parts)))
    neighbors = {}
    for (node_type, ids), index in zip(nodes.items(), rest, strict=True):
        neighbors[node_type] = torch.full_like(ids, -1)
        neighbors[node_type][there[node_type]] = index
    return _UniqueNodes(distinct, of_seeds, neighbors)


def top_visits(node_rows: torch.Tensor, top: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns, of each row of nodes, those that stand there most often, and how often.

    ``node_rows`` is [N, n], -1 where there is none; the results are [N, top], ordered as those of
    ``Visits``.
    """
    import torch

    count, length = node_rows.shape
    # By row, node and place: a stable sort of each row.
    values, places = node_rows.sort(dim=1, stable=True)
    heads = torch.ones_like(values, dtype=torch.bool)
    heads[:, 1:] = values[:, 1:] != values[:, :-1]
    heads &= values >= 0
    row, column = heads.nonzero().unbind(1)
    ends = torch.full_like(column, length)
    if len(row) > 1:
        same = row[1:] == row[:-1]
        ends[:-1] = torch.where(same, column[1:], ends[:-1])
    visits = ends - column
    first = places[row, column]
    # By row, then more visits, then the place of the first.
    key = (row * (length + 1) + (length - visits)) * (length + 1) + first
    order = key.argsort()
    row, column, visits = row[order], column[order], visits[order]
    rank = torch.arange(len(row), device=node_rows.device)
    begins = torch.zeros(count + 1, dtype=torch.int64, device=node_rows.device)
    begins[1:] = torch.bincount(row, minlength=count).cumsum(0)
    rank -= begins[row]
    kept = rank < top
    nodes = torch.full((count, top), -1, dtype=node_rows.dtype, device=node_rows.device)
    counts = torch.zeros((count, top), dtype=torch.int32, device=node_rows.device)
    nodes[row[kept], rank[kept]] = values[row[kept], column[kept]]
    counts[row[kept], rank[kept]] = visits[kept].to(torch.int32)
    return nodes, counts
