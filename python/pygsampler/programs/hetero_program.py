"""``HeteroProgram``: programs over relations of a graph with types, and ``RelationBatch``."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pygsampler._batch.edge_values import NO_VALUES
from pygsampler._batch.html_tables import table_html
from pygsampler._engine.checks import describe
from pygsampler._graph.graph import Graph, is_heterogeneous
from pygsampler._graph.schema import TYPE, ByEdgeType, check_by_type
from pygsampler._sampling.hetero_inputs import homogeneous_ids, ids_in_homogeneous
from pygsampler._sampling.pending import MappedJob, PendingBatch
from pygsampler.programs._language.reports import Explanation
from pygsampler.programs.program_sampler import ProgramSamplerWithInputs

if TYPE_CHECKING:
    from pygsampler._graph.homogeneous import HomogeneousView
    from pygsampler._graph.schema import EdgeType

__all__ = ["HeteroNodeList", "HeteroProgram", "RelationBatch", "RelationEdges"]


def __dir__() -> list[str]:
    return sorted(__all__)


class RelationEdges(NamedTuple):
    """Sampled edges of one relation: arrays as the batch's, all of shape [E]."""

    src: Any
    """Places in ``RelationBatch.input_nodes`` of the relation's source type, int64."""
    dst: Any
    """Places in ``RelationBatch.input_nodes`` of its destination type, int64."""
    edge_ids: Any
    """Ids among the edges of the relation, int64."""
    values: Any
    """What the program computed of each edge, float32; None of a matrix of ones."""
    named: Mapping[str, Any] = NO_VALUES
    """What it returned of them by other names than ``"w"``: float32."""


class HeteroNodeList(NamedTuple):
    """A list of vertices of several types, in its order: arrays as the batch's, of shape [N]."""

    types: Any
    """The place of each one's type in ``RelationBatch.node_types``, int64."""
    ids: Any
    """Ids within the types, int64."""


class RelationBatch:
    """What a program over relations samples; ids count within a type.

    All arrays are NumPy's, or of a graph on a GPU torch's tensors there.

    Attributes
    ----------
    node_types : tuple of str
        The ends of the program's relations.
    input_nodes : dict of str to int64, shape [V]
        Original ids of the vertices of each type, in the order of the batch.
    output_nodes : dict of str to int64, shape [S]
        The seeds of each type, as they were given.
    output_index : dict of str to int64, shape [S]
        Their places in ``input_nodes``; -1 for those that a subgraph lacks.
    blocks : tuple of dict of (str, str, str) to RelationEdges
        Of each matrix that was returned, outermost hop first, or of a subgraph the one, its edges
        by relation, in the order of the matrix.
    num_dst_nodes : tuple of dict of str to int
        For each of the blocks how many of ``input_nodes``, from the first on, are its destinations.
    extra : dict of str to float32, shape [N], or HeteroNodeList
        Vectors and lists that were returned by name.
    epoch, batch : int
    """

    __slots__ = (
        "batch",
        "blocks",
        "epoch",
        "extra",
        "input_nodes",
        "node_types",
        "num_dst_nodes",
        "output_index",
        "output_nodes",
    )

    node_types: tuple[str, ...]
    input_nodes: dict[str, Any]
    output_nodes: dict[str, Any]
    output_index: dict[str, Any]
    blocks: tuple[dict[EdgeType, RelationEdges], ...]
    num_dst_nodes: tuple[dict[str, int], ...]
    extra: dict[str, Any]
    epoch: int
    batch: int

    @classmethod
    def _of(cls, joined: Any, joint: HomogeneousView, lists: Sequence[str]) -> RelationBatch:
        """Of a batch of the graph that the relations make together."""
        xp, of_numbers, own = _library(joint.graph._device)
        made = object.__new__(cls)
        made.epoch, made.batch = joined.epoch, joined.batch
        made.node_types = tuple(joint.nodes)
        node_starts = of_numbers([*joint.nodes.values()])
        edge_starts = of_numbers([*joint.edges.values()])

        def typed(ids: Any, starts: Any) -> HeteroNodeList:
            ids = of_numbers(ids)
            # Types without vertices begin where the next one does: the last is the one.
            kinds = xp.searchsorted(starts, ids, side="right") - 1
            return HeteroNodeList(kinds, ids - starts[kinds])

        kinds, ids = typed(joined.input_nodes, node_starts)
        # Of each vertex of the batch, its place among those of its type.
        places = xp.zeros_like(ids)
        for i in range(len(node_starts)):
            mine = kinds == i
            places[mine] = mine.cumsum(0)[mine] - 1
        made.input_nodes = {kind: ids[kinds == i] for i, kind in enumerate(joint.nodes)}
        seeds = typed(joined.output_nodes, node_starts)
        index = of_numbers(joined.output_index)
        found = xp.where(index < 0, -1, places[index]) if len(places) else index
        made.output_nodes = {k: seeds.ids[seeds.types == i] for i, k in enumerate(joint.nodes)}
        made.output_index = {k: found[seeds.types == i] for i, k in enumerate(joint.nodes)}
        blocks, counts = [], []
        for block in joined.blocks:
            src, dst = (places[of_numbers(ends)] for ends in block.coo())
            relations, edge_ids = typed(block.edge_ids, edge_starts)
            values = block.edge_data.get("w")
            values = None if values is None else own(values)
            named = {name: own(array) for name, array in block.edge_values.items()}
            of_relations: ByEdgeType[RelationEdges] = ByEdgeType()
            for i, kind in enumerate(joint.edges):
                mine = relations == i
                kept = None if values is None else values[mine]
                others = {name: array[mine] for name, array in named.items()}
                ends = src[mine], dst[mine]
                of_relations[kind] = RelationEdges(*ends, edge_ids[mine], kept, others)
            blocks.append(of_relations)
            first = xp.bincount(kinds[: block.num_dst_nodes], minlength=len(node_starts))
            counts.append(dict(zip(joint.nodes, first.tolist(), strict=True)))
        made.blocks, made.num_dst_nodes = tuple(blocks), tuple(counts)
        made.extra = {
            name: typed(values, node_starts) if name in lists else own(values)
            for name, values in joined.extra.items()
        }
        return made

    def __repr__(self) -> str:
        nodes = {kind: len(ids) for kind, ids in self.input_nodes.items()}
        edges = sum(len(each.src) for block in self.blocks for each in block.values())
        return f"RelationBatch(nodes={nodes}, blocks={len(self.blocks)}, edges={edges})"

    def _repr_html_(self) -> str:
        rows = (
            (f"blocks[{i}][{kind!r}]", len(each.src))
            for i, block in enumerate(self.blocks)
            for kind, each in block.items()
        )
        return table_html(repr(self), ("block", "edges"), rows)


