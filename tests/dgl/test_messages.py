"""Messages along the edges of our blocks are those along DGL's, forward and backward.

A layer of DGL is made of these: message functions, reducers, and the softmax over edges.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Any

import dgl
import pytest
import torch
from dgl import function
from torch.testing import assert_close

from tests.dgl.block_pairs import (
    BLOCKS,
    Features,
    Pair,
    outcome,
    pair_of,
    reduce_by_engine,
    with_gradients,
)

MESSAGES = sorted(
    name
    for name in vars(function)
    if re.fullmatch("copy_[ue]|[uve]_(add|sub|mul|div|dot)_[uve]", name)
)
REDUCERS = ["max", "mean", "min", "sum"]

Shape = tuple[int, ...]


def shapes(operator: str) -> list[tuple[Shape, Shape]]:
    """Returns shapes behind the number of nodes or edges, left and right of an operator."""
    # A product needs all of the last dimension on both sides.
    broadcast = (1, 3) if operator == "dot" else (2, 1)
    return [
        ((), ()),
        ((1,), (1,)),
        ((4,), (4,)),
        ((2, 3), (2, 3)),
        (broadcast, (2, 3)),
        ((2, 3), broadcast),
        ((2, 3), (3,)),
    ]


def operator_of(name: str) -> str:
    return name.split("_")[0 if name.startswith("copy") else 1]


def sides_of(name: str) -> list[str]:
    return name.split("_")[1:] if name.startswith("copy") else name.split("_")[::2]


def both_are_equal(
    pair: Pair, what: str, dtype: torch.dtype, run: Callable[[Any, Features], Any]
) -> None:
    """``run`` returns the same for both blocks, with the same gradients of the features it uses."""

    def result(block: Any) -> Any:
        of = Features(block, dtype)
        with block.local_scope():
            return with_gradients(run(block, of), of.leaves)

    ours, theirs = (outcome(lambda block=block: result(block)) for block in pair)
    if isinstance(theirs, type):
        # DGL's backward of these indexes messages that are not there.
        assert pair.theirs.num_edges() == 0, (what, theirs)
        assert what.endswith(("max", "min")), (what, theirs)
        assert ours is theirs, what
    else:
        assert not isinstance(ours, type), (what, ours)
        assert_close(ours, theirs, msg=lambda text: f"{what}: {text}")


def with_inputs(block: Any, of: Features, name: str, left: Shape, right: Shape) -> Any:
    """The message function of that name over features that the block gets here."""
    make = {"u": of.sources, "v": of.destinations, "e": of.edges}
    data = {"u": block.srcdata, "v": block.dstdata, "e": block.edata}
    sides = sides_of(name)
    for side, shape in zip(sides, (left, right), strict=False):
        data[side][f"h{side}"] = make[side](*shape)
    return getattr(function, name)(*(f"h{side}" for side in sides), "m")


def check_messages(
    pair: Pair, name: str, cases: Iterable[tuple[tuple[Shape, Shape], torch.dtype]]
) -> None:
    for (left, right), dtype in cases:
        what = f"{name} {left} {right} {dtype}"

        def messages(block: Any, of: Features, left: Shape = left, right: Shape = right) -> Any:
            block.apply_edges(with_inputs(block, of, name, left, right))
            return block.edata["m"]

        both_are_equal(pair, what, dtype, messages)
        for how in REDUCERS:

            def reduced(
                block: Any, of: Features, left: Shape = left, right: Shape = right, how: str = how
            ) -> Any:
                message = with_inputs(block, of, name, left, right)
                block.update_all(message, getattr(function, how)("m", "h"))
                return block.dstdata["h"]

            both_are_equal(pair, f"{what} {how}", dtype, reduced)


def test_all_functions_are_known() -> None:
    assert len(MESSAGES) == 2 + 6 * 5
    assert {*MESSAGES, *REDUCERS} == {
        name
        for name, value in vars(function).items()
        if callable(value) and not isinstance(value, type) and not name.startswith("_")
    }


@pytest.mark.parametrize("name", MESSAGES)
def test_every_message_by_every_reducer(name: str) -> None:
    cases = shapes(operator_of(name))
    check_messages(pair_of("outer"), name, product(cases, [torch.float32]))
    check_messages(pair_of("outer"), name, product(cases[4:5], [torch.float64]))


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        ("inner", torch.int32),
        ("parallel", torch.int64),
        ("repeated seeds", torch.int32),
        ("no edges", torch.int64),
    ],
)
@pytest.mark.parametrize("name", MESSAGES)
def test_messages_on_other_blocks(name: str, kind: str, dtype: torch.dtype) -> None:
    broadcast = shapes(operator_of(name))[4]
    check_messages(pair_of(kind, dtype), name, [(broadcast, torch.float32)])


@pytest.mark.parametrize("name", ["copy_u", "u_mul_e"])
def test_messages_that_the_engine_reduces(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    reduce_by_engine(monkeypatch)
    for kind, dtype in BLOCKS:
        cases = product(shapes(operator_of(name)), [torch.float32, torch.float64])
        check_messages(pair_of(kind, dtype), name, cases)


@pytest.fixture
def without_libxsmm() -> Iterator[None]:
    before = dgl.is_libxsmm_enabled()
    dgl.use_libxsmm(False)
    yield
    dgl.use_libxsmm(before)


@pytest.mark.usefixtures("without_libxsmm")
@pytest.mark.parametrize("name", ["copy_u", "copy_e", "u_mul_e", "u_add_v"])
def test_messages_by_dgls_other_cpu_kernels(name: str) -> None:
    assert not dgl.is_libxsmm_enabled()
    check_messages(pair_of("outer"), name, product([((2, 3), (2, 3))], [torch.float32]))


@pytest.mark.parametrize("by", ["dst", "src"])
@pytest.mark.parametrize("shape", [(), (1,), (2, 1), (2, 3)], ids=str)
def test_edge_softmax(shape: Shape, by: str) -> None:
    for kind, dtype in BLOCKS:
        both_are_equal(
            pair_of(kind, dtype),
            f"{kind} {dtype}",
            torch.float32,
            lambda block, of: dgl.nn.functional.edge_softmax(block, of.edges(*shape), norm_by=by),
        )


OPERATORS = ["add", "sub", "mul", "div", "copy_lhs", "copy_rhs"]


@pytest.mark.parametrize("how", REDUCERS)
@pytest.mark.parametrize("operator", OPERATORS)
def test_gspmm(operator: str, how: str) -> None:
    for kind, dtype in BLOCKS:
        both_are_equal(
            pair_of(kind, dtype),
            f"{kind} {operator} {how}",
            torch.float32,
            lambda block, of: dgl.ops.gspmm(
                block,
                operator,
                how,
                None if operator == "copy_rhs" else of.sources(2, 3),
                None if operator == "copy_lhs" else of.edges(2, 1),
            ),
        )


@pytest.mark.parametrize("targets", list(product("uve", "uve")), ids="".join)
def test_gsddmm(targets: tuple[str, str]) -> None:
    def messages(block: Any, of: Features, operator: str) -> Any:
        make = {"u": of.sources, "v": of.destinations, "e": of.edges}
        left, right = (make[target](2, 3) for target in targets)
        if operator == "copy_lhs":
            right = None
        if operator == "copy_rhs":
            left = None
        return dgl.ops.gsddmm(block, operator, left, right, *targets)

    for kind in ("outer", "parallel", "no edges"):
        for operator in [*OPERATORS, "dot"]:
            both_are_equal(
                pair_of(kind),
                f"{kind} {operator}",
                torch.float32,
                lambda block, of, operator=operator: messages(block, of, operator),
            )


@pytest.mark.parametrize("name", dgl.mpops.edgewise.__all__)
def test_functions_of_the_package(name: str) -> None:
    def messages(block: Any, of: Features) -> Any:
        make = {"u": of.sources, "v": of.destinations}
        return getattr(dgl, name)(block, *(make[side](2, 3) for side in sides_of(name)))

    for kind, dtype in BLOCKS:
        both_are_equal(pair_of(kind, dtype), f"{kind} {name}", torch.float32, messages)


def mixed(edges: Any) -> dict[str, torch.Tensor]:
    """A message in Python, out of the features of an edge and its source."""
    return {"m": edges.src["hu"] * edges.data["he"]}


def with_ids(edges: Any) -> dict[str, torch.Tensor]:
    """The same, and of the destination, and of what the three are called in the graph."""
    ids = edges.data[dgl.EID] + edges.src[dgl.NID] * 2 + edges.dst[dgl.NID] * 3
    return {"m": (mixed(edges)["m"] - edges.dst["hv"]) * ids.unsqueeze(1)}


def weighted(nodes: Any) -> dict[str, torch.Tensor]:
    """A reducer in Python to which the order of a vertex's edges matters."""
    messages = nodes.mailbox["m"]
    weights = torch.arange(1, messages.shape[1] + 1, dtype=messages.dtype)
    return {"h": (messages * weights.view(1, -1, 1)).sum(1) + nodes.nodes().view(-1, 1)}


