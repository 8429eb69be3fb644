"""``Visits``: the vertices that a seed's walks have visited most."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pygsampler._arrays import devices
from pygsampler._arrays.array import Array
from pygsampler._arrays.ids import IdView, as_ids
from pygsampler._batch import layout as at
from pygsampler._batch.attached_features import HasFeatures
from pygsampler._batch.hetero_torch_minibatch import NodeTypeView
from pygsampler._batch.html_tables import arrays_html
from pygsampler._engine import memory as memories

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import torch

    from pygsampler._engine.memory import Memory

__all__ = ["HeteroVisits", "SeedVisits", "TorchVisits", "Visits"]


def __dir__() -> list[str]:
    return sorted(__all__)


V = TypeVar("V", bound="TorchVisits")


class Visits:
    """For each seed the vertices that its walks have visited most, and how often.

    A row is a seed: the most visited vertex first, and among those with as many visits the one that
    came first, walk after walk. -1 (and 0 visits) stands behind the last. All arrays are views of
    one memory; those of a graph on a GPU are there, complete for every stream.
    """

    __slots__ = ("__weakref__", "_device", "_kind", "_memory", "_rows", "_seeds", "batch", "epoch")

    epoch: int
    batch: int
    _memory: Memory
    _device: int
    _rows: dict[str, Array]
    _seeds: IdView
    # Of a graph with types that of the seeds and of the vertices.
    _kind: str | None

    def __init__(self) -> None:
        raise TypeError("Visits: made by PinSAGE.sample")

    @classmethod
    def _of(cls, memory: Memory, epoch: int, batch: int) -> Visits:
        made = object.__new__(cls)
        made.epoch, made.batch = epoch, batch
        made._memory, made._device = memory, memory.device
        words = memories.read_int64(memory.header, at.WALK_WORDS)
        made._rows = {}
        seeds = words[at.WALK_NUM_WALKS] // words[at.WALK_PER_SEED]
        for row in at.WALK_ROWS:
            array = Array._of_row(row, words, words, memory.data, memory, memory.device)
            if array is not None and row.name in ("top_nodes", "visits"):
                top = words[at.WALK_NUM_TOP] // max(seeds, 1)
                made._rows[row.name] = array._at(array._address, (seeds, top))
        return made

    def _by(self, seeds: IdView, kind: str | None) -> Visits:
        """Itself, of these seeds."""
        self._seeds, self._kind = seeds, kind
        return self

    def __len__(self) -> int:
        return self.nodes.shape[0]

    @property
    def output_nodes(self) -> Array:
        """The seeds, in the order of the rows, as they were given: shape [seeds], int32 or int64.

        A copy on the CPU, or what was given on a GPU.
        """
        return Array._of_view(self._seeds)

    @property
    def nodes(self) -> Array:
        """The vertices: shape [seeds, num_neighbors], in the graph's id dtype."""
        return self._rows["top_nodes"]

    @property
    def counts(self) -> Array:
        """How often each was visited: shape [seeds, num_neighbors], int32."""
        return self._rows["visits"]

    @property
    def device(self) -> str:
        """Where the arrays are: ``"cpu"`` or, for one, ``"cuda:0"``."""
        return devices.name(self._device)

    @property
    def num_edges(self) -> int:
        """Places for neighbours of all seeds."""
        return self.nodes._length

    def torch(self) -> SeedVisits:
        """The same in torch tensors, which share the memory."""
        made = SeedVisits(self.nodes.torch(), self.counts.torch())
        made.epoch, made.batch = self.epoch, self.batch
        return made._by(self._seeds, self._kind)

    def cpu(self) -> tuple[Array, Array]:
        """``nodes`` and ``counts`` on the CPU: themselves, or copies."""
        return self.nodes.cpu(), self.counts.cpu()

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        if self._device >= 0:
            raise TypeError(
                f"Visits.pickle: expected visits on the CPU, got some on {self.device}; "
                ".torch() makes tensors, which pickle"
            )
        return _restored, (self._rows, self.output_nodes, self._kind, self.epoch, self.batch)

    def __repr__(self) -> str:
        where = "" if self._device < 0 else f", device={self.device}"
        seeds, top = self.nodes.shape
        numbers = f"epoch={self.epoch}, batch={self.batch}"
        return f"Visits({seeds}, num_neighbors={top}, {numbers}{where})"

    def _repr_html_(self) -> str:
        return arrays_html(repr(self), (("nodes", self.nodes), ("counts", self.counts)))


