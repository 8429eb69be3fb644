"""The graph as a matrix, what a program's function takes first."""

from __future__ import annotations

from typing import Any

from pygsampler._engine.checks import describe
from pygsampler._graph.schema import TYPE
from pygsampler.programs._language.expr import constant_count, random_node_fields
from pygsampler.programs._language.expressions import DenseRows, Matrix, NodeList, Vector
from pygsampler.programs._language.graph_arrays import GraphArrays
from pygsampler.programs._language.trace import ProgramTrace


class GraphMatrix(Matrix):
    """The graph as a matrix: A[u, v] is the edge from u to v.

    Parameters
    ----------
    trace : ProgramTrace
        The trace that records the operators.
    weight : str or None
        The name of the edge array that the values are, or None for ones.
    """

    __slots__ = ("_weight",)
    _what = "the graph's matrix"

    def __init__(self, trace: ProgramTrace, weight: str | None) -> None:
        super().__init__(trace, -1)
        self._weight = weight

    @property
    def weighted(self) -> bool:
        """True if values are those of an edge array, ``weight=``; else they are ones."""
        return self._weight is not None

    def __getattribute__(self, name: str) -> Any:
        # The matrix of all edges is a node of programs that use it as such, and of no other.
        if name == "_node" and object.__getattribute__(self, "_node") < 0:
            trace: ProgramTrace = self._trace
            self._node = trace.add("whole")
        return object.__getattribute__(self, name)

    def __getitem__(self, key: Any) -> Matrix:
        """``A[:, S]``: S to be their ends; ``A[R, :]``: R their beginnings; ``A[R, S]``: both.

        ``A[:, :]`` are all edges, as ``A``.
        """
        trace = self._trace
        if isinstance(key, tuple) and len(key) == 3 and all(isinstance(x, str) for x in key):
            return RelationMatrix(trace, self._weight, key)
        if not isinstance(key, tuple) or len(key) != 2:
            raise trace.refuse(
                f"A[{describe(key)}]",
                "expected A[:, S], A[R, :] or A[R, S], or A[source, relation, destination]",
            )
        rows, columns = key
        all_columns = isinstance(columns, slice) and columns == slice(None)
        if all_columns and isinstance(rows, slice) and rows == slice(None):
            return self
        if all_columns and isinstance(rows, NodeList):
            every = trace.once("column", trace.once("whole"))
            return Matrix(trace, trace.once("cross", trace.once("unique", rows._node), every))
        if not isinstance(columns, NodeList):
            raise trace.refuse(
                f"A[..., {describe(columns)}]", "expected a list of nodes for columns"
            )
        if isinstance(rows, slice) and rows == slice(None):
            return Matrix(trace, trace.once("slice", columns._node))
        if not isinstance(rows, NodeList):
            raise trace.refuse(f"A[{describe(rows)}, ...]", "expected : or a list of nodes")
        return Matrix(trace, trace.once("cross", rows._node, columns._node))

    def induce(self, vertices: NodeList) -> InducedMatrix:
        """``A[vertices, vertices]``: the edges among distinct nodes."""
        if not isinstance(vertices, NodeList):
            raise self._trace.refuse(f"induce: {describe(vertices)}", "expected a list of nodes")
        made = InducedMatrix(self._trace, self[vertices, vertices]._node)
        made.vertices = vertices
        return made

    @property
    def ndata(self) -> GraphArrays:
        """``A.ndata["x"]``: a node array of the graph, as a vector of all nodes."""

        def get(name: str) -> Vector:
            self._trace.node_names[name] = None
            return Vector(self._trace, self._trace.add("vertices", name=name))

        return GraphArrays(self._trace, get)

    def features(self, name: str) -> DenseRows:
        """The node array ``name``, of rows of values, as dense rows of all nodes."""
        name = self._trace.named(name, "a node array")
        return DenseRows(self._trace, self._trace.add("features", name=name))

    def degree(self) -> Vector:
        """The in-degree of each node."""
        return Vector(self._trace, self._trace.add("degree"))

    def number(self) -> Vector:
        """The id of each node."""
        return Vector(self._trace, self._trace.add("number"))

    def roots(self, K: int) -> NodeList:
        """K of all nodes, uniformly and with replacement."""
        trace, k = self._trace, constant_count(self, "roots", K)
        return NodeList(trace, trace.add("roots", k=k, site=trace.site()))

    def walk(self, roots: NodeList, length: int) -> NodeList:
        """Nodes of walkers: the roots, then each walker's node after each of ``length`` steps.

        A step goes against a uniform edge, from v to u of an edge u to v; without one it stays.
        """
        trace = self._trace
        if not isinstance(roots, NodeList):
            raise trace.refuse(f"walk: roots: {describe(roots)}", "expected a list of nodes")
        k = constant_count(self, "walk", length)
        return NodeList(trace, trace.add("walk", roots._node, k=k, site=trace.site()))

    def random(self, *, batches: int = 1) -> Vector:  # type: ignore[override]
        """A uniform number in (0, 1) for each node; ``batches`` is the period of their change.

        A node has the same number everywhere in a batch. With ``batches`` k the numbers change
        gradually from a batch to the next, from the first numbers of a period of k batches to the
        first numbers of the next period: batch j of a period has Phi(cos(a) Phi^-1(x) + sin(a)
        Phi^-1(y)), where a is j / k of a right angle, x and y are these first numbers, and Phi is
        the normal distribution.
        """
        made = Vector(self._trace, self._trace.add("random", **random_node_fields(self, batches)))
        self._trace.randoms.add(made._node)
        return made


