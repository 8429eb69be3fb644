"""``Expr``: a value of a batch that is to come, and what no such value can do."""

from __future__ import annotations

import operator
from typing import Any, NoReturn

from pygsampler._engine.checks import describe, index
from pygsampler.programs._language.trace import ProgramTrace, number

# The operators that NumPy calls if its number is on the left.
_LEFT = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "true_divide": operator.truediv,
    "power": operator.pow,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
}


class Expr:
    """A value of a batch that is to come.

    Parameters
    ----------
    trace : ProgramTrace
        The trace that records the operators.
    node : int
        The place of the value in the trace.
    """

    __slots__ = ("_node", "_trace")

    _trace: ProgramTrace
    _node: int
    # The name of the value in errors.
    _what = "a value"

    def __init__(self, trace: ProgramTrace, node: int) -> None:
        self._trace = trace
        self._node = node

    def _make(self, kind: type[Any], op: str, *others: Any, **attributes: Any) -> Any:
        """Returns the value of an operator on this and others of the trace."""
        nodes = [self._node, *(self._other(other) for other in others)]
        return kind(self._trace, self._trace.add(op, *nodes, **attributes))

    def _other(self, other: Any) -> int:
        if isinstance(other, Expr):
            if other._trace is not self._trace:
                raise self._trace.refuse(
                    "a value of another program", "expected one of this program"
                )
            return other._node
        value = number(other)
        if value is not None:
            try:
                return self._trace.add("const", value=float(value))
            except OverflowError:
                self._refuse(f"{describe(other)} with", "expected a number of double precision")
        raise self._trace.refuse(
            describe(other), f"expected a number or a value of the program with {self._what}"
        )

    def _refuse(self, what: str, hint: str) -> NoReturn:
        raise self._trace.refuse(f"{what} {self._what}", hint)

    def __bool__(self) -> bool:
        self._refuse(
            "a branch on",
            "expected a constant, since a program is traced once for all batches; "
            "where(mask) and mask.select(a, b) choose by values",
        )

    def __iter__(self) -> Any:
        self._refuse("a loop over", "expected a constant number of rounds")

    def __len__(self) -> int:
        self._refuse("the length of", "expected count(), since it differs from batch to batch")

    def __float__(self) -> float:
        self._refuse("a number computed from", "it is known in a batch alone")

    def __int__(self) -> int:
        self._refuse("a number computed from", "it is known in a batch alone")

    def __index__(self) -> int:
        self._refuse("an index computed from", "it is known in a batch alone")

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **options: Any) -> Any:
        left = number(inputs[0])
        if left is not None and method == "__call__" and function.__name__ in _LEFT and not options:
            return _LEFT[function.__name__](left, inputs[1])
        self._refuse(f"NumPy's {function.__name__} of", "expected operators of the program")

    def __array__(self, *args: Any, **options: Any) -> Any:
        self._refuse("NumPy's function of", "expected operators of the program")

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        found = [x for x in args if isinstance(x, Expr)]
        name = getattr(function, "__name__", "function")
        if found:
            found[0]._refuse(f"torch's {name} of", "expected operators of the program")
        raise TypeError(f"torch's {name}: expected operators of the program")

    def __setitem__(self, key: Any, value: Any) -> None:
        self._refuse(
            "an assignment to", "expected where(mask) or mask.select(a, b), which make another"
        )

    def __contains__(self, item: Any) -> bool:
        self._refuse("a search in", "expected operators of the program")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        what, where = self._what, self._trace.where()
        raise AttributeError(
            f"{where}: {name} of {what}: expected one of {', '.join(_public(type(self)))}"
        )

    def __matmul__(self, other: Any) -> Any:
        self._refuse("@ of", "it is no operator of programs")

    def __rmatmul__(self, other: Any) -> Any:
        self._refuse("@ of", "it is no operator of programs")

    def __floordiv__(self, other: Any) -> Any:
        self._refuse("// of", "it is no operator of programs")

    def __rfloordiv__(self, other: Any) -> Any:
        self._refuse("// of", "it is no operator of programs")

    def __mod__(self, other: Any) -> Any:
        self._refuse("% of", "it is no operator of programs")

    def __rmod__(self, other: Any) -> Any:
        self._refuse("% of", "it is no operator of programs")

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<{self._what} %{self._node} of program {self._trace.name}>"


def _without(name: str, written: str) -> None:
    """Adds what Python has and programs do not: an error with its line."""

    def refuse(self: Expr, *others: Any) -> Any:
        self._refuse(f"{written} of", "it is no operator of programs")

    setattr(Expr, f"__{name}__", refuse)


# Classes below have some of them; what is left has none of Python's own ways either.
TWO = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "pow": "**", "and": "&", "or": "|"}
TWO |= {"lshift": "<<", "rshift": ">>", "xor": "^", "divmod": "divmod"}
for _name, _sign in TWO.items():
    _without(_name, _sign)
    _without(f"r{_name}", _sign)
ONE = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
ONE |= {"neg": "-", "pos": "+", "invert": "~", "abs": "abs"}
ONE |= {name: name for name in ("round", "trunc", "floor", "ceil", "complex")}
for _name, _sign in ONE.items():
    _without(_name, _sign)


def _public(kind: type[Expr]) -> list[str]:
    """Returns the public names of a kind of values."""
    return [name for name in dir(kind) if not name.startswith("_")]


def constant_count(symbol: Expr, what: str, K: Any) -> int:
    """K, where it is a constant."""
    if isinstance(K, Expr):
        symbol._refuse(f"{what}: K: {K._what} for", "expected a constant")
    try:
        return index(K)
    except TypeError:
        raise symbol._trace.refuse(f"{what}: K: {describe(K)}", "expected an integer") from None


def constant_flag(symbol: Expr, what: str, replace: Any) -> bool:
    """Returns a constant ``replace`` as a bool; TypeError for a traced value."""
    value = number(replace)
    if not isinstance(value, bool):
        raise symbol._trace.refuse(
            f"{what}: replace: {describe(replace)}", "expected True or False"
        )
    return value


def random_node_fields(symbol: Expr, batches: Any) -> dict[str, int]:
    """Returns what a node of random numbers has: its site, and in how many batches they change."""
    if isinstance(batches, Expr):
        symbol._refuse(f"random: batches: {batches._what} for", "expected a constant")
    if isinstance(batches, bool) or not isinstance(batches, int) or not 0 < batches < 2**31:
        raise symbol._trace.refuse(
            f"random: batches: {describe(batches)}", "expected an integer from 1 to 2**31 - 1"
        )
    site = {"site": symbol._trace.site()}
    return site | {"batches": batches} if batches > 1 else site