def doubled(nodes: Any) -> dict[str, torch.Tensor]:
    return {"h": nodes.data["h"] * 2 + 1}


def with_all_inputs(block: Any, of: Features) -> None:
    block.srcdata["hu"] = of.sources(3)
    block.dstdata["hv"] = of.destinations(3)
    block.edata["he"] = of.edges(3)


def described(value: Any) -> str:
    return str(getattr(value, "name", None) or getattr(value, "__name__", value))


BUILTIN = function.u_mul_e("hu", "he", "m")
WITH_EDGES = [("outer", torch.int64), ("parallel", torch.int32), ("square", torch.int64)]


@pytest.mark.parametrize("after", [None, doubled], ids=described)
@pytest.mark.parametrize(
    "how", [weighted, *(getattr(function, how)("m", "h") for how in REDUCERS)], ids=described
)
@pytest.mark.parametrize("message", [with_ids, BUILTIN, function.copy_e("he", "m")], ids=described)
def test_functions_in_python(message: Any, how: Any, after: Any) -> None:
    def reduced(block: Any, of: Features) -> Any:
        with_all_inputs(block, of)
        block.update_all(message, how, after)
        return block.dstdata["h"]

    for kind, dtype in WITH_EDGES:
        both_are_equal(pair_of(kind, dtype), f"{kind} {dtype}", torch.float64, reduced)


