"""Values of a program's batch once more, by torch: gradients flow to the tensors that it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import torch

from pygsampler._batch.induced_edges import edge_rows, in_edges
from pygsampler.programs._language.inputs import input_of
from pygsampler.programs._language.text import ParsedNode, parse_node, parse_result

if TYPE_CHECKING:
    from pygsampler._graph.graph import Graph as Stored
    from pygsampler._graph.homogeneous import HomogeneousView

__all__ = ["HomogeneousBatch", "homogeneous_batch", "recomputed"]

# The elementwise functions of torch, by the operators' names.
_MAPS: dict[str, Callable[..., torch.Tensor]] = {
    "neg": torch.neg,
    "abs": torch.abs,
    "sqrt": torch.sqrt,
    "exp": torch.exp,
    "log": torch.log,
    "relu": torch.relu,
    "not": lambda x: x == 0,
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "pow": torch.pow,
    "min": torch.minimum,
    "max": torch.maximum,
    "lt": torch.lt,
    "le": torch.le,
    "eq": torch.eq,
    "ne": torch.ne,
    "where": lambda c, a, b: torch.where(c != 0, a, b),
    # A matrix's edges with the values of a vector.
    "spread": lambda _, v: v,
}
# Operators that make a matrix of other edges than those they take.
_FOUND = ("whole", "slice", "cross", "extract", "merge")
_CHOSEN = ("individual", "collective", "dependent", "filter", "top_k")
# Operators whose result has the edges of the matrix that they take first.
_SAME_EDGES = ("data", "dot", "spread")
# Operators that another one's method computes, or one of a plainer name.
_METHODS = {
    "features": "node_array",
    "take": "gather",
    "unique": "union",
    "vertices": "node_array",
    "whole": "all_edges",
}
_OTHER_BATCH = "recompute: expected a batch of this sampler and graph, got one with"
_REDUCTIONS = ("sum", "mean", "largest", "smallest", "count")


class _MatrixEdges(NamedTuple):
    """Edges of a matrix, in its order: sources, positions of their columns, and ids."""

    sources: torch.Tensor
    columns: torch.Tensor
    ids: torch.Tensor
    # The columns' nodes; None: all nodes of the graph, in order.
    nodes: torch.Tensor | None

    def end_nodes(self, axis: int) -> torch.Tensor:
        """Returns the nodes that edges lead to (axis 0) or come from (axis 1)."""
        if axis == 1:
            return self.sources
        return self.columns if self.nodes is None else self.nodes[self.columns]


class _MatrixValues(NamedTuple):
    edges: _MatrixEdges
    values: torch.Tensor


class _OfNodes(NamedTuple):
    """A vector or dense rows: ``values`` for ``nodes``, or a function of ids for all nodes."""

    nodes: torch.Tensor | None
    values: torch.Tensor | None
    function: Callable[[torch.Tensor], torch.Tensor] | None = None

    def values_at(self, ids: torch.Tensor) -> torch.Tensor:
        """Returns the elements of nodes."""
        if self.nodes is not None and self.values is not None:
            if ids is self.nodes:
                return self.values
            return self.values[_positions(self.nodes, ids)]
        assert self.function is not None
        # Each node once, and not once for each of its edges.
        nodes, inverse = torch.unique(ids, return_inverse=True)
        return self.function(nodes)[inverse]


class HomogeneousBlock(NamedTuple):
    """The edges of a hop of all relations, relation by relation, each with its two ends."""

    src_nodes: torch.Tensor
    dst_nodes: torch.Tensor
    edge_ids: torch.Tensor

    def coo(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the positions of the ends of each edge."""
        places = torch.arange(len(self.edge_ids), device=self.edge_ids.device)
        return places, places


class HomogeneousBatch(NamedTuple):
    """A batch of a heterogeneous graph with the ids of its homogeneous view."""

    output_nodes: torch.Tensor
    blocks: list[HomogeneousBlock]
    # The edges of each relation of the view, of each block.
    counts: list[list[int]]
    form: str = "torch"


