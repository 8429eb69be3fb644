"""``SeedEdges``: the links of one relation, from the arguments of a loader."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from pygsampler._arrays.tensors import as_tensor
from pygsampler._engine.checks import describe
from pygsampler._graph.graph import Graph, is_heterogeneous
from pygsampler._graph.schema import check_by_type
from pygsampler._loader.edge_relation import EdgeRelation, edge_relation
from pygsampler._loader.negatives import NegativeSampling
from pygsampler._loader.seeds import label_tensor, seed_times_tensor, to_device
from pygsampler._sampling.seed_times import is_scalar_time

if TYPE_CHECKING:
    from pygsampler._graph.graph import Graph

__all__ = [
    "BatchSeeds",
    "SampledEdges",
    "SeedEdges",
    "all_links",
    "collect_seeds",
    "edge_ids",
    "ids_below",
]


class SampledEdges(NamedTuple):
    """Links of a batch: their places, and lists of the nodes at their ends and their negatives'.

    Each list has its node type, and the times of its nodes.
    """

    places: torch.Tensor
    lists: list[tuple[str, torch.Tensor]]
    times: list[torch.Tensor]


class SeedEdges:
    """Edges to be predicted, with what belongs to them. ``where`` names the relation in errors."""

    __slots__ = ("_ends", "_labels", "_negatives", "_relation", "_times", "ids")

    def __init__(
        self,
        relation: EdgeRelation,
        edges: Any,
        *,
        dtype: str,
        negative_sampling: NegativeSampling | None,
        labels: Any,
        times: Any,
        where: str = "",
    ) -> None:
        self._relation = relation
        negatives = self._negatives = _negatives(negative_sampling, where)
        # Edges passed as ids have ids and ends, other edges the ends alone.
        self.ids, ends = _links(relation, edges, where)
        self._ends = ends.to(getattr(torch, dtype)).contiguous()
        self._labels = _labels(labels, len(self), negatives, where)
        self._times = seed_times_tensor(times, f"seed_time{where}", len(self), "edges")
        if negatives is not None:
            if negatives.time_attr is not None and times is None:
                raise ValueError(
                    f"seed_time{where}: expected a time for each edge with negatives of "
                    f"time_attr={negatives.time_attr!r}, got None"
                )
            negatives._check(relation)

    def __len__(self) -> int:
        return self._ends.shape[1]

    @property
    def has_negative_times(self) -> bool:
        """True if negatives are drawn among nodes that exist at the time of their edge."""
        return self._negatives is not None and self._negatives.time_attr is not None

    def sizes(self, edges: int) -> list[tuple[str, int]]:
        """Returns node type and length of each list that ``sample`` returns for ``edges`` edges."""
        of_src, of_dst = self._relation.ends
        made = [(of_src, edges), (of_dst, edges)]
        negatives = self._negatives
        if negatives is not None:
            made.append((of_dst, edges * negatives.amount))
            if negatives.src_weight is not None:
                made.append((of_src, edges * negatives.amount))
        return made

    def sample(self, places: torch.Tensor, seed: int, epoch: int, batch: int) -> SampledEdges:
        """The nodes of the edges at these places, and of their negatives."""
        src, dst = self._ends[:, places]
        of_src, of_dst = self._relation.ends
        lists, times = [(of_src, src), (of_dst, dst)], []
        bound = None if self._times is None else self._times[places]
        if bound is not None:
            times = [bound, bound]
        if self._negatives is not None:
            number = seed, epoch, batch
            sources, made = self._negatives._draw(self._relation, src, dst, number, bound)
            lists.append((of_dst, made.flatten()))
            if sources is not None:
                lists.append((of_src, sources.flatten()))
            if bound is not None:
                times += [bound.repeat_interleave(self._negatives.amount)] * (len(lists) - 2)
        return SampledEdges(places, lists, times)

    def handed(self, places: torch.Tensor, where: list[torch.Tensor], index: int) -> list[Any]:
        """Returns the fields of ``LinkBatch`` for a batch of links, from ``input_id`` on.

        ``where`` has the rows of each list of nodes.
        """
        src, dst, *others = where
        label = None if self._labels is None else to_device(self._labels[places], index)
        negatives = self._negatives
        if negatives is not None and negatives.mode == "triplet":
            return [
                *(places, None, label, src, dst),
                others[0].view(len(places), negatives.amount),
            ]
        if negatives is not None:
            made, *drawn = others
            sources = drawn[0] if drawn else src.repeat_interleave(negatives.amount)
            both = torch.stack([torch.cat([src, sources]), torch.cat([dst, made])])
        else:
            both = torch.stack([src, dst])
        if label is None:
            label = torch.zeros(both.shape[1], device=src.device)
            label[: len(places)] = 1
        return [places, both, label, None, None, None]


def all_links(graph: Any, edges: Any, **options: Any) -> dict[Any, SeedEdges]:
    """The links of a loader by relation, with the relations of the graph first, in its order.

    A homogeneous graph has one relation, None. ``options`` are the options of ``SeedEdges``; for a
    heterogeneous graph they are mappings, except for negatives of all types.
    """
    dtype = graph.dtype
    times = options.pop("seed_time")
    if not is_heterogeneous(graph):
        return {None: SeedEdges(edge_relation(graph), edges, dtype=dtype, times=times, **options)}
    if not isinstance(edges, Mapping) and len(graph.edge_types) == 1:
        edges = {graph.edge_types[0]: edges}
    if not isinstance(edges, Mapping):
        raise TypeError(f"edges: expected a mapping of edge types to edges, got {describe(edges)}")
    # Pairs of nodes may be of a type that the graph has no edges of.
    others = [kind for kind in edges if isinstance(kind, tuple) and kind not in graph.edge_types]
    edges = check_by_type(edges, "edges", [*graph.edge_types, *others])
    if not isinstance(options["negative_sampling"], Mapping) and _negatives(
        options["negative_sampling"], ""
    ):
        options["negative_sampling"] = dict.fromkeys(edges, options["negative_sampling"])
    known = [kind for kind in graph.edge_types if kind in edges]
    order = [*known, *(kind for kind in edges if kind not in known)]
    options["times"] = dict.fromkeys(order, times) if is_scalar_time(times) else times
    given = {
        name: check_by_type(
            of, "seed_time" if name == "times" else name, order, "the loader's edges"
        )
        for name, of in options.items()
    }
    made = {}
    for kind in order:
        mine = {name: of.get(kind) for name, of in given.items()}
        try:
            relation = edge_relation(graph, kind)
        except (TypeError, ValueError) as error:
            text = str(error).replace("edge_type", "edges")
            raise type(error)(text) from None
        made[kind] = SeedEdges(relation, edges[kind], dtype=dtype, where=f"[{kind!r}]", **mine)
    return made


class BatchSeeds(NamedTuple):
    """The seeds of a batch by type, where the lists are among them, and the seeds' times."""

    seeds: dict[str, torch.Tensor]
    where: list[torch.Tensor]
    times: dict[str, torch.Tensor]