def some_edges(block: Any) -> torch.Tensor:
    return torch.arange(block.num_edges(), dtype=block.idtype).flip(0)[::3]


def some_rows(block: Any) -> torch.Tensor:
    return torch.tensor([3, 1], dtype=block.idtype)


def positive(edges: Any) -> torch.Tensor:
    return edges.data["he"][:, 0] > 0


# Calls that take a part of the edges, by their ids in the block or by nodes. DGL turns most
# parts into a graph, whose edges have no ids, and whose destinations no features: hence `mixed`.
PARTS: dict[str, Callable[[Any], Any]] = {
    "apply_edges": lambda g: g.apply_edges(with_ids, some_edges(g)),
    "apply_edges built in": lambda g: g.apply_edges(BUILTIN, some_edges(g)),
    "apply_edges of pairs": lambda g: g.apply_edges(with_ids, tuple(x[::2] for x in g.edges())),
    "send_and_recv": lambda g: g.send_and_recv(some_edges(g), mixed, weighted),
    "send_and_recv built in": lambda g: g.send_and_recv(
        some_edges(g), BUILTIN, function.max("m", "h"), doubled
    ),
    "pull": lambda g: g.pull(some_rows(g), mixed, weighted),
    "pull built in": lambda g: g.pull(some_rows(g), BUILTIN, function.max("m", "h")),
    "push": lambda g: g.push(some_rows(g), mixed, weighted),
    "push built in": lambda g: g.push(some_rows(g), BUILTIN, function.sum("m", "h")),
    "multi_update_all": lambda g: g.multi_update_all({"_E": (with_ids, weighted)}, "max"),
    "prop_nodes": lambda g: g.prop_nodes([some_rows(g)], mixed, weighted),
    "prop_edges": lambda g: g.prop_edges([some_edges(g)], mixed, weighted),
    "filter_edges": lambda g: g.filter_edges(positive),
    "filter_edges of some": lambda g: g.filter_edges(positive, some_edges(g)),
    "sum_edges": lambda g: dgl.sum_edges(g, "he"),
    "softmax_edges": lambda g: dgl.softmax_edges(g, "he"),
    "topk_edges": lambda g: dgl.topk_edges(g, "he", 3)[0],
    "broadcast_edges": lambda g: dgl.broadcast_edges(g, torch.ones(1, 2)),
    "edge_softmax": lambda g: dgl.nn.functional.edge_softmax(
        g, g.edata["he"][some_edges(g).long()], some_edges(g)
    ),
}


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_parts(part: Callable[[Any], Any]) -> None:
    def result(block: Any, of: Features) -> Any:
        with_all_inputs(block, of)
        value = part(block)
        left = [
            data[name] for data, name in ((block.edata, "m"), (block.dstdata, "h")) if name in data
        ]
        return left if value is None else [value]

    for kind, dtype in WITH_EDGES:
        both_are_equal(pair_of(kind, dtype), f"{kind} {dtype}", torch.float64, result)