class HeteroProgram(ProgramSamplerWithInputs[RelationBatch]):
    """A sampler of a ``HeteroGraph`` that a program over relations makes; see ``program``.

    It is one plan over one graph: the relations that the program names, in the order in which it
    does, put together as ``HeteroGraph.to_homogeneous`` puts those of a graph with no others. That
    is made at the first batch and kept with the graph. So what other relations there are, and in
    which order, changes no batch. Seeds are a mapping of types to ids. Batches are
    ``RelationBatch``, made with NumPy, or of a graph on a GPU with torch, there.
    """

    _takes_types = True

    def __init__(self, program: Any, relations: Sequence[EdgeType], lists: Sequence[str]) -> None:
        # The program is one of the joined graph.
        super().__init__(program)
        self._relations, self._lists = tuple(relations), tuple(lists)

    @property
    def plan(self) -> Hashable:
        """The program's plan and its relations."""
        return self._program.plan, self._relations

    @property
    def result_kind(self) -> str:
        """``"relations"``, which DGL's and PyG's loaders do not take."""
        return "relations"

    @property
    def relations(self) -> tuple[EdgeType, ...]:
        """The relations that the program names, in order."""
        return self._relations

    def _joint(self, graph: Any) -> HomogeneousView:
        if not is_heterogeneous(graph):
            raise TypeError(
                f"graph: expected a heterogeneous graph, of which {self.name} takes "
                f"{self._relations[0]}, got {describe(graph)}"
            )
        for kind in self._relations:
            if kind not in graph.edge_types:
                known = ", ".join(map(str, graph.edge_types))
                raise ValueError(f"{self.name}: expected relations among {known}, got {kind}")
        edges, nodes = self._program.array_names
        return graph._joint(
            self._relations,
            self._relations[0][0],
            tuple(sorted({*edges} - {TYPE})),
            tuple(sorted({*nodes, *self._program._reads.rows} - {TYPE})),
        )

    def _graph(self, graph: Any) -> Any:
        return self._joint(graph).graph

    def _given(self, graph: Any, seeds: Any) -> tuple[Any, Any]:
        joint = self._joint(graph)
        return joint.graph, homogeneous_ids(seeds, graph, joint)

    def explain(self, graph: Graph, seeds: int = 1024, *, batches: int = 0) -> Explanation:
        """As ``Program.explain``, of the relations put together.

        Batches are measured of vertices at equal distances among all types.
        """
        text = super().explain(graph, seeds, batches=batches)
        names = ", ".join(map(str, self._relations))
        return Explanation(f"one graph, put together of {names}\n{text}")

    def launch(
        self,
        graph: Any,
        seeds: Any,
        *,
        epoch: int,
        batch: int,
        exclude: Any = None,
        threads: int = 0,
        form: str = "array",
        asynchronous: bool = False,
    ) -> PendingBatch[RelationBatch]:
        """As ``Sampler.launch``; ``exclude`` is a mapping of the program's relations to ids."""
        joint = self._joint(graph)
        without = None
        if exclude is not None:
            counts = {kind: graph[kind]._relation._rows()[0].number for kind in joint.edges}
            without = check_by_type(exclude, "exclude", joint.edges, "the program")
            without = ids_in_homogeneous(
                without, "exclude", joint.edges, counts, "int64", graph._device
            )
        job = self._program.launch(
            joint.graph,
            homogeneous_ids(seeds, graph, joint),
            epoch=epoch,
            batch=batch,
            exclude=without,
            threads=threads,
            asynchronous=asynchronous,
        )
        return MappedJob(job, lambda joined: RelationBatch._of(joined, joint, self._lists))

    def __repr__(self) -> str:
        return f"{self._program!r} over {', '.join(map(str, self._relations))}"


def _library(device: int) -> tuple[Any, Callable[[Any], Any], Callable[[Any], Any]]:
    """NumPy, or for a graph on a GPU torch; what makes int64 of an array or a list of numbers, and
    what copies an array. Both libraries have what is used of them under one name."""
    if device < 0:
        import numpy

        return numpy, lambda of: numpy.array(of, numpy.int64), lambda of: of.numpy().copy()
    import torch

    def of_numbers(given: Any) -> Any:
        if isinstance(given, list):
            return torch.tensor(given, device=torch.device("cuda", device))
        return given.torch().long()

    return torch, of_numbers, lambda of: of.torch().clone()