def homogeneous_batch(batch: Any, view: HomogeneousView) -> HomogeneousBatch:
    """Returns a batch in torch tensors with the ids of a view."""
    nodes = [
        ids.long() + view.nodes[kind]
        for kind, ids in batch.output_nodes.items()
        if kind in view.nodes
    ]
    blocks, counts = [], []
    for hop in batch.blocks:
        ends: list[tuple[torch.Tensor, ...]] = []
        for kind, first in view.edges.items():
            block = hop[kind]
            src, dst = (positions.long() for positions in block.coo())
            ends.append(
                (
                    block.src_nodes.long()[src] + view.nodes[kind[0]],
                    block.dst_nodes.long()[dst] + view.nodes[kind[2]],
                    block.edge_ids.long() + first,
                )
            )
        counts.append([len(ids) for _, _, ids in ends])
        blocks.append(HomogeneousBlock(*(torch.cat(part) for part in zip(*ends, strict=True))))
    return HomogeneousBatch(torch.cat(nodes), blocks, counts)


def recomputed(
    graph: Stored,
    batch: Any,
    code: Sequence[str],
    weight: str | None,
    tensors: Mapping[str, torch.Tensor],
    exclude: torch.Tensor | None,
) -> tuple[list[dict[str, torch.Tensor]], dict[str, torch.Tensor]]:
    """Returns the edge values of each block, and vectors and dense rows by name.

    ``tensors`` are all inputs of the program, of one dtype, on the batch's device; values are
    computed in that dtype.
    """
    return _Recomputation(graph, batch, code, weight, tensors, exclude).result()


