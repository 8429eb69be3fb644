"""Stand-ins that a program's function computes with, and that record the operators.

They are in one module since each creates the others: a matrix returns vectors, vectors choose
nodes, and nodes slice matrices. The operators and their names are those of gSampler (Gong et al.,
SOSP 2023), Table 4, and the further ones of docs/algorithms/operators.md.
"""

from __future__ import annotations

import functools
import math
import operator
from typing import TYPE_CHECKING, Any

from pygsampler._engine.checks import describe, index
from pygsampler._graph.schema import TYPE
from pygsampler.programs._language.alignment import along_columns
from pygsampler.programs._language.expr import (
    ONE,
    TWO,
    Expr,
    constant_count,
    constant_flag,
    random_node_fields,
)
from pygsampler.programs._language.graph_arrays import GraphArrays
from pygsampler.programs._language.inputs import input_array
from pygsampler.programs._language.trace import ProgramTrace, format_operator, number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pygsampler.programs._language.inputs import InputContent

# Operators that stand between a matrix and a vector only by a method's name.
_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**"}


class NodeList(Expr):
    """A list of nodes of the graph, in an order.

    Parameters
    ----------
    trace, node
        The arguments of ``Expr``.
    kind : str, optional
        The node type, in a heterogeneous graph.
    """

    __slots__ = ("_kind",)
    _what = "a list of nodes"

    def __init__(self, trace: ProgramTrace, node: int, kind: str | None = None) -> None:
        super().__init__(trace, node)
        # The type that all of them have, where a program asked for those of one.
        self._kind = kind

    def __eq__(self, other: object) -> bool:
        self._refuse("a comparison of", "it is known in a batch alone")

    def __ne__(self, other: object) -> bool:
        self._refuse("a comparison of", "it is known in a batch alone")

    __hash__ = object.__hash__

    def __add__(self, other: Any) -> Any:
        self._refuse("+ of", "expected concat(other), or | for the distinct nodes of both")

    def __sub__(self, other: Any) -> Any:
        self._refuse("- of", "expected V[mask], which chooses nodes")

    def __and__(self, other: Any) -> Any:
        self._refuse("& of", "expected V[mask], which chooses nodes")

    def __or__(self, other: NodeList) -> NodeList:
        """The nodes of both, distinct, in the order of their first occurrence."""
        return self._with("union", other)

    def concat(self, other: NodeList) -> NodeList:
        """The nodes of this list, followed by the nodes of ``other``."""
        return self._with("concat", other)

    def unique(self) -> NodeList:
        """Distinct nodes, in the order of their first occurrence."""
        made: NodeList = self._make(NodeList, "unique")
        return made

    def __getitem__(self, mask: Vector | str) -> NodeList:
        """The nodes whose value in a vector along this list is not 0, or the nodes of a type."""
        if isinstance(mask, str):
            trace = self._trace
            place = trace.kind(trace.named(mask, "a type of nodes"))
            types = Vector(trace, trace.add("vertices", name=TYPE))
            mine = types[self] == place
            return NodeList(trace, self._make(NodeList, "pick", mine)._node, mask)
        if not isinstance(mask, Vector):
            self._refuse(f"{describe(mask)} as an index of", "expected a vector along it")
        made: NodeList = self._make(NodeList, "pick", mask)
        return made

    def isin(self, other: NodeList) -> Vector:
        """A vector along this list: 1 for the nodes that are in ``other``, else 0."""
        made: Vector = self._make(Vector, "isin", self._other_list(other))
        return made

    def _with(self, op: str, other: Any) -> NodeList:
        made: NodeList = self._make(NodeList, op, self._other_list(other))
        return made

    def _other_list(self, other: Any) -> NodeList:
        if not isinstance(other, NodeList):
            self._refuse(f"{describe(other)} with", "expected another list of nodes")
        return other