class RelationMatrix(GraphMatrix):
    """The matrix of a relation of a heterogeneous graph; rows and columns are nodes of its ends."""

    __slots__ = ("_ends", "_place", "_whole")
    _what = "a relation's matrix"

    def __init__(self, trace: ProgramTrace, weight: str | None, kind: tuple[str, str, str]) -> None:
        super().__init__(trace, weight)
        for each in kind:
            trace.named(each, "a type")
        self._place = trace.relation(kind)
        self._ends = kind[0], kind[2]
        self._whole = -1

    def __getattribute__(self, name: str) -> Any:
        if name != "_node":
            return object.__getattribute__(self, name)
        if self._whole < 0:
            self._whole = self._relation_edges(self._trace.add("whole"))
        return self._whole

    def __getitem__(self, key: Any) -> Matrix:
        """The edges of this relation, sliced by ``key`` as the graph's matrix is."""
        if isinstance(key, tuple) and len(key) == 3:
            self._refuse(f"{describe(key)} as an index of", "expected a list of nodes")
        made = super().__getitem__(key)
        # Once all relations are known: before, it would be told instead of a type that none has.
        if self._trace.known:
            for given, end, what in zip(key, self._ends, ("rows", "columns"), strict=True):
                kind = given._kind if isinstance(given, NodeList) else None
                if kind not in (None, end):
                    self._refuse(f"{kind!r} as the {what} of", f"expected nodes of type {end!r}")
        return Matrix(self._trace, self._relation_edges(made._node))

    def _relation_edges(self, node: int) -> int:
        """The relation's edges of a matrix: all, where the program names no other."""
        trace = self._trace
        if len(trace.known) == 1:
            return node
        types = trace.add("data", node, name=TYPE)
        mine = trace.add("eq", types, trace.add("const", value=float(self._place)))
        return trace.add("filter", node, mine)

    def degree(self) -> Vector:
        """The number of the relation's edges that lead to each node."""
        return super().degree() if len(self._trace.known) == 1 else self.count(axis=0)

    def roots(self, K: int) -> NodeList:
        """Raises TypeError: roots are nodes of all types."""
        self._refuse("roots of", "expected them as seeds, by type")

    def walk(self, roots: NodeList, length: int) -> NodeList:
        """Raises TypeError: ``MetaPathWalk`` walks along relations."""
        self._refuse("walk of", "expected A[...][:, V].individual_sample(1).row(), or MetaPathWalk")


class InducedMatrix(Matrix):
    """The matrix of a subgraph, with a list of its nodes."""

    __slots__ = ("vertices",)
    vertices: NodeList