class _Recomputation:
    def __init__(
        self,
        graph: Stored,
        batch: Any,
        code: Sequence[str],
        weight: str | None,
        tensors: Mapping[str, torch.Tensor],
        exclude: torch.Tensor | None,
    ) -> None:
        self._graph, self._batch, self._weight = graph, batch, weight
        self._tensors, self._exclude = tensors, exclude
        self._nodes = [parse_node(line) for line in code[:-1]]
        self._returned = parse_result(code[-1])
        self._device = batch.output_nodes.device
        self._dtype = next(iter(tensors.values())).dtype
        self._edge_nodes = self._find_edges()
        # The block that has the chosen edges, by node.
        self._blocks: dict[int, int] = {}
        for place, values in enumerate(self._returned.blocks):
            for node in values.values():
                root = self._edge_nodes[node]
                if root is not None and self._nodes[root].op != "merge":
                    self._blocks[root] = place
        self._values: dict[int, Any] = {}

    def result(self) -> tuple[list[dict[str, torch.Tensor]], dict[str, torch.Tensor]]:
        """Returns the values of all that the program returns, but for lists."""
        matrices = [node for values in self._returned.blocks for node in values.values()]
        for node in self._needed([*matrices, *self._returned.extras.values()]):
            self._values[node] = self._evaluate(node)
        edges = [
            {name: self._of_block(place, node) for name, node in values.items()}
            for place, values in enumerate(self._returned.blocks)
        ]
        extra = {}
        for name, node in self._returned.extras.items():
            value = self._values[node]
            if isinstance(value, _OfNodes):
                extra[name] = self._elements(value)
        return edges, extra

    def _find_edges(self) -> list[int | None]:
        """Returns for each node that is a matrix the node that its edges come from."""
        found: list[int | None] = []
        for place, node in enumerate(self._nodes):
            if node.op in _FOUND or node.op in _CHOSEN:
                found.append(place)
            elif node.op in _SAME_EDGES:
                found.append(found[node.inputs[0]])
            elif node.op in _MAPS:
                edges = (found[each] for each in node.inputs)
                found.append(next((each for each in edges if each is not None), None))
            else:
                found.append(None)
        return found

    def _needed(self, pending: list[int]) -> list[int]:
        """Returns the nodes that some are computed of, in order."""
        seen: set[int] = set()
        while pending:
            place = pending.pop()
            if place in seen:
                continue
            seen.add(place)
            node = self._nodes[place]
            # Edges that a block has are not chosen again.
            chosen = node.op in _CHOSEN and place in self._blocks
            pending += node.inputs[:1] if chosen else node.inputs
        return sorted(seen)

    def _evaluate(self, place: int) -> Any:
        node = self._nodes[place]
        inputs = [self._values[each] for each in node.inputs if each in self._values]
        if node.op in _MAPS:
            return self._map(_MAPS[node.op], node.axis, inputs)
        if node.op in _CHOSEN:
            return self._chosen(place, node, inputs)
        if node.op in _REDUCTIONS:
            return self._reduced(node, inputs[0])
        method = getattr(self, f"_evaluate_{_METHODS.get(node.op, node.op)}", None)
        if method is None:
            self._refuse(node, "an operator that torch computes")
        return method(node, place, *inputs)

    def _refuse(self, node: ParsedNode, expected: str) -> NoReturn:
        raise ValueError(f"recompute: expected {expected}, got {node.op}")

    # Lists.

    def _evaluate_seeds(self, node: ParsedNode, place: int) -> torch.Tensor:
        seeds: torch.Tensor = self._batch.output_nodes.long()
        return seeds

    def _evaluate_column(self, node: ParsedNode, place: int, C: _MatrixValues) -> torch.Tensor:
        nodes = C.edges.nodes
        return self._all() if nodes is None else nodes

    def _evaluate_row(self, node: ParsedNode, place: int, C: _MatrixValues) -> torch.Tensor:
        return _distinct(C.edges.sources)[0]

    def _evaluate_union(self, node: ParsedNode, place: int, *lists: torch.Tensor) -> torch.Tensor:
        return _distinct(torch.cat(lists))[0]

    def _evaluate_concat(self, node: ParsedNode, place: int, *lists: torch.Tensor) -> torch.Tensor:
        return torch.cat(lists)

    def _evaluate_pick(
        self, node: ParsedNode, place: int, nodes: torch.Tensor, mask: _OfNodes
    ) -> torch.Tensor:
        return nodes[self._elements(mask) != 0]

    # Matrices.

    def _evaluate_slice(self, node: ParsedNode, place: int, columns: torch.Tensor) -> _MatrixValues:
        nodes = _distinct(columns)[0]
        if place in self._blocks:
            edges = self._edges_of_block(place, nodes)
        else:
            begins, sources, ids = in_edges(self._graph, nodes)
            edges = _MatrixEdges(sources, edge_rows(begins.diff()), ids, nodes)
            if self._exclude is not None:
                edges = _subset(edges, ~torch.isin(ids, self._exclude))
        return self._weighted(edges)

    def _evaluate_cross(
        self, node: ParsedNode, place: int, sources: torch.Tensor, columns: torch.Tensor
    ) -> _MatrixValues:
        found = self._evaluate_slice(node, place, columns)
        return self._weighted(_subset(found.edges, torch.isin(found.edges.sources, sources)))

    def _evaluate_all_edges(self, node: ParsedNode, place: int) -> _MatrixValues:
        begins, sources, ids = in_edges(self._graph, self._all())
        return self._weighted(_MatrixEdges(sources, edge_rows(begins.diff()), ids, None))

    def _evaluate_extract(
        self, node: ParsedNode, place: int, C: _MatrixValues, columns: torch.Tensor
    ) -> _MatrixValues:
        nodes = _distinct(columns)[0]
        if place in self._blocks:
            return self._at_edges(C, self._edges_of_block(place, nodes))
        ends = C.edges.end_nodes(0)
        kept = torch.isin(ends, nodes).nonzero().squeeze(1)
        position = _positions(nodes, ends[kept])
        order = position.argsort(stable=True)
        kept, position = kept[order], position[order]
        edges = _MatrixEdges(C.edges.sources[kept], position, C.edges.ids[kept], nodes)
        return _MatrixValues(edges, C.values[kept])

    def _evaluate_merge(
        self, node: ParsedNode, place: int, C: _MatrixValues, D: _MatrixValues
    ) -> _MatrixValues:
        order = torch.cat([C.edges.columns, D.edges.columns]).argsort(stable=True)
        sources, columns, ids = (
            torch.cat(pair)[order] for pair in zip(C.edges[:3], D.edges[:3], strict=True)
        )
        edges = _MatrixEdges(sources, columns, ids, C.edges.nodes)
        return _MatrixValues(edges, torch.cat([C.values, D.values])[order])

    def _chosen(self, place: int, node: ParsedNode, inputs: list[Any]) -> _MatrixValues:
        C: _MatrixValues = inputs[0]
        if place in self._blocks:
            nodes = self._evaluate_column(node, place, C)
            return self._at_edges(C, self._edges_of_block(place, nodes))
        if node.op != "filter":
            self._refuse(node, "a program that returns the edges which it chooses at random")
        kept = (inputs[1].values != 0).nonzero().squeeze(1)
        return _MatrixValues(_subset(C.edges, kept), C.values[kept])

    def _edges_of_block(self, place: int, nodes: torch.Tensor) -> _MatrixEdges:
        """Returns the edges of the block that has those of a node, in the matrix's order."""
        block = self._batch.blocks[self._blocks[place]]
        src, dst = (ends.long() for ends in block.coo())
        columns = _positions(nodes, block.dst_nodes.long()[dst])
        order = columns.argsort(stable=True)
        sources = block.src_nodes.long()[src[order]]
        return _MatrixEdges(sources, columns[order], block.edge_ids.long()[order], nodes)

    def _at_edges(self, C: _MatrixValues, edges: _MatrixEdges) -> _MatrixValues:
        """Returns C's values at edges that were chosen from it."""
        own, columns = C.edges, edges.columns
        if own.nodes is None:
            columns = edges.end_nodes(0)
        elif own.nodes is not edges.nodes:
            columns = _positions(own.nodes, edges.end_nodes(0))
        span = 1 + int(torch.cat([own.ids, edges.ids, own.ids.new_zeros(1)]).max())
        place = _positions(own.columns * span + own.ids, columns * span + edges.ids)
        return _MatrixValues(edges, C.values[place])

    def _weighted(self, edges: _MatrixEdges) -> _MatrixValues:
        if self._weight is None:
            return _MatrixValues(edges, self._ones(len(edges.ids)))
        return _MatrixValues(edges, self._array(self._graph.edata[self._weight], edges.ids))

    def _evaluate_data(self, node: ParsedNode, place: int, C: _MatrixValues) -> _MatrixValues:
        of = input_of(node.name)
        if of is None:
            return _MatrixValues(C.edges, self._array(self._graph.edata[node.name], C.edges.ids))
        return _MatrixValues(C.edges, self._tensors[of][C.edges.end_nodes(1), C.edges.end_nodes(0)])

    def _evaluate_dot(
        self, node: ParsedNode, place: int, C: _MatrixValues, P: _OfNodes, Q: _OfNodes
    ) -> _MatrixValues:
        edges = C.edges
        return _MatrixValues(
            edges, (P.values_at(edges.end_nodes(1)) * Q.values_at(edges.end_nodes(0))).sum(1)
        )

    # Vectors, rows and scalars.

    def _evaluate_const(self, node: ParsedNode, place: int) -> torch.Tensor:
        return torch.tensor(node.value, dtype=self._dtype, device=self._device)

    def _evaluate_node_array(self, node: ParsedNode, place: int) -> _OfNodes:
        of = input_of(node.name)
        if of is not None:
            tensor = self._tensors[of]
            return _OfNodes(None, None, lambda ids: tensor[ids])
        array = self._graph.ndata[node.name]
        return _OfNodes(None, None, lambda ids: self._array(array, ids))

    def _evaluate_degree(self, node: ParsedNode, place: int) -> _OfNodes:
        def degrees(ids: torch.Tensor) -> torch.Tensor:
            return in_edges(self._graph, ids)[0].diff().to(self._dtype)

        return _OfNodes(None, None, degrees)

    def _evaluate_number(self, node: ParsedNode, place: int) -> _OfNodes:
        return _OfNodes(None, None, lambda ids: ids.to(self._dtype))

    def _evaluate_isin(
        self, node: ParsedNode, place: int, nodes: torch.Tensor, other: torch.Tensor
    ) -> _OfNodes:
        return _OfNodes(nodes, torch.isin(nodes, other).to(self._dtype))

    def _evaluate_gather(
        self, node: ParsedNode, place: int, v: _OfNodes, nodes: torch.Tensor
    ) -> _OfNodes:
        return _OfNodes(nodes, v.values_at(nodes))

    def _evaluate_project(self, node: ParsedNode, place: int, X: _OfNodes) -> _OfNodes:
        W = self._tensors[node.name]
        W = W if W.dim() == 2 else W[:, None]
        return self._map(lambda x: x @ W, None, [X])  # type: ignore[no-any-return]

    def _evaluate_entry(self, node: ParsedNode, place: int, X: _OfNodes) -> _OfNodes:
        return self._map(lambda x: x[:, node.k], None, [X])  # type: ignore[no-any-return]

    def _evaluate_item(self, node: ParsedNode, place: int) -> torch.Tensor:
        return self._tensors[node.name][node.k]

    def _evaluate_multiply(
        self, node: ParsedNode, place: int, C: _MatrixValues, D: _OfNodes
    ) -> _OfNodes:
        assert node.axis is not None
        terms = C.values[:, None] * D.values_at(C.edges.end_nodes(1 - node.axis))
        return self._summed(C.edges, node.axis, terms)

    def _reduced(self, node: ParsedNode, value: Any) -> Any:
        if isinstance(value, _OfNodes):
            each = self._elements(value)
            return _grouped(node.op, torch.zeros_like(each, dtype=torch.int64), 1, each)[0]
        assert node.axis is not None
        index, count, nodes = self._groups(value.edges, node.axis)
        return self._vector(nodes, _grouped(node.op, index, count, value.values))

    def _summed(self, edges: _MatrixEdges, axis: int, terms: torch.Tensor) -> _OfNodes:
        index, count, nodes = self._groups(edges, axis)
        return self._vector(
            nodes, terms.new_zeros(count, terms.shape[1]).index_add(0, index, terms)
        )

    def _groups(
        self, edges: _MatrixEdges, axis: int
    ) -> tuple[torch.Tensor, int, torch.Tensor | None]:
        """Returns which group each edge is of, how many there are, and their nodes."""
        if edges.nodes is None:
            return (edges.columns, edges.sources)[axis], self._graph.num_nodes, None
        if axis == 0:
            return edges.columns, len(edges.nodes), edges.nodes
        nodes, index = _distinct(edges.sources)
        return index, len(nodes), nodes

    def _vector(self, nodes: torch.Tensor | None, values: torch.Tensor) -> _OfNodes:
        if nodes is None:
            return _OfNodes(None, None, lambda ids: values[ids])
        return _OfNodes(nodes, values)

    def _map(
        self, function: Callable[..., torch.Tensor], axis: int | None, inputs: list[Any]
    ) -> Any:
        matrix = next((x for x in inputs if isinstance(x, _MatrixValues)), None)
        if matrix is not None:
            ends = None if axis is None else matrix.edges.end_nodes(axis)
            values = self._float(function(*(_value_at(x, ends) for x in inputs)))
            return _MatrixValues(matrix.edges, values.expand(len(matrix.edges.ids)))
        vectors = [x for x in inputs if isinstance(x, _OfNodes)]
        if not vectors:
            return self._float(function(*inputs))
        nodes = next((x.nodes for x in vectors if x.nodes is not None), None)
        if nodes is not None:
            return _OfNodes(nodes, self._float(function(*(_value_at(x, nodes) for x in inputs))))

        last: list[torch.Tensor] = []

        def of_all(ids: torch.Tensor) -> torch.Tensor:
            # Once for the same ids, however many values are made of this one.
            if not last or last[0] is not ids:
                last[:] = ids, self._float(function(*(_function_at(x, ids) for x in inputs)))
            return last[1]

        return _OfNodes(None, None, of_all)

    def _float(self, values: torch.Tensor) -> torch.Tensor:
        return values.to(self._dtype)

    def _ones(self, count: int) -> torch.Tensor:
        return torch.ones(count, dtype=self._dtype, device=self._device)

    def _all(self) -> torch.Tensor:
        return torch.arange(self._graph.num_nodes, device=self._device)

    def _elements(self, value: _OfNodes) -> torch.Tensor:
        """Returns all elements of a vector, or all rows."""
        if value.values is not None:
            return value.values
        assert value.function is not None
        return value.function(self._all())

    def _array(self, array: Any, ids: torch.Tensor) -> torch.Tensor:
        """Returns the rows of an array of the graph, which may be elsewhere."""
        if array._readonly:
            # Torch has no read-only tensors, and would copy all of a mapped file.
            found = torch.from_numpy(array.numpy()[ids.cpu().numpy()])
        else:
            values = array.torch()
            found = values.index_select(0, ids.to(values.device))
        return found.to(self._device, self._dtype)

    def _of_block(self, place: int, node: int) -> torch.Tensor:
        """Returns the values of a matrix in the order of its block's edges."""
        C: _MatrixValues = self._values[node]
        block = self._batch.blocks[place]
        dst, ids = block.dst_nodes.long(), block.edge_ids.long()
        position = _positions(dst, C.edges.end_nodes(0))
        order = position.argsort(stable=True)
        if torch.equal(C.edges.ids[order], ids):
            return C.values[order]
        root = self._edge_nodes[node]
        if len(C.edges.ids) != len(ids) or (root is not None and self._nodes[root].op == "merge"):
            raise ValueError(
                f"{_OTHER_BATCH} other edges in blocks[{place}]; exclude= names those left out"
            )
        # Edges of several relations stand relation by relation.
        span = 1 + max(int(C.edges.ids.max()), int(ids.max()))
        column = _positions(dst, dst[block.coo()[1].long()])
        return C.values[_positions(position * span + C.edges.ids, column * span + ids)]