class Arithmetic(Expr):
    """A value that takes the operators of arithmetic."""

    __slots__ = ()

    # 0: a scalar, 1: a vector, 2: a matrix. The result of a map has the largest rank of its
    # operands.
    _rank = 0

    def _result_class(self, *others: Any) -> type[Arithmetic]:
        ranks = [x._rank for x in (self, *others) if isinstance(x, Arithmetic)]
        return (Scalar, Vector, Matrix)[max(ranks)]

    def _map(self, op: str, other: Any, axis: int | None = None, swapped: bool = False) -> Any:
        if isinstance(other, (DenseProduct, Input)):
            other = other._aligned_with(self)
        kind = self._result_class(other)
        if axis is not None:
            axis = self._along(op, axis)
        elif isinstance(other, Arithmetic) and {self._rank, other._rank} == {1, 2}:
            self._refuse(
                f"{_SIGNS.get(op, 'a comparison')} of {other._what} and",
                f"expected C.{op}(v, axis=0), v along its columns, or axis=1, along its rows"
                if op in _SIGNS
                else "expected C.spread(v, axis=), a matrix of the vector's values",
            )
        mine, theirs = self._node, self._other(other)
        if axis == 0 and isinstance(other, Arithmetic) and {self._rank, other._rank} == {1, 2}:
            if self._rank == 1:
                mine = along_columns(self._trace, mine, theirs)
            else:
                theirs = along_columns(self._trace, theirs, mine)
        nodes = (theirs, mine) if swapped else (mine, theirs)
        return kind(self._trace, self._trace.add(op, *nodes, axis=axis))

    def _along(self, op: str, axis: Any) -> int:
        """``axis``, where it is one."""
        try:
            along = index(axis)
        except TypeError:
            along = -1
        if along not in (0, 1):
            self._refuse(
                f"{format_operator(op)}: axis={axis!r} of", "expected 0 (columns) or 1 (rows)"
            )
        return along

    def _apply_method(self, op: str, other: Any, axis: int | None) -> Any:
        """Applies a method's operator; a vector runs along the columns of a matrix by default."""
        other = _as_value(other) if isinstance(other, Input) and len(other.shape) == 1 else other
        if axis is None and self._rank == 2 and isinstance(other, Vector):
            axis = 0
        return self._map(op, other, axis)

    def _apply_unary(self, op: str) -> Any:
        return self._make(self._result_class(), op)

    def __add__(self, other: Any) -> Any:
        return self._map("add", other)

    def __radd__(self, other: Any) -> Any:
        return self._map("add", other, swapped=True)

    def __sub__(self, other: Any) -> Any:
        return self._map("sub", other)

    def __rsub__(self, other: Any) -> Any:
        return self._map("sub", other, swapped=True)

    def __mul__(self, other: Any) -> Any:
        return self._map("mul", other)

    def __rmul__(self, other: Any) -> Any:
        return self._map("mul", other, swapped=True)

    def __truediv__(self, other: Any) -> Any:
        return self._map("div", other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._map("div", other, swapped=True)

    def __pow__(self, other: Any) -> Any:
        return self._map("pow", other)

    def __rpow__(self, other: Any) -> Any:
        return self._map("pow", other, swapped=True)

    def __lt__(self, other: Any) -> Any:
        return self._map("lt", other)

    def __le__(self, other: Any) -> Any:
        return self._map("le", other)

    def __gt__(self, other: Any) -> Any:
        return self._map("lt", other, swapped=True)

    def __ge__(self, other: Any) -> Any:
        return self._map("le", other, swapped=True)

    def __eq__(self, other: Any) -> Any:
        return self._map("eq", other)

    def __ne__(self, other: Any) -> Any:
        return self._map("ne", other)

    __hash__ = object.__hash__

    def __and__(self, other: Any) -> Any:
        """1 where neither is 0."""
        return self._map("ne", 0)._map("mul", self._truth(other))

    def __or__(self, other: Any) -> Any:
        """1 where one of them is not 0."""
        return self._map("ne", 0)._map("max", self._truth(other))

    def __rand__(self, other: Any) -> Any:
        return self & other

    def __ror__(self, other: Any) -> Any:
        return self | other

    def _truth(self, other: Any) -> Any:
        if isinstance(other, Arithmetic):
            return other._map("ne", 0)
        value = number(other)
        # A value that is no number is refused, as by other operators.
        return other if value is None else float(bool(value))

    def __pos__(self) -> Any:
        return self

    def __invert__(self) -> Any:
        """1 where it is 0, else 0."""
        return self._apply_unary("not")

    def __neg__(self) -> Any:
        return self._apply_unary("neg")

    def __abs__(self) -> Any:
        return self._apply_unary("abs")

    def abs(self) -> Any:
        return self._apply_unary("abs")

    def neg(self) -> Any:
        return self._apply_unary("neg")

    def sqrt(self) -> Any:
        return self._apply_unary("sqrt")

    def exp(self) -> Any:
        return self._apply_unary("exp")

    def log(self) -> Any:
        return self._apply_unary("log")

    def relu(self) -> Any:
        """The value where it is above 0, else 0."""
        return self._apply_unary("relu")

    def add(self, other: Any, axis: int | None = None) -> Any:
        """The sum with ``other``; ``axis`` is the direction of a vector with a matrix.

        It is 0, the default, for a vector along columns, and 1 for a vector along rows.
        """
        return self._apply_method("add", other, axis)

    def sub(self, other: Any, axis: int | None = None) -> Any:
        """The difference to ``other``, with ``axis`` as in ``add``."""
        return self._apply_method("sub", other, axis)

    def mul(self, other: Any, axis: int | None = None) -> Any:
        """The product with ``other``, with ``axis`` as in ``add``."""
        return self._apply_method("mul", other, axis)

    def div(self, other: Any, axis: int | None = None) -> Any:
        """The quotient by ``other``, with ``axis`` as in ``add``."""
        return self._apply_method("div", other, axis)

    def pow(self, other: Any, axis: int | None = None) -> Any:
        """The power with the exponent ``other``, with ``axis`` as in ``add``."""
        return self._apply_method("pow", other, axis)

    def minimum(self, other: Any, axis: int | None = None) -> Any:
        """The smaller of this and ``other``, with ``axis`` as in ``add``."""
        return self._apply_method("min", other, axis)

    def maximum(self, other: Any, axis: int | None = None) -> Any:
        """The larger of this and ``other``, with ``axis`` as in ``add``."""
        return self._apply_method("max", other, axis)

    def select(self, a: Any, b: Any) -> Any:
        """``a`` where this is not 0, else ``b``."""
        a, b = _as_value(a), _as_value(b)
        return self._make(self._result_class(a, b), "where", a, b)


class Scalar(Arithmetic):
    """A single value of a batch."""

    __slots__ = ()
    _what = "a scalar"


class Vector(Arithmetic):
    """A value for each node of a list, or for each node of the graph."""

    __slots__ = ()
    _what = "a vector"
    _rank = 1

    def __getitem__(self, nodes: NodeList) -> Vector:
        """The values of a vector of all nodes, along the list ``nodes``.

        For a vector along the rows of a matrix: the values of the rows of a matrix that was chosen
        from it.
        """
        if not isinstance(nodes, NodeList):
            self._refuse(f"{describe(nodes)} as an index of", "expected a list of nodes")
        made: Vector = self._make(Vector, "gather", nodes)
        return made

    def sum(self, axis: None = None) -> Scalar:
        """The sum of the elements; a vector has one axis alone."""
        return self._total("sum", axis)

    def mean(self, axis: None = None) -> Scalar:
        """The mean, with ``axis`` as in ``sum``; 0 without elements."""
        return self._total("mean", axis)

    def max(self, axis: None = None) -> Scalar:
        """The largest element, with ``axis`` as in ``sum``; 0 without elements."""
        return self._total("largest", axis)

    def min(self, axis: None = None) -> Scalar:
        """The smallest element, with ``axis`` as in ``sum``; 0 without elements."""
        return self._total("smallest", axis)

    def count(self, axis: None = None) -> Scalar:
        """The number of elements, with ``axis`` as in ``sum``."""
        return self._total("count", axis)

    def cap(self, K: int) -> Vector:
        """Chances in the ratio of the values, at most 1, whose sum is K."""
        made: Vector = self._make(Vector, "cap", k=constant_count(self, "cap", K))
        return made

    def softmax(self) -> Vector:
        """Chances in the ratio of the elements' exponentials, whose sum is 1."""
        raised = (self - self.max()).exp()
        made: Vector = raised / raised.sum()
        return made

    def __matmul__(self, other: Any) -> Any:
        """``v @ C``: a value for each column, the sum of its edges' times v, along the rows."""
        other = _as_value(other)
        if not isinstance(other, Matrix):
            self._refuse(f"@ of {describe(other)} and", "expected a matrix")
        return other.mul(self, axis=1).sum(axis=0)

    def draw(self, K: int, replace: bool = False) -> NodeList:
        """Draws ``K`` nodes by the values of this vector; distinct unless ``replace``."""
        trace = self._trace
        made: NodeList = self._make(
            NodeList,
            "draw",
            k=constant_count(self, "draw", K),
            replace=constant_flag(self, "draw", replace),
            site=trace.site(),
        )
        return made

    def _total(self, op: str, axis: Any) -> Scalar:
        if axis is not None:
            self._refuse(f"{format_operator(op)}: axis={axis!r} of", "expected None")
        made: Scalar = self._make(Scalar, op)
        return made


class Input:
    """A tensor argument of the sampler, whose content may change between batches.

    ``X @ W`` takes it for the weights W, of shape (d, h) or (d,), and ``W[i]`` is an element of W
    of shape (d,). Other operators need a value, shape (num_nodes,), or a row, shape (num_nodes, d),
    for each node of the graph: the input is a vector or dense rows of all nodes in ``C.add(V)``,
    ``C @ X``, ``X[seeds]``, ``X @ W``. ``C * D`` with D of shape (num_nodes, num_nodes) takes D[u,
    v] at the edge from u to v.

    Parameters
    ----------
    trace : ProgramTrace
        The trace that records the operators.
    name : str
        The name of the argument.
    content : InputContent
        The tensor, or an object that has it.
    """

    __slots__ = ("_name", "_shape", "_trace")

    # So that NumPy's arrays on the left of an operator leave it to this.
    __array_ufunc__ = None

    def __init__(self, trace: ProgramTrace, name: str, content: InputContent) -> None:
        self._trace = trace
        self._name = name
        self._shape = content.shape

    @property
    def shape(self) -> tuple[int, ...]:
        """Known where the program is traced."""
        return self._shape

    def __len__(self) -> int:
        return self._shape[0]

    def __iter__(self) -> Iterator[Scalar]:
        """The elements of a vector."""
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        """An element of a vector; or what it has for the nodes of a list, repeated ones too.

        ``X[:, k]`` is number k of each node's row, a vector.
        """
        if isinstance(key, (NodeList, tuple)):
            nodes: Any = self._nodes()
            return nodes[key]
        try:
            place = index(key)
        except TypeError:
            place = None
        size = self._shape[0]
        if len(self._shape) != 1 or place is None or not -size <= place < size:
            raise self._trace.refuse(
                f"{self._name}[{describe(key)}] of shape {self._shape}",
                "expected a list of nodes, or a constant index of a tensor of 1 dimension",
            )
        return Scalar(self._trace, self._trace.add("item", name=self._name, k=place % size))

    @property
    def T(self) -> Transposed:
        """The transposed rows, for ``P @ Q.T``."""
        return Transposed(self._dense_rows("T"))

    def __matmul__(self, other: Any) -> Any:
        """``X @ W`` of a row for each node, or ``v @ C`` of a value for each, as of other values.

        See ``DenseRows`` and ``Vector``.
        """
        return self._nodes() @ other

    def softmax(self) -> list[Scalar]:
        """The exponentials of a vector's elements over their sum."""
        elements: list[Any] = [self[i] for i in range(len(self))]
        most = functools.reduce(lambda a, b: a.maximum(b), elements)
        raised = [(x - most).exp() for x in elements]
        whole = functools.reduce(operator.add, raised)
        return [x / whole for x in raised]

    def __getattr__(self, name: str) -> Any:
        # Other methods are those of a vector or of dense rows.
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._nodes(), name)

    def _nodes(self) -> Vector | DenseRows:
        """Returns what the tensor has for each node, as the engine reads arrays of nodes."""
        name = input_array(self._name)
        if len(self._shape) == 1:
            return Vector(self._trace, self._trace.once("vertices", name=name))
        return DenseRows(self._trace, self._trace.once("features", name=name))

    def _dense_rows(self, written: str) -> DenseRows:
        """Returns the tensor as dense rows; TypeError, with what was ``written``, for a vector."""
        nodes = self._nodes()
        if not isinstance(nodes, DenseRows):
            raise self._trace.refuse(
                f"{written} of the input {self._name} of shape {self._shape}",
                "expected one of 2 dimensions",
            )
        return nodes

    def _aligned_with(self, other: Arithmetic) -> Arithmetic:
        """The value that goes with another one: of 2 dimensions what stands at a matrix's edges."""
        if len(self._shape) == 1:
            nodes = self._nodes()
            assert isinstance(nodes, Vector)
            return nodes
        if not isinstance(other, Matrix) or self._shape[0] != self._shape[1]:
            raise self._trace.refuse(
                f"the input {self._name} of shape {self._shape} with {other._what}",
                "expected a tensor of shape (num_nodes, num_nodes) with a matrix, of shape "
                "(num_nodes,), or the product P @ Q.T of rows",
            )
        made: Matrix = other._make(Matrix, "data", name=input_array(self._name))
        return made

    def __repr__(self) -> str:
        return f"<input {self._name} of shape {self._shape} of program {self._trace.name}>"