def collect_seeds(batch: Iterable[SampledEdges], disjoint: bool) -> BatchSeeds:
    """Nodes of each type ascending and each once; or, if disjoint, all as they come."""
    lists = [each for drawn in batch for each in drawn.lists]
    times = [each for drawn in batch for each in drawn.times]
    where = [torch.empty(0)] * len(lists)
    seeds, when = {}, {}
    for kind in dict.fromkeys(of for of, _ in lists):
        mine = [i for i, (of, _) in enumerate(lists) if of == kind]
        vertices = torch.cat([lists[i][1] for i in mine])
        if disjoint:
            seeds[kind], place = vertices, torch.arange(len(vertices))
            if times:
                when[kind] = torch.cat([times[i] for i in mine])
        else:
            seeds[kind], place = torch.unique(vertices, return_inverse=True)
        first = 0
        for i in mine:
            where[i] = place[first : first + len(lists[i][1])]
            first += len(where[i])
    return BatchSeeds(seeds, where, when)


def edge_ids(ids: Any, name: str, count: int, below: int) -> torch.Tensor:
    """Returns for each of ``count`` edges its id, below ``below``, or -1 for none."""
    given = _tensor(ids, name)
    if tuple(given.shape) != (count,):
        raise ValueError(f"{name}: expected shape [{count}], got {tuple(given.shape)}")
    _check_range(given, name, below, "an edge id, or -1 for none,", least=-1)
    return given


