"""``torch()``, ``numpy()`` and ``arrow()`` of every class of results keep every array."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow
import pytest

import pygsampler as pgs
from pygsampler import samplers
from pygsampler.samplers import layer_wise
from tests.support.research import HAS_RESEARCH

NODES, EDGES = 30, 200
random = np.random.default_rng(4)
SRC, DST = random.integers(0, NODES, (2, EDGES))
GRAPH = pgs.Graph.from_coo(
    SRC,
    DST,
    num_nodes=NODES,
    edge_data={"w": random.random(EDGES), "t": np.arange(EDGES)},
    node_data={"x": random.random((NODES, 3)).astype(np.float32)},
)
TYPES = pgs.Graph.from_coo(
    {
        ("user", "buys", "item"): random.integers(0, 10, (2, 60)),
        ("item", "of", "user"): random.integers(0, 10, (2, 60)),
    },
    num_nodes={"user": 10, "item": 10},
)
SEEDS = [3, 4, 3, 9]
PATH = [("user", "buys", "item"), ("item", "of", "user")]


@pgs.program
def several(A: Any, seeds: Any) -> Any:
    """A block whose edges have values of two names, and arrays of each kind beside it."""
    C = A[:, seeds]
    heard = C.T @ A.features("x")[C.row()]
    return [{"w": C, "t": C.edata["t"]}], {"heard": heard, "rows": C.row(), "sums": C.sum(axis=0)}


def results() -> dict[str, Any]:
    both = {"user": SEEDS, "item": [1]}
    found = {
        "blocks": pgs.PGSampler([3, 2], seed=1, edge_weights="ht").sample(GRAPH, SEEDS),
        "trees": pgs.PGSampler([3, 2], seed=1, disjoint=True).sample(GRAPH, SEEDS),
        "labor": layer_wise.labor(fanouts=[3, 2], seed=1, weights=True).sample(GRAPH, SEEDS),
        "program": several(weight="w", seed=1).sample(GRAPH, SEEDS),
        "subgraph": samplers.shadow(fanouts=[3, 2], seed=1).sample(GRAPH, SEEDS),
        "walks": pgs.RandomWalk(4, walks_per_seed=2, seed=1, edge_ids=True).sample(GRAPH, SEEDS),
        "roots": pgs.walks.MultiRW(2, 6, seed=1, edge_ids=True).sample(GRAPH, SEEDS),
        "metapath": pgs.walks.MetaPathWalk(PATH, seed=1, edge_ids=True).sample(TYPES, SEEDS),
        "visits": pgs.walks.PinSAGE(num_neighbors=3, seed=1).sample(GRAPH, SEEDS),
        "types": pgs.PGSampler([3, 2], seed=1, edge_weights="ht").sample(TYPES, both),
        "types_trees": pgs.PGSampler([3, 2], seed=1, disjoint=True).sample(TYPES, both),
        "hgt": pgs.samplers.HGTSampler([3, 2], seed=1).sample(TYPES, both),
    }
    if HAS_RESEARCH:
        steps = pgs.research.KHop, pgs.research.LayerSample
        for name, kind in zip(("khop", "layers"), steps, strict=True):
            found[name] = kind([3, 2], seed=1, edge_ids=True).sample(GRAPH, SEEDS)
    return found


RESULTS = results()


def arrays(of: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    """All arrays that a result has by its public names, those of its blocks among them."""
    if of is None or isinstance(of, (str, int)):
        return
    if isinstance(of, pgs.Array):
        yield where, of.numpy()
    elif isinstance(of, Mapping):
        for key, value in of.items():
            yield from arrays(value, f"{where}[{key!r}]")
    elif isinstance(of, (tuple, list)):
        for i, value in enumerate(of):
            yield from arrays(value, f"{where}[{i}]")
    elif type(of).__module__.startswith("pygsampler"):
        for name in dir(type(of)):
            kind = getattr(type(of), name)
            if name.startswith("_") or callable(kind):
                continue
            try:
                value = getattr(of, name)
            except TypeError:  # visits have it in torch's tensors alone
                continue
            yield from arrays(value, f"{where}.{name}")


def at(of: Any, where: str) -> np.ndarray[Any, Any]:
    """The array of another library that stands there."""
    found = eval(f"of{where}", {"of": of})
    if isinstance(found, pyarrow.Array):
        return np.asarray(found.to_pylist())
    return np.asarray(found)


@pytest.mark.parametrize("library", ["torch", "numpy", "arrow"])
@pytest.mark.parametrize("name", RESULTS)
def test_every_array_is_converted(name: str, library: str) -> None:
    result = RESULTS[name]
    if not hasattr(result, library):
        # Those of graphs with types and visits have torch's tensors alone.
        assert library != "torch" and isinstance(result, (pgs.MiniBatch, pgs.walks.Visits))
        return
    made = getattr(result, library)()
    if isinstance(made, pyarrow.Table):
        check_table(result, made)
        return
    expected = dict(arrays(result))
    assert len(expected) >= 2
    for where, values in expected.items():
        found = at(made, where)
        assert np.array_equal(found.astype(values.dtype), values), where
    for number in ("epoch", "batch", "seed", "walks_per_seed", "length", "widths", "node_types"):
        if hasattr(result, number) and not (library == "arrow" and number == "seed"):
            assert getattr(made, number) == getattr(result, number), number


def check_table(result: Any, table: pyarrow.Table) -> None:
    """A row is a walk or a sample: lists without what pads them."""
    columns = table.to_pydict()
    if isinstance(result, pgs.Walks):
        expected = {"nodes": result.nodes, "edge_ids": result.edge_ids}
        if result.slots is not None:
            expected["slots"] = result.slots
        lengths = result.lengths.tolist()
        for name, array in expected.items():
            more = int(name == "nodes")
            rows = [row[: n + more] for row, n in zip(array.tolist(), lengths, strict=True)]
            assert columns.pop(name) == rows
    else:
        assert columns.pop("seed") == result.seeds.tolist()
        for i, (step, edges) in enumerate(zip(result.steps, result.edge_ids, strict=True), 1):
            assert columns.pop(f"step_{i}") == step.tolist()
            assert columns.pop(f"edges_{i}") == edges.tolist()
    assert columns == {}


def test_every_public_class_of_results_is_among_them() -> None:
    found = {type(result) for result in RESULTS.values()}
    public = {
        kind
        for name in pgs.__all__
        if isinstance(kind := vars(pgs).get(name), type)
        and hasattr(kind, "torch")
        and kind is not pgs.Array
    }
    assert public <= found


def test_walks_of_several_roots_keep_which_root_took_each_step() -> None:
    walks = RESULTS["roots"]
    slots = walks.slots.tolist()
    assert {slot for row in slots for slot in row} >= {0, 1}
    assert walks.numpy().slots.tolist() == slots == walks.torch().slots.tolist()
    assert RESULTS["walks"].numpy().slots is None
    assert len(walks.numpy()) == len(walks) and "MultiRW" not in repr(walks.numpy())