def _as_value(value: Any) -> Any:
    """An input as a vector or dense rows of all nodes; any other value as it is."""
    return value._nodes() if isinstance(value, Input) else value


def _operator_of_inputs(name: str, written: str) -> None:
    """Adds an operator of vectors to inputs of 1 dimension; to others an error with its line."""
    method = f"__{name}__"

    def apply_to_input(self: Input, *others: Any) -> Any:
        beside = others[0] if others and isinstance(others[0], Matrix) else None
        nodes = self._nodes() if beside is None else self._aligned_with(beside)
        if isinstance(nodes, Arithmetic) and hasattr(Arithmetic, method):
            return getattr(nodes, method)(*map(_as_value, others))
        raise self._trace.refuse(
            f"{written} of the input {self._name} of shape {self._shape}",
            "expected X @ W of rows X, C * D of a matrix C, or a tensor of 1 dimension",
        )

    setattr(Input, method, apply_to_input)


for _name, _sign in [*TWO.items(), *((f"r{name}", sign) for name, sign in TWO.items())]:
    _operator_of_inputs(_name, _sign)
for _name, _sign in ONE.items():
    _operator_of_inputs(_name, _sign)


class DenseRows(Expr):
    """A row of float32 numbers for each node of a list, or of the graph."""

    __slots__ = ()
    _what = "dense rows"

    def __getitem__(self, key: Any) -> Any:
        """Rows of all nodes along a list of them; ``X[:, k]`` is number k of each row, a vector."""
        if isinstance(key, tuple) and len(key) == 2 and key[0] == slice(None):
            k = constant_count(self, "[:, k]", key[1])
            if k < 0:
                self._refuse(f"number {k} of", "expected one from 0 on")
            return self._make(Vector, "entry", k=k)
        if not isinstance(key, NodeList):
            self._refuse(f"{describe(key)} as an index of", "expected a list of nodes, or [:, k]")
        return self._make(DenseRows, "take", key)

    @property
    def T(self) -> Transposed:
        """The transposed rows, for ``P @ Q.T``."""
        return Transposed(self)

    def __matmul__(self, other: Any) -> Any:
        """Each row times an input: rows of one of shape (d, h), a vector of one of shape (d,).

        Sums are in double, k ascending, then float32. ``P @ Q.T`` is the product of each row of P
        and each of Q, which ``C * (P @ Q.T)`` and the like take at their edges.
        """
        if isinstance(other, Transposed) and isinstance(other._of, DenseRows):
            return DenseProduct(self, other._of)
        if not isinstance(other, Input):
            hint = (
                "expected an input, or the rows Q.T: P @ Q.T has a number for each pair of rows; "
                "gSampler's listing of PASS (SOSP 2023, Figure 3c) is printed without .T"
                if isinstance(other, DenseRows)
                else "expected an input"
            )
            self._refuse(f"@ of {describe(other)} and", hint)
        made: DenseRows = DenseRows(
            self._trace, self._trace.add("project", self._node, name=other._name)
        )
        return made if len(other.shape) == 2 else made[:, 0]