def ids_below(ids: Any, name: str, below: int) -> torch.Tensor:
    """Some edges among so many, without those that are -1."""
    given = _tensor(ids, name)
    if given.dim() != 1:
        raise ValueError(f"{name}: expected edge ids of one dimension, got {tuple(given.shape)}")
    _check_range(given, name, below, "an edge id, or -1 for none,", least=-1)
    return given[given >= 0]


def _negatives(value: Any, where: str) -> NegativeSampling | None:
    if value is not None and not isinstance(value, NegativeSampling):
        amount = value if isinstance(value, int) and not isinstance(value, bool) else 1
        kind = f"{value!r}, " if isinstance(value, str) else ""
        raise TypeError(
            f"negative_sampling{where}: expected NegativeSampling or None, got {describe(value)}; "
            f"NegativeSampling({kind}amount={amount}) draws {amount} for each edge"
        )
    return value


def _links(
    relation: EdgeRelation, edges: Any, where: str
) -> tuple[torch.Tensor | None, torch.Tensor]:
    """Returns the ids of edges, if the argument has ids, and their sources and destinations."""
    name = f"edges{where}"
    given = _tensor(edges, name)
    if given.dim() == 1:
        if relation.graph is None:
            raise ValueError(
                f"{name}: expected nodes, shape [2, E], of a relation that the graph has no "
                f"edges of, got shape {tuple(given.shape)}"
            )
        _check_range(given, name, relation.graph.num_edges, "an edge id")
        return given, _endpoints(relation.graph._on_cpu(), given)
    if given.dim() != 2 or given.shape[0] != 2:
        raise ValueError(f"{name}: expected shape [E] or [2, E], got {tuple(given.shape)}")
    for row, count in enumerate((relation.num_src, relation.num_dst)):
        _check_range(given[row], name, count, "a node", f"{row}, ")
    return None, given


def _endpoints(graph: Graph, ids: torch.Tensor) -> torch.Tensor:
    """Sources and destinations of edges of a graph on the CPU: shape [2, E]."""
    place = ids
    if graph.edge_ids is not None:
        of = graph.edge_ids.torch().long()
        place = torch.empty_like(of)
        place[of] = torch.arange(len(of))
        place = place[ids]
    indptr, indices = graph.indptr.torch().long(), graph.indices.torch().long()
    return torch.stack([indices[place], torch.searchsorted(indptr, place, right=True) - 1])


def _labels(
    labels: Any, count: int, negatives: NegativeSampling | None, where: str
) -> torch.Tensor | None:
    if labels is None:
        return None
    if negatives is not None and negatives.mode == "binary":
        raise ValueError(
            f"labels{where}: expected None with negatives of mode 'binary', whose labels are 1 "
            "and 0"
        )
    return label_tensor(labels, f"labels{where}", count)


def _tensor(ids: Any, name: str) -> torch.Tensor:
    """A copy on the CPU, in 64 bits."""
    try:
        made = as_tensor(ids)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(
            f"{name}: expected an array of int32 or int64, got {describe(ids)}: {error}"
        ) from None
    if made.dtype not in (torch.int32, torch.int64) and made.numel():
        raise TypeError(f"{name}: expected int32 or int64, got {made.dtype}")
    return made.detach().to("cpu", torch.int64, copy=True)


def _check_range(
    ids: torch.Tensor, name: str, below: int, what: str, before: str = "", least: int = 0
) -> None:
    outside = (ids < least) | (ids >= below)
    if bool(outside.any()):
        at = int(outside.nonzero()[0])
        raise IndexError(
            f"{name}[{before}{at}]: expected {what} in [0, {below}), got {int(ids[at])}"
        )