def _restored(
    rows: dict[str, Array], seeds: Array, kind: str | None, epoch: int, batch: int
) -> Visits:
    made = object.__new__(Visits)
    made.epoch, made.batch = epoch, batch
    # Arrays have memory of their own.
    made._rows, made._device = rows, devices.CPU
    return made._by(as_ids(seeds, "seeds"), kind)


class TorchVisits:
    """``Visits`` in torch tensors, on the device where they are."""

    nodes: torch.Tensor
    """The vertices: shape [seeds, num_neighbors], -1 behind the last."""
    counts: torch.Tensor
    """How often each was visited: shape [seeds, num_neighbors], int32."""
    epoch: int = 0
    batch: int = 0

    def __init__(self, nodes: torch.Tensor, counts: torch.Tensor) -> None:
        self.nodes, self.counts = nodes, counts

    @classmethod
    def _of_region(
        cls: type[V], region: torch.Tensor, words: Sequence[int], epoch: int, batch: int
    ) -> V:
        import torch

        seeds = words[at.WALK_NUM_WALKS] // words[at.WALK_PER_SEED]
        count, width = words[at.WALK_NUM_TOP], region.element_size()
        shape = seeds, count // max(seeds, 1)
        first = words[at.WALK_TOP_NODES] // width
        narrow = region if width == 4 else region.view(torch.int32)
        visits = words[at.WALK_VISITS] // 4
        made = cls(
            region[first : first + count].view(shape),
            narrow[visits : visits + count].view(shape),
        )
        made.epoch, made.batch = epoch, batch
        return made

    def __len__(self) -> int:
        return int(self.nodes.shape[0])

    @property
    def num_edges(self) -> int:
        """Places for neighbours of all seeds."""
        return self.nodes.numel()

    @property
    def importance(self) -> torch.Tensor:
        """The part of a seed's visits that each vertex has of those that are told: PinSAGE's
        importance pooling (section 3.2). Shape [seeds, num_neighbors], float32; 0 behind the last.
        """
        return self.counts / self.counts.sum(dim=1, keepdim=True).clamp(min=1)

    def coo(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Edges from neighbours to seeds: the vertices, the place of the seed of each, and the
        counts; shape [edges] each, seed after seed."""
        found = self.nodes >= 0
        place = found.nonzero()[:, 0]
        return self.nodes[found], place, self.counts[found]

    def torch(self: V) -> V:
        """Itself."""
        return self

    def __repr__(self) -> str:
        seeds, top = self.nodes.shape
        return (
            f"{type(self).__name__}({seeds}, num_neighbors={top}, epoch={self.epoch}, "
            f"batch={self.batch}, device={str(self.nodes.device)!r})"
        )

    def _repr_html_(self) -> str:
        return arrays_html(repr(self), (("nodes", self.nodes), ("counts", self.counts)))


class _UniqueNodes(NamedTuple):
    """Seeds and their neighbours as distinct vertices."""

    nodes: torch.Tensor
    seeds: torch.Tensor
    neighbors: dict[Any, torch.Tensor]


class _SeedVisitsBase(HasFeatures):
    """Visits that say whose they are, and have rows beside them.

    Of a graph with types ``output_nodes``, and what else here is of vertices, are mappings of types
    to tensors; else each is one tensor.
    """

    output_nodes: Any
    """The seeds, in the order of the rows, duplicates kept: those of one type behind each other."""
    epoch: int
    batch: int

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def _kinds(self) -> Mapping[Any, TorchVisits]:
        """The visits by type; of a graph without types under anything."""
        raise NotImplementedError

    @property
    def input_nodes(self) -> Any:
        """The distinct seeds and neighbours, the seeds first: of which features are needed."""
        return self._of_numbered({kind: made.nodes for kind, made in self._numbered.items()})

    @property
    def output_index(self) -> Any:
        """For each seed its place among ``input_nodes``, of its type."""
        return self._of_numbered({kind: made.seeds for kind, made in self._numbered.items()})

    def _indices(self) -> dict[Any, torch.Tensor]:
        """By type, for each neighbour its place among ``input_nodes``; -1 behind the last."""
        made: dict[Any, torch.Tensor] = {}
        for numbered in self._numbered.values():
            made |= numbered.neighbors
        return made

    def _near(self, kind: Any, x: torch.Tensor) -> torch.Tensor:
        """Of ``x``, rows of ``input_nodes``, those of each seed's neighbours of a type."""
        nodes = self.input_nodes
        count = len(nodes[kind] if isinstance(nodes, Mapping) else nodes)
        if len(x) != count:
            raise ValueError(f"x: expected a row for each of {count} vertices, got {len(x)}")
        index = self._indices()[kind]
        there = index >= 0
        made = x.new_zeros(*index.shape, *x.shape[1:])
        made[there] = x[index[there].long()]
        return made

    @property
    def features(self) -> Mapping[str, Any]:
        """Those that a loader was asked for, by name; each is an attribute too."""
        return super().features

    @cached_property
    def _numbered(self) -> dict[Any, _UniqueNodes]:
        """By type; of a graph without types all vertices, under None."""
        seeds, visits = self.output_nodes, self._kinds()
        if not isinstance(seeds, Mapping):
            return {None: _numbered(seeds, visits)}
        return {
            kind: _numbered(ids, {kind: visits[kind]} if kind in visits else {})
            for kind, ids in seeds.items()
        }

    def _of_numbered(self, made: dict[Any, torch.Tensor]) -> Any:
        return MappingProxyType(made) if isinstance(self.output_nodes, Mapping) else made[None]

    def _of_type(self, kind: str) -> NodeTypeView:
        return NodeTypeView(self, kind)

    def _attach(self, name: str, rows: Any) -> None:
        # Mappings have names that batches have not, as "items".
        of = type(self)
        if hasattr(of, name) or any(name in vars(k).get("__annotations__", ()) for k in of.__mro__):
            raise ValueError(f"features: expected names that visits do not have, got {name!r}")
        super()._attach(name, rows)


class SeedVisits(_SeedVisitsBase, TorchVisits):
    """PinSAGE's neighbours: ``TorchVisits`` that say whose they are.

    A loader that was given ``features`` puts the rows of ``input_nodes`` beside them, as attributes
    and in ``features``, and the ``labels`` of ``output_nodes`` as ``y``. Along a metapath of a
    graph with types the attributes here are mappings of the type where it begins to tensors.

        own = batch.x[batch.output_index]   # x: rows of batch.input_nodes
        near = batch.neighbor_rows(batch.x)  # [seeds, num_neighbors, ...], most visited first
        mean = (near * batch.importance.unsqueeze(2)).sum(dim=1)
    """

    _seeds: IdView
    _kind: str | None = None

    def _by(self, seeds: IdView, kind: str | None) -> SeedVisits:
        """As that of ``Visits``."""
        self._seeds, self._kind = seeds, kind
        return self

    @cached_property
    def output_nodes(self) -> Any:
        """The seeds, in the order of the rows, duplicates kept."""
        given = Array._of_view(self._seeds).torch()
        ids = given.to(self.nodes.device, self.nodes.dtype)
        return ids if self._kind is None else MappingProxyType({self._kind: ids})

    def _kinds(self) -> Mapping[Any, TorchVisits]:
        return {self._kind: self}

    @property
    def neighbor_index(self) -> torch.Tensor:
        """For each neighbour its place among ``input_nodes``: shape [seeds, num_neighbors]; -1
        behind the last."""
        return self._indices()[self._kind]

    def neighbor_rows(self, x: torch.Tensor) -> torch.Tensor:
        """The rows of each seed's neighbours: shape [seeds, num_neighbors, ...], 0 behind the last.

        ``x`` has a row for each of ``input_nodes``. Gradients go to it. ValueError for another
        number of rows.
        """
        return self._near(self._kind, x)

    def __reduce__(self) -> tuple[Any, ...]:
        seeds = self.output_nodes if self._kind is None else self.output_nodes[self._kind]
        about = self.nodes, self.counts, seeds, self._kind, self.epoch, self.batch
        return _seeded, about, dict(self.features)


def _seeded(nodes: Any, counts: Any, seeds: Any, kind: Any, epoch: int, batch: int) -> SeedVisits:
    made = SeedVisits(nodes, counts)
    made.epoch, made.batch = epoch, batch
    return made._by(as_ids(seeds, "seeds", seeds.get_device()), kind)


class HeteroVisits(_SeedVisitsBase, Mapping[Any, TorchVisits]):
    """HetGNN's neighbours: a mapping of types to ``TorchVisits``, each with a row for each seed.

    Of a graph with types the ids of a type's ``TorchVisits`` are that type's, and the attributes
    here are mappings of all types of the graph to tensors; else each is one tensor. A loader that
    was given ``features`` puts the rows of ``input_nodes`` beside them, as attributes and in
    ``features``, and the ``labels`` of ``output_nodes`` as ``y``: of a graph with types mappings.

        own = x[batch.output_index]         # x: rows of batch.input_nodes
        near = batch.neighbor_rows(kind, x)       # [seeds, top, ...], the most visited first
        there = batch[kind].counts > 0      # which of them are
    """

    _visits: dict[Any, TorchVisits]

    def __init__(self, visits: Mapping[Any, TorchVisits], output_nodes: Any) -> None:
        self._visits = dict(visits)
        self.output_nodes = output_nodes
        if isinstance(output_nodes, Mapping):
            self.output_nodes = MappingProxyType(output_nodes)

    def __getitem__(self, kind: Any) -> TorchVisits:
        return self._visits[kind]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._visits)

    def __len__(self) -> int:
        return len(self._visits)

    def _kinds(self) -> Mapping[Any, TorchVisits]:
        return self._visits

    @property
    def neighbor_index(self) -> Mapping[Any, torch.Tensor]:
        """For each neighbour its place among ``input_nodes``, of its type: a mapping of the types
        asked for to tensors of shape [seeds, top]; -1 behind the last."""
        made = self._indices()
        return MappingProxyType({kind: made[kind] for kind in self})

    def neighbor_rows(self, kind: Any, x: torch.Tensor) -> torch.Tensor:
        """The rows of each seed's neighbours of a type: shape [seeds, top, ...], 0 behind the last.

        ``x`` has a row for each of ``input_nodes``, of a graph with types for each of that type.
        Gradients go to it. ValueError for another number of rows.
        """
        return self._near(kind, x)

    @property
    def num_edges(self) -> int:
        """Places for neighbours of all seeds."""
        return sum(visits.num_edges for visits in self.values())

    def torch(self) -> HeteroVisits:
        """Itself."""
        return self

    def __repr__(self) -> str:
        told = ", ".join(f"{kind}={visits.nodes.shape[1]}" for kind, visits in self.items())
        seeds = self.output_nodes
        count = sum(map(len, seeds.values())) if isinstance(seeds, Mapping) else len(seeds)
        return f"HeteroVisits({count}, {told}, epoch={self.epoch}, batch={self.batch})"

    def _repr_html_(self) -> str:
        arrays = (
            (f"batch[{kind!r}].{name}", getattr(visits, name))
            for kind, visits in self.items()
            for name in ("nodes", "counts")
        )
        return arrays_html(repr(self), arrays)

    def __reduce__(self) -> tuple[Any, ...]:
        seeds = self.output_nodes
        given = dict(seeds) if isinstance(seeds, Mapping) else seeds
        numbers = self.epoch, self.batch
        return _typed, (self._visits, given, *numbers), dict(self.features)