class Transposed:
    """A matrix, or dense rows, with rows and columns exchanged: to multiply with."""

    __slots__ = ("_of",)

    def __init__(self, matrix: Matrix | DenseRows) -> None:
        self._of = matrix

    @property
    def T(self) -> Matrix | DenseRows:
        """The value that this one is the transpose of."""
        return self._of

    def __matmul__(self, other: Any) -> Any:
        """``C.T @ D``: for each column of C the sum of its edges' values times D at their rows.

        D is a vector or dense rows, along C's rows or of all nodes.
        """
        of = self._of
        if isinstance(of, DenseRows):
            of._refuse("@ of transposed", "expected them on the right, as in P @ Q.T")
        other = _as_value(other)
        if isinstance(other, Vector):
            return other @ of
        if not isinstance(other, DenseRows):
            of._refuse(
                f"@ of {describe(other)} and", "expected a vector or dense rows along its rows"
            )
        return of._make(DenseRows, "multiply", other, axis=0)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        of = self._of
        hint = "P @ Q.T"
        if isinstance(of, Matrix):
            hint = "C.T @ D, or what C has, along the other axis"
        where = of._trace.where()
        raise AttributeError(f"{where}: {name} of {of._what} transposed: expected {hint}")

    def __repr__(self) -> str:
        return f"{self._of!r}.T"