def _value_at(value: Any, ids: torch.Tensor | None) -> Any:
    if isinstance(value, _MatrixValues):
        return value.values
    if isinstance(value, _OfNodes):
        assert ids is not None
        return value.values_at(ids)
    return value


def _function_at(value: Any, ids: torch.Tensor) -> Any:
    if not isinstance(value, _OfNodes):
        return value
    assert value.function is not None
    return value.function(ids)


def _grouped(op: str, index: torch.Tensor, count: int, values: torch.Tensor) -> torch.Tensor:
    """Returns the reduction of the values of each group; 0 of none."""
    zeros = values.new_zeros(count)
    if op in ("sum", "mean", "count"):
        number = zeros.index_add(0, index, torch.ones_like(values))
        if op == "count":
            return number
        total = zeros.index_add(0, index, values)
        return total if op == "sum" else total / number.clamp(min=1)
    how = "amax" if op == "largest" else "amin"
    return zeros.scatter_reduce(0, index, values, how, include_self=False)


def _subset(edges: _MatrixEdges, mask: torch.Tensor) -> _MatrixEdges:
    return _MatrixEdges(edges.sources[mask], edges.columns[mask], edges.ids[mask], edges.nodes)


def _distinct(ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns distinct ids by first occurrence, and the position of each id among them."""
    found, inverse = torch.unique(ids, return_inverse=True)
    count = torch.arange(len(ids), device=ids.device)
    first = torch.zeros_like(found).scatter_reduce(0, inverse, count, "amin", include_self=False)
    order = first.argsort()
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order), device=ids.device)
    return found[order], place[inverse]


def _positions(nodes: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """Returns where each id is first among others; ValueError for one that is not there."""
    ordered, order = nodes.sort(stable=True)
    found = torch.searchsorted(ordered, ids)
    if len(ids) and (
        not len(ordered) or not bool((ordered[found.clamp(max=len(ordered) - 1)] == ids).all())
    ):
        raise ValueError(
            f"{_OTHER_BATCH} other edges; exclude= names those that the batch left out"
        )
    return order[found]