def _typed(visits: Any, output_nodes: Any, epoch: int, batch: int) -> HeteroVisits:
    made = HeteroVisits(visits, output_nodes)
    made.epoch, made.batch = epoch, batch
    return made


def _numbered(seeds: torch.Tensor, visits: Mapping[Any, TorchVisits]) -> _UniqueNodes:
    import torch

    from pygsampler._batch.unique import unique_by_first

    there = {kind: of_kind.nodes >= 0 for kind, of_kind in visits.items()}
    parts = [seeds, *(of_kind.nodes[there[kind]] for kind, of_kind in visits.items())]
    nodes, places = unique_by_first(torch.cat(parts))
    of_seeds, *rest = torch.split(places.to(nodes.dtype), list(map(len, parts)))
    neighbors = {}
    for (kind, of_kind), found in zip(visits.items(), rest, strict=True):
        index = neighbors[kind] = torch.full_like(of_kind.nodes, -1)
        index[there[kind]] = found
    return _UniqueNodes(nodes, of_seeds, neighbors)


def top_visits(rows: torch.Tensor, top: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Of each row of vertices those that stand there most often, and how often.

    ``rows`` is [N, n], -1 where there is none; the results are [N, top], ordered as those of
    ``Visits``.
    """
    import torch

    count, length = rows.shape
    # By row, vertex and place: a stable sort of each row.
    values, places = rows.sort(dim=1, stable=True)
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
    rank = torch.arange(len(row), device=rows.device)
    begins = torch.zeros(count + 1, dtype=torch.int64, device=rows.device)
    begins[1:] = torch.bincount(row, minlength=count).cumsum(0)
    rank -= begins[row]
    kept = rank < top
    nodes = torch.full((count, top), -1, dtype=rows.dtype, device=rows.device)
    counts = torch.zeros((count, top), dtype=torch.int32, device=rows.device)
    nodes[row[kept], rank[kept]] = values[row[kept], column[kept]]
    counts[row[kept], rank[kept]] = visits[kept].to(torch.int32)
    return nodes, counts