class DenseProduct:
    """``P @ Q.T``: a dense matrix, of which programs make what stands at a matrix's edges."""

    __slots__ = ("_P", "_Q")

    def __init__(self, P: DenseRows, Q: DenseRows) -> None:
        self._P = P
        self._Q = Q

    def _aligned_with(self, other: Any) -> Matrix:
        if not isinstance(other, Matrix):
            self._P._refuse(
                f"{describe(other)} with the product P @ Q.T of", "expected a matrix with edges"
            )
        return other.dot(self._P, self._Q)

    def __repr__(self) -> str:
        return f"{self._P!r} @ {self._Q!r}.T"


def _with_products(name: str) -> None:
    """Adds an operator with a matrix on the right, and thereby one of numbers of its edges."""
    apply = getattr(operator, name)

    def apply_to_product(self: DenseProduct, other: Any) -> Any:
        return apply(self._aligned_with(other), other)

    setattr(DenseProduct, f"__{name}__", apply_to_product)


for _name in ("add", "sub", "mul", "truediv", "pow", "lt", "le", "gt", "ge"):
    _with_products(_name)


class Matrix(Arithmetic):
    """Edges of the graph, column by column, each with a value."""

    __slots__ = ()
    _what = "a matrix"
    _rank = 2

    def __getitem__(self, key: Any) -> Matrix:
        """``C[:, S]``: S for columns; ``C[R, :]``: the edges from R; ``C[R, S]``: both.

        The distinct nodes of S are the columns, by first occurrence, without edges where C has no
        such column. ``C[R, :]`` is ``C.where(C.spread(C.row().isin(R), axis=1))``.
        """
        if not isinstance(key, tuple) or len(key) != 2:
            self._refuse(f"[{describe(key)}] of", "expected C[:, S], C[R, :] or C[R, S]")
        once, node = self._trace.once, self._node
        for vertices, end in zip(reversed(key), ("columns", "rows"), strict=True):
            if isinstance(vertices, slice) and vertices == slice(None):
                continue
            if not isinstance(vertices, NodeList):
                self._refuse(
                    f"{describe(vertices)} as the {end} of", "expected : or a list of nodes"
                )
            of = self._other(vertices)
            if end == "columns":
                node = once("extract", node, of)
            else:
                members = once("isin", once("row", node), of)
                node = once("filter", node, once("spread", node, members, axis=1))
        return Matrix(self._trace, node)

    @property
    def T(self) -> Transposed:
        """The transposed matrix, for ``C.T @ D``: sums of edges' values times D for each column."""
        return Transposed(self)

    def __matmul__(self, other: Any) -> Any:
        """``C @ D``: for each row of C the sum of its edges' values times D at their columns.

        D is a vector, or dense rows, along C's columns or of all nodes; the result runs along C's
        rows.
        """
        other = _as_value(other)
        if isinstance(other, DenseRows):
            return self._make(DenseRows, "multiply", self._on_columns(other), axis=1)
        if not isinstance(other, Vector):
            hint = "expected a vector or dense rows along its columns"
            self._refuse(f"@ of {describe(other)} and", hint)
        return self.mul(other, axis=0).sum(axis=1)

    def softmax(self, axis: int | None = None) -> Matrix:
        """Exponentials of the values, over their sum in each column (axis 0) or row (axis 1)."""
        axis = self._along("softmax", axis)
        raised = self.sub(self.max(axis=axis), axis=axis).exp()
        made: Matrix = raised.div(raised.sum(axis=axis), axis=axis)
        return made

    def row(self) -> NodeList:
        """The distinct rows of its edges, by first occurrence."""
        made: NodeList = self._make(NodeList, "row")
        return made

    def column(self) -> NodeList:
        """The columns, a list of nodes."""
        made: NodeList = self._make(NodeList, "column")
        return made

    @property
    def edata(self) -> GraphArrays:
        """``C.edata["t"]``: these edges with the values of an edge array of the graph."""
        return GraphArrays(self._trace, self._edge_data)

    def _edge_data(self, name: str) -> Matrix:
        self._trace.edge_names[name] = None
        made: Matrix = self._make(Matrix, "data", name=name)
        return made

    def random(self, *, batches: int = 1) -> Matrix:
        """Edges with a uniform number in (0, 1) each; ``batches`` is the period of their change.

        A number belongs to the edge. With ``batches`` the numbers change gradually from a batch to
        the next, like the numbers of nodes.
        """
        made: Matrix = self._make(Matrix, "random", **random_node_fields(self, batches))
        return made

    def spread(self, v: Any, axis: int) -> Matrix:
        """Edges with the values of a vector v along the columns (axis 0) or rows (axis 1)."""
        v = _as_value(v)
        if not isinstance(v, Vector):
            self._refuse(f"{describe(v)} spread over", "expected a vector")
        axis = self._along("spread", axis)
        v = v if axis else self._on_columns(v)
        made: Matrix = self._make(Matrix, "spread", v, axis=axis)
        return made

    def independent(self, r: Vector) -> Matrix:
        """Returns these edges with the numbers ``r = A.random()`` of their sources.

        The first of the parallel edges from a node to a column of A has the node's number, and each
        other has a uniform number of its own: the numbers of a column's edges are independent.
        ``C.spread(r, axis=1)`` gives parallel edges the same number.
        """
        if not isinstance(r, Vector) or r._node not in self._trace.randoms:
            self._refuse(f"independent: r: {describe(r)} for", "expected what A.random() returned")
        made: Matrix = self._make(Matrix, "independent", r, axis=1)
        return made

    def dot(self, P: DenseRows, Q: DenseRows) -> Matrix:
        """Edges with the product of their row's row of P and their column's row of Q.

        P and Q are dense rows of all nodes, or P along the rows and Q along the columns.
        """
        P, Q = _as_value(P), _as_value(Q)
        for given, name in ((P, "P"), (Q, "Q")):
            if not isinstance(given, DenseRows):
                self._refuse(f"dot: {name}: {describe(given)} for", "expected dense rows")
        made: Matrix = self._make(Matrix, "dot", P, self._on_columns(Q))
        return made

    def compact(self, axis: int = 1) -> Matrix:
        """This matrix without its empty rows, for ``axis`` 1; a matrix has none, so it is itself.

        Columns stay.
        """
        if self._along("compact", axis) == 0:
            self._refuse(
                "compact: axis=0 of",
                "expected 1, since columns stay; C.column()[C.count(axis=0)] are those with edges",
            )
        return self

    def where(self, mask: Matrix) -> Matrix:
        """The edges whose value in ``mask``, a matrix of the same edges, is not 0."""
        made: Matrix = self._make(Matrix, "filter", self._matrix(mask, "where"))
        return made

    def merge(self, other: Matrix) -> Matrix:
        """The edges of this matrix, then those of ``other``, in each of their common columns."""
        made: Matrix = self._make(Matrix, "merge", self._matrix(other, "merge"))
        return made

    def top_k(self, K: int, m: Matrix | None = None) -> Matrix:
        """The K edges of each column with the largest values, or those in ``m``."""
        by = self if m is None else self._matrix(m, "top_k")
        made: Matrix = self._make(Matrix, "top_k", by, k=constant_count(self, "top_k", K))
        return made

    def individual_sample(
        self, K: int, probs: Matrix | None = None, replace: bool = False
    ) -> Matrix:
        """``K`` edges of each column, uniformly or by ``probs``; distinct unless ``replace``.

        ``probs`` is a matrix of the same edges.
        """
        by = [] if probs is None else [self._matrix(probs, "individual_sample: probs")]
        k = constant_count(self, "individual_sample", K)
        again = constant_flag(self, "individual_sample", replace)
        made: Matrix = self._make(
            Matrix, "individual", *by, k=k, replace=again, site=self._trace.site()
        )
        return made

    def collective_sample(
        self, K: int, node_probs: Vector | None = None, replace: bool = False
    ) -> Matrix:
        """The edges of ``K`` rows, drawn by ``node_probs``; distinct rows unless ``replace``.

        ``node_probs`` is a vector along rows; by default a row is drawn by its edges.
        """
        by = []
        node_probs = _as_value(node_probs)
        if node_probs is not None:
            if not isinstance(node_probs, Vector):
                self._refuse(
                    f"collective_sample: node_probs: {describe(node_probs)} for",
                    "expected a vector along its rows",
                )
            by.append(node_probs)
        k = constant_count(self, "collective_sample", K)
        again = constant_flag(self, "collective_sample", replace)
        site = self._trace.site()
        made: Matrix = self._make(Matrix, "collective", *by, k=k, replace=again, site=site)
        if not replace:
            self._trace.races[made._node] = site
        return made

    def race(self) -> Vector:
        """The random number of each node by which ``collective_sample`` without ``replace`` chose.

        They are in (0, 1), of all nodes. A row with the number r and the probability p has the key
        -log(r) / p, and the K smallest keys were chosen.
        """
        site = self._trace.races.get(self._node)
        if site is None:
            self._refuse("race of", "expected what collective_sample without replace returned")
        return Vector(self._trace, self._trace.add("random", site=site))

    def dependent_sample(self, p: Matrix | None = None) -> Matrix:
        """Edges of each column, each with its own chance in ``p``, a matrix of the same edges.

        Their number is the sum of the chances of the column, rounded down or up: K of them where
        that is K. It is dependent rounding (DepRound); without ``p`` these values are the chances.
        """
        by = self if p is None else self._matrix(p, "dependent_sample: p")
        made: Matrix = self._make(Matrix, "dependent", by, site=self._trace.site())
        return made

    def cap(self, K: float | Vector) -> Matrix:
        """Chances in the ratio of the values, at most 1, whose sum in each column is K.

        K is a number, or a vector along the columns. The chances are min(1, c x), c of a column.
        """
        K = _as_value(K)
        sums: Any = self._on_columns(K) if isinstance(K, Vector) else K
        if not isinstance(K, Vector):
            if not isinstance(K, Scalar) and number(K) is None:
                self._refuse(
                    f"cap: K: {describe(K)} for", "expected a number, or a vector along its columns"
                )
            sums = self.count(axis=0) * 0 + K
        factors: Vector = self._make(Vector, "level", sums)
        made: Matrix = self.mul(factors, axis=0).minimum(1)
        return made

    def labor(self, K: int, q: Matrix | None = None) -> Vector:
        """The factor c of LABOR's chances min(1, c q) of K edges per column; q is this matrix.

        By it a mean by these values has the variance of one over K edges drawn uniformly and
        without replacement; q may be other values of the same edges.
        """
        by = self if q is None else self._matrix(q, "labor: q")
        made: Vector = self._make(Vector, "labor", by, k=constant_count(self, "labor", K))
        return made

    def times(self) -> Vector:
        """The number of times that each row of a ``collective_sample`` was drawn."""
        made: Vector = self._make(Vector, "times")
        return made

    def sum(self, axis: int | None = None) -> Any:
        """The sum: a value for each column (axis 0) or row (axis 1); of all edges without axis."""
        if axis is None:
            return self._reduced("sum", 0).sum()
        return self._reduced("sum", axis)

    def mean(self, axis: int | None = None) -> Any:
        """The mean, with ``axis`` as in ``sum``; 0 without edges."""
        if axis is None:
            number_of_edges = self.count()
            return number_of_edges.select(self.sum() / number_of_edges, 0)
        return self._reduced("mean", axis)

    def max(self, axis: int | None = None) -> Any:
        """The largest value, with ``axis`` as in ``sum``; 0 without edges."""
        return self._extreme("largest", -math.inf, axis)

    def min(self, axis: int | None = None) -> Any:
        """The smallest value, with ``axis`` as in ``sum``; 0 without edges."""
        return self._extreme("smallest", math.inf, axis)

    def count(self, axis: int | None = None) -> Any:
        """The number of edges, with ``axis`` as in ``sum``."""
        if axis is None:
            return self._reduced("count", 0).sum()
        return self._reduced("count", axis)

    def _extreme(self, op: str, none: float, axis: Any) -> Any:
        if axis is not None:
            return self._reduced(op, axis)
        # Columns without edges have no part in it.
        each = self._reduced("count", 0).select(self._reduced(op, 0), none)
        return self.count().select(each._total(op, None), 0)

    def _reduced(self, op: str, axis: Any) -> Vector:
        made: Vector = self._make(Vector, op, axis=self._along(op, axis))
        return made

    def _on_columns(self, value: Any) -> Any:
        """A vector or dense rows along the list of the columns, as one along the columns."""
        if value._trace is not self._trace:
            # It is refused by the operator.
            return value
        return type(value)(self._trace, along_columns(self._trace, value._node, self._node))

    def _matrix(self, other: Any, what: str) -> Matrix:
        if not isinstance(other, Matrix):
            hint = "; C.spread(v, axis=) makes one" if isinstance(other, Vector) else ""
            self._refuse(f"{what}: {describe(other)} for", f"expected a matrix{hint}")
        return other
