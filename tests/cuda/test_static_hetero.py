"""Static batches and captured steps of typed and temporal graphs: the ones of a plain loop."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Iterable
from typing import Any

import pytest

import pygsampler as pgs

torch = pytest.importorskip("torch", reason="needs torch")

from pygsampler.samplers import Temporal  # noqa: E402
from pygsampler.torch import DataLoader, StaticMiniBatch, capture  # noqa: E402
from tests.support.assertions import assert_equal, content  # noqa: E402
from tests.support.partners import partner  # noqa: E402
from tests.support.static_batches import (  # noqa: E402
    FEW_NODES,
    assert_static,
    lengths,
    small_hetero_graph,
)

pytestmark = pytest.mark.once
# Tests without it run on the emulator, too.
on_a_gpu = pytest.mark.usefixtures("gpu")
on_devices = pytest.mark.usefixtures("host_tensors")
COUNTS = {"a": 3000, "b": 2000, "none": 5}
WRITES, CITES, BACK = ("a", "w", "b"), ("b", "c", "b"), ("b", "w", "a")
SEEDS = {"a": torch.arange(500), "b": torch.arange(1000) % 900}
OPTIONS: dict[str, Any] = {"batch_size": 256, "shuffle": True}
WIDTH, CLASSES = 16, 5
# Edge types of the small graph; the last has no edges.
R, S, T, EMPTY = ("a", "r", "b"), ("b", "s", "a"), ("a", "t", "a"), ("b", "e", "alone")
FEW = {"a": torch.arange(70), "b": torch.arange(90) % 60}
BY_TIME = {"seed_time": {"a": torch.arange(70) % 50, "b": torch.arange(90) % 40}}
BY_FLOAT = {"seed_time": {kind: time / 100.0 - 0.3 for kind, time in BY_TIME["seed_time"].items()}}


@pytest.fixture(scope="module")
def graph(torch: Any) -> pgs.Graph:
    random = torch.Generator().manual_seed(7)
    edges, data = {}, {}
    for kind in (WRITES, CITES, BACK):
        edges[kind] = tuple(
            torch.randint(0, COUNTS[end], (20000,), generator=random) for end in kind[::2]
        )
        data[kind] = {
            "w": torch.rand(20000, generator=random),
            "t": torch.randint(0, 50, (20000,), generator=random),
        }
    return pgs.Graph.from_coo(edges, num_nodes=COUNTS, edge_data=data).to("cuda")


@pytest.fixture
def few(host_tensors: None) -> pgs.Graph:
    """A small graph on the device."""
    return small_hetero_graph().to("cuda")


def loaders(
    graph: pgs.Graph, sampler: Any, static: Any = True, **options: Any
) -> tuple[DataLoader, DataLoader]:
    """A plain loader of few seeds, and a static one."""
    options = {"batch_size": 64, "shuffle": True, **options}
    rows = {
        name: options.pop(name)
        for name in ("features", "labels", "edge_features")
        if name in options
    }
    plain = DataLoader(graph, FEW, sampler, **options)
    return plain, DataLoader(graph, FEW, sampler, static=static, **options, **rows)


def with_dtypes(names: Iterable[str]) -> list[tuple[str, str]]:
    return list(zip(names, itertools.cycle(["int32", "int64"])))  # it has no end


PLAIN: dict[str, tuple[pgs.PGSampler, dict[str, Any]]] = {
    "uniform": (pgs.PGSampler([5, 3], seed=3), {}),
    "a rank, fanouts by type": (
        pgs.PGSampler([{R: 4, S: -1}, 3], default_fanout=2, seed=3),
        {"drop_last": True, "rank": 1, "world_size": 3, "batch_size": 20},
    ),
    "weighted": (pgs.PGSampler([5, 3], seed=3, prob="w"), {}),
    "masked, with replacement": (pgs.PGSampler([5], seed=3, mask="m", replace=True), {}),
    "trees": (pgs.PGSampler([5, 3], seed=3, disjoint=True, edge_weights="ht"), {}),
    "temporal": (pgs.PGSampler([4, 3], seed=3, temporal=Temporal("t", window=20)), BY_TIME),
    "temporal, weighted": (
        pgs.PGSampler(
            [4, 3], seed=3, prob="w", temporal=Temporal("f", inclusive=False, carry="edge")
        ),
        BY_FLOAT,
    ),
}


@on_devices
@pytest.mark.parametrize(("name", "dtype"), with_dtypes(PLAIN))
def test_batches_of_a_plain_loader(name: str, dtype: str) -> None:
    graph = small_hetero_graph(getattr(torch, dtype)).to("cuda")
    sampler, options = PLAIN[name]
    eager, fixed = loaders(graph, sampler, **options)
    assert fixed.static and fixed.capacities is None
    for _ in range(2):
        addresses = set()
        for expected, batch in zip(eager, fixed, strict=True):
            addresses.add(batch.input_nodes["a"].data_ptr())
            assert_static(batch, expected)
            for kind, nodes in batch.input_nodes.items():
                assert (nodes < FEW_NODES[kind]).all()
            for hop in batch.blocks:
                for kind, block in hop.items():
                    assert (block.edge_ids < max(graph[kind].num_edges, 1)).all()
        assert len(addresses) <= 1 + fixed._static.epochs.remade
    nodes, edges = fixed.capacities[0]
    assert nodes["none"] == nodes["alone"] == edges[EMPTY] == 0 < nodes["a"]


NEW: dict[str, tuple[pgs.PGSampler, dict[str, Any]]] = {
    "uniform": (pgs.PGSampler([4, 3, 2], seed=3, frontier="new"), {}),
    "weighted": (
        pgs.PGSampler([5, {R: 4, S: -1}, 3], default_fanout=2, prob="w", seed=3, frontier="new"),
        {},
    ),
    "trees": (
        pgs.PGSampler(
            [5, 3], disjoint=True, edge_weights="ht", replace=True, seed=3, frontier="new"
        ),
        {},
    ),
    "temporal": (
        pgs.PGSampler([4, 3, 3], temporal=Temporal("t", window=20), seed=3, frontier="new"),
        BY_TIME,
    ),
}


@on_devices
@pytest.mark.parametrize("static", [True, "max", "small"])
@pytest.mark.parametrize(("name", "dtype"), with_dtypes(NEW))
def test_new_frontiers(name: str, dtype: str, static: Any) -> None:
    """Destinations begin elsewhere in each batch; edges of all hops may be joined."""
    graph = small_hetero_graph(getattr(torch, dtype)).to("cuda")
    sampler, options = NEW[name]
    if static == "max" and name == "weighted":
        with pytest.raises(ValueError, match="with a fanout of -1, which has no bound"):
            loaders(graph, sampler, static)
        return
    small = [({}, {})] * len(sampler.fanouts)
    eager, fixed = loaders(graph, sampler, small if static == "small" else static, **options)
    x = {kind: torch.randn(count, 4) for kind, count in FEW_NODES.items()}

    def sums(batch: Any, kind: Any) -> Any:
        """Sums along all edges of a type, as layers of PyG make them."""
        rows, index = (
            x[kind[0]][batch.input_nodes[kind[0]].cpu()],
            batch.edge_index_dict[kind].cpu(),
        )
        return torch.zeros(len(batch.input_nodes[kind[2]]), 4).index_add_(
            0, index[1], rows[index[0]]
        )

    for expected, batch in zip(eager, fixed, strict=True):
        assert_static(batch, expected, "new")
        for hop in batch.blocks:
            for kind, block in hop.items():
                count, index = int(block.counts[1]), block.dst_index
                nodes = batch.input_nodes[kind[2]][index[:count]]
                assert torch.equal(block.dst_nodes[:count], nodes)
                assert (block.dst_nodes < FEW_NODES[kind[2]]).all()
        for kind in batch.edge_index_dict:
            want = sums(expected, kind)
            torch.testing.assert_close(sums(batch, kind)[: len(want)], want)
    assert (fixed._static.epochs.remade > 0) == (static == "small")


@on_devices
def test_larger_batches_get_more_room(few: pgs.Graph) -> None:
    small = [({"a": 70}, {R: 9}), ({}, {S: 1})]
    eager, fixed = loaders(few, [5, 3], small, seed=3)
    # A hop has room for the nodes of the hops before it.
    assert fixed.capacities[1][0] == {"a": 64, "b": 64, "none": 0, "alone": 0}
    assert fixed.capacities[0][0] == {"a": 70, "b": 64, "none": 0, "alone": 0}
    assert fixed.capacities[0][1][S] == 0
    for _ in range(2):
        for expected, batch in zip(eager, fixed, strict=True):
            assert_equal(batch.trimmed(), expected)
    assert fixed._static.epochs.remade > 0
    # Batches of the next loader, which begins with that room, need no more.
    most = fixed.capacities
    _, again = loaders(few, [5, 3], most, seed=3)
    assert len([batch for _ in range(2) for batch in again]) and again._static.epochs.remade == 0
    again.__dict__["graph"] = None
    assert pickle.loads(pickle.dumps(again._static.layout)).grown(most, most) == most


@on_devices
@pytest.mark.parametrize("trees", [False, True])
def test_max_is_the_most_that_a_batch_can_need(few: pgs.Graph, trees: bool) -> None:
    sampler = pgs.PGSampler([{R: 2}, 3], default_fanout=4, seed=3, replace=trees, disjoint=trees)
    eager, fixed = loaders(few, sampler, "max", seed=3)
    inner = dict.fromkeys(few.edge_types, 192) | {EMPTY: 0}
    nodes = {"a": 448, "b": 256} if trees else {"a": 300, "b": 200}
    assert fixed.capacities[1] == (nodes | {"none": 0, "alone": 0}, inner)
    assert fixed.capacities[0][1][R] == 2 * nodes["b"]
    for expected, batch in zip(eager, fixed, strict=True):
        assert_equal(batch.trimmed(), expected)
    assert fixed._static.epochs.remade == 0


@on_devices
def test_rows_and_layers(few: pgs.Graph) -> None:
    """Features, labels and features of edges by type; sums are those without the rest."""
    x = {kind: torch.randn(count, 4) for kind, count in FEW_NODES.items()}
    y = {"a": torch.randint(0, 5, (300,)), "b": torch.rand(200)}
    e = {R: torch.randn(2000, 2)}
    eager, fixed = loaders(few, [5, 3], seed=3, features={"x": x}, labels=y, edge_features={"e": e})
    for expected, batch in zip(eager, fixed, strict=True):
        trimmed = batch.trimmed()
        for kind, ids in expected.input_nodes.items():
            assert torch.equal(trimmed.x[kind].cpu(), x[kind][ids.cpu()])
        for kind, labels in y.items():
            seeds = expected.output_nodes[kind].cpu()
            assert torch.equal(trimmed.y[kind].cpu(), labels[seeds])
            assert (batch.y[kind][len(seeds) :] == (-100 if kind == "a" else 0)).all()
        for hop, plain in zip(trimmed.blocks, expected.blocks, strict=True):
            assert torch.equal(hop[R].e.cpu(), e[R][plain[R].edge_ids.cpu()])
        sums = []
        for result, rows in (
            (expected, x["a"][expected.input_nodes["a"].cpu()]),
            (batch, batch.x["a"]),
        ):
            block = result.blocks[0][R]
            src, dst = block.edge_index.cpu()
            sums.append(torch.zeros(block.num_dst_nodes, 4).index_add_(0, dst, rows.cpu()[src]))
        assert torch.equal(sums[1][: len(sums[0])], sums[0])
    assert fixed.stats()["features"]["x['a']"]["reads"] == len(eager)


@on_devices
def test_labels_of_seeds(few: pgs.Graph) -> None:
    places = {kind: torch.arange(len(seeds)) for kind, seeds in FEW.items()}
    eager, fixed = loaders(few, [5, 3], seed=3, seed_labels=places)
    for _ in range(2):
        for expected, batch in zip(eager, fixed, strict=True):
            trimmed = batch.trimmed()
            for kind, rows in expected.y.items():
                assert FEW[kind][rows.cpu()].equal(expected.output_nodes[kind].cpu())
                assert trimmed.y[kind].equal(rows)
                assert (batch.y[kind][len(rows) :] == -100).all()
                assert len(batch.y[kind]) == len(batch.output_nodes[kind])


@on_devices
@pytest.mark.filterwarnings("ignore")
def test_frames_of_types(few: pgs.Graph) -> None:
    """Tensors of a frame stay where they are; trimmed ones have the rows of the batch."""
    torch_frame = partner("torch_frame")
    from torch_frame.data import MultiEmbeddingTensor

    kinds = torch_frame.numerical, torch_frame.embedding
    frames = {
        kind: torch_frame.TensorFrame(
            {
                kinds[0]: torch.randn(count, 3),
                kinds[1]: MultiEmbeddingTensor.from_tensor_list(
                    [torch.randn(count, 2), torch.randn(count, 4)]
                ),
            },
            {kinds[0]: ["a", "b", "c"], kinds[1]: ["d", "e"]},
        )
        for kind, count in FEW_NODES.items()
    }
    eager, fixed = loaders(few, [5, 3], seed=3, features={"tf": frames})
    addresses = set()
    for expected, batch in zip(eager, fixed, strict=True):
        trimmed = batch.trimmed()
        addresses.add(batch.tf["a"].feat_dict[kinds[1]].values.data_ptr())
        assert sum(lengths(expected.input_nodes).values()) > 64
        for kind, ids in expected.input_nodes.items():
            assert trimmed.tf[kind].cpu() == frames[kind][ids.long().cpu()]
            assert batch.tf[kind].cpu() == frames[kind][batch.input_nodes[kind].long().cpu()]
    assert len(addresses) == 1
    assert fixed.stats()["features"]["tf.embedding['a']"]["reads"] == len(eager)


TIMES = torch.arange(150) % 50
TEMPORAL: dict[str, tuple[Temporal, Any, dict[str, Any]]] = {
    "window": (Temporal("t", window=20), TIMES, {}),
    "last": (Temporal("f", "last", inclusive=False), TIMES / 10.0, {}),
    "factors": (Temporal("n", carry="edge"), TIMES, {"edge_weights": "ht"}),
    "weighted": (Temporal("t"), TIMES, {"prob": "w", "replace": True}),
}


@on_devices
@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("name", TEMPORAL)
def test_batches_by_time_of_a_homogeneous_graph(name: str, dtype: str) -> None:
    random = torch.Generator().manual_seed(7)
    edges = torch.randint(0, 400, (2, 6000), generator=random).to(getattr(torch, dtype))
    times = torch.randint(0, 50, (6000,), generator=random)
    data = {"t": times, "f": times / 10.0, "w": torch.rand(6000, generator=random)}
    node_times = torch.randint(0, 50, (400,), generator=random)
    graph = pgs.Graph.from_coo(
        *edges, num_nodes=400, edge_data=data, node_data={"n": node_times}
    ).to("cuda")
    rule, times, how = TEMPORAL[name]
    sampler = pgs.PGSampler([4, 3], seed=2, temporal=rule, **how)
    options: dict[str, Any] = {"batch_size": 40, "shuffle": True, "seed": 5, "seed_time": times}
    options |= {"rank": 1, "world_size": 2}
    seeds = torch.arange(150) % 140
    for static in (True, "max", [(50, 40), (41, 3)]):
        eager = DataLoader(graph, seeds, sampler, **options)
        fixed = DataLoader(graph, seeds, sampler, static=static, **options)
        for _ in range(2 if static is True else 1):
            for expected, batch in zip(eager, fixed, strict=True):
                trimmed = assert_static(batch, expected)
                assert (batch.subgraph_ids[len(trimmed.subgraph_ids) :] == 40).all()
                assert batch.counts.tolist()[0] == len(trimmed.output_nodes)
        assert (fixed._static.epochs.remade > 0) == isinstance(static, list)
        if static == "max":
            assert fixed.capacities == [(160 * 5, 4 * 160), (160, 120)]


@on_devices
def test_errors(few: pgs.Graph) -> None:
    options: dict[str, Any] = {"batch_size": 64, "static": True}
    with pytest.raises(ValueError, match="static: expected a graph on a CUDA device, got one on"):
        DataLoader(small_hetero_graph(), FEW, [5, 3], **options)
    with pytest.raises(TypeError, match="static: expected a PGSampler"):
        DataLoader(few, FEW, pgs.LaborSampler([5, 3]), **options)
    refused: list[tuple[Any, type[Exception], str]] = [
        ([({}, {})], ValueError, "a pair of mappings for each of 2 hops"),
        ([({}, {}), 3], TypeError, r"static\[1\]: expected mappings of node types and of edge"),
        ([({}, {}), ({"z": 1}, {})], ValueError, r"\[1\]\[0\]: expected types of the graph"),
        ([({}, {}), ([], {})], TypeError, r"static\[1\]\[0\]: expected a mapping of types"),
        ([({}, {}), ({"a": -1}, {})], ValueError, r"\[0\]\['a'\]: expected an integer >= 0"),
        ([({}, {}), ({}, {EMPTY: 2})], ValueError, "no room for .* type 'alone'"),
    ]
    for static, error, text in refused:
        with pytest.raises(error, match=text):
            DataLoader(few, FEW, [5, 3], batch_size=64, static=static)
    loader = DataLoader(few, FEW, [5, 3], **options)
    batch = next(iter(loader))
    for name in ("num_sampled_nodes", "num_sampled_edges", "edge_index_dict"):
        with pytest.raises(AttributeError, match=f"{name}: expected a batch .* got a static one"):
            getattr(batch, name)
    with pytest.raises(TypeError, match="trimmed"):
        pickle.dumps(batch)
    assert batch.num_edges == sum(b.num_edges for hop in batch.blocks for b in hop.values())
    assert list(DataLoader(few, {"a": torch.arange(0)}, [5], **options)) == []
    few.close()
    with pytest.raises(pgs.errors.ClosedError):
        next(iter(loader))


SAMPLERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "uniform": ({}, {}),
    "weighted": ({"prob": "w"}, {}),
    "trees": ({"disjoint": True, "edge_weights": "ht"}, {}),
    "temporal": (
        {"temporal": Temporal("t", window=30)},
        {"seed_time": {"a": torch.arange(500) % 50, "b": torch.arange(1000) % 50}},
    ),
}


@on_a_gpu
@pytest.mark.parametrize("name", SAMPLERS)
def test_captured_batches_are_those_of_a_plain_loop(graph: pgs.Graph, name: str) -> None:
    """In three epochs, of which most batches are replays."""
    how, more = SAMPLERS[name]
    sampler = pgs.PGSampler([4, 3], seed=3, **how)
    x = {kind: torch.randn(count, WIDTH, device="cuda") for kind, count in COUNTS.items()}
    y = {"b": torch.randint(CLASSES, (COUNTS["b"],), device="cuda")}
    about = {**OPTIONS, **more, "features": {"x": x}, "labels": y}
    eager = DataLoader(graph, SEEDS, sampler, **about)
    fixed = DataLoader(graph, SEEDS, sampler, static="max", **about)
    batch: Any = None

    def step(given: Any) -> Any:
        nonlocal batch
        batch = given
        first = given.blocks[0][CITES]
        index = first.edge_index
        return torch.zeros(first.num_dst_nodes, WIDTH, device="cuda").index_add(
            0, index[1], given.x["b"][index[0]]
        )

    loop = capture(step, fixed, warmup=2)
    for _ in range(3):
        for out, expected in zip(loop, eager, strict=True):
            assert content(batch.trimmed()) == content(expected)
            block = expected.blocks[0][CITES]
            want = block.sum(expected.x["b"])
            torch.testing.assert_close(out[: len(want)], want, rtol=1e-4, atol=1e-4)
            assert (batch.y["b"][len(expected.y["b"]) :] == -100).all()
    assert loop.captured


FOUND: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "uniform": ({}, {}),
    "weighted trees": ({"prob": "w", "disjoint": True}, {}),
    "temporal": ({"temporal": "t"}, SAMPLERS["temporal"][1]),
}


@on_a_gpu
@pytest.mark.parametrize("name", FOUND)
def test_frontiers_of_what_was_found(graph: pgs.Graph, name: str) -> None:
    """The edges of all hops in one layer, and each block's by its destinations; gradients too."""
    how, more = FOUND[name]
    sampler = pgs.PGSampler([3, 4, 3], seed=3, frontier="new", **how)
    about = {**OPTIONS, **more}
    eager = DataLoader(graph, SEEDS, sampler, **about)
    fixed = DataLoader(graph, SEEDS, sampler, static=True, **about)
    random = torch.Generator(device="cuda").manual_seed(1)
    table = {
        kind: torch.randn(count, WIDTH, device="cuda", generator=random)
        for kind, count in COUNTS.items()
    }

    def layers(given: Any) -> Any:
        """Returns rows, and sums over edges at the nodes of each type, at once and hop by hop."""
        x = {kind: of[given.input_nodes[kind].long()] for kind, of in table.items()}
        h = {kind: of.requires_grad_() for kind, of in x.items()}
        joined = {kind: torch.zeros_like(of) for kind, of in x.items()}
        for kind, index in given.edge_index_dict.items():
            joined[kind[2]] = joined[kind[2]].index_add(0, index[1], h[kind[0]][index[0]])
        apart = {kind: torch.zeros_like(of) for kind, of in x.items()}
        for hop in given.blocks:
            for kind, block in hop.items():
                sources = h[kind[0]][: block.num_src_nodes]
                own, summed = block.self_and_reduce((sources, h[kind[2]]), "sum")
                apart[kind[2]] = apart[kind[2]].index_add(0, block.dst_index, summed + own)
        return h, joined, apart

    def step(given: Any) -> Any:
        h, joined, apart = layers(given)
        product = {kind: joined[kind] * apart[kind] for kind in ("a", "b")}
        if isinstance(given, StaticMiniBatch):
            product = {kind: of * given.node_mask[kind][:, None] for kind, of in product.items()}
        grads = torch.autograd.grad(product["a"].sum() + product["b"].sum(), [h["a"], h["b"]])
        made = [joined["a"], joined["b"], apart["a"], apart["b"]]
        return [*(of.detach() for of in made), *grads]

    batch: Any = None

    def noted(given: Any) -> Any:
        nonlocal batch
        batch = given
        return step(given)

    loop = capture(noted, fixed, warmup=2)
    for _ in range(3):
        for out, expected in zip(loop, eager, strict=True):
            assert content(batch.trimmed()) == content(expected)
            for mine, want in zip(out, step(expected), strict=True):
                torch.testing.assert_close(mine[: len(want)], want, rtol=1e-3, atol=1e-3)
    assert loop.captured


@on_a_gpu
def test_batches_by_time_without_types() -> None:
    random = torch.Generator().manual_seed(7)
    edges = torch.randint(0, 4000, (2, 60000), generator=random)
    times = torch.randint(0, 50, (60000,), generator=random)
    graph = pgs.Graph.from_coo(*edges, num_nodes=4000, edge_data={"t": times}).to("cuda")
    seeds, bounds = torch.arange(1500), torch.arange(1500) % 50
    sampler = pgs.PGSampler([4, 3], seed=2, temporal="t")
    about = {**OPTIONS, "seed_time": bounds}
    eager = DataLoader(graph, seeds, sampler, **about)
    fixed = DataLoader(graph, seeds, sampler, static=True, **about)
    loop = capture(
        lambda batch: [batch.counts.clone(), batch.input_nodes.clone(), batch.subgraph_ids.clone()],
        fixed,
    )
    for _ in range(3):
        for (counts, nodes, subgraph_ids), expected in zip(loop, eager, strict=True):
            sizes = [len(expected.output_nodes)]
            for block in expected.blocks:
                sizes += block.num_src_nodes, block.num_dst_nodes, block.num_edges
            assert counts.tolist() == sizes
            assert torch.equal(nodes[: sizes[1]], expected.input_nodes)
            assert torch.equal(subgraph_ids[: sizes[1]], expected.subgraph_ids)
    assert loop.captured


@on_a_gpu
def test_losses_of_a_plain_loop(graph: pgs.Graph) -> None:
    """A batch that needs more room is trained by a call, and captured anew."""
    x = {kind: torch.randn(count, WIDTH, device="cuda") for kind, count in COUNTS.items()}
    y = {"b": x["b"].argmax(1) % CLASSES}
    about = {**OPTIONS, "seed": 3, "features": {"x": x}, "labels": y}
    small = [({"a": 300, "b": 300}, {}), ({"a": 256, "b": 256}, {})]

    def losses(loader: Any, captured: bool) -> Any:
        torch.manual_seed(0)
        net = torch.nn.ModuleDict(
            {"__".join(kind): torch.nn.Linear(WIDTH, WIDTH) for kind in graph.edge_types}
            | {"out": torch.nn.Linear(WIDTH, CLASSES)}
        ).cuda()
        optimizer = torch.optim.Adam(net.parameters(), lr=1e-2, capturable=True)

        def step(batch: Any) -> Any:
            optimizer.zero_grad()
            h = batch.x
            for hop in batch.blocks:
                made = {kind: h[kind][: len(h[kind])] for kind in h}
                for kind, block in hop.items():
                    rows = torch.relu(net["__".join(kind)](block.mean(h[kind[0]])))
                    made[kind[2]] = made[kind[2]][: block.num_dst_nodes] + rows
                h = made
            out = net["out"](h["b"][batch.output_index["b"]])
            loss = torch.nn.functional.cross_entropy(out, batch.y["b"])
            loss.backward()
            optimizer.step()
            return loss.detach()

        if captured:
            loop = capture(step, loader, warmup=1)
            found = [loop.run() for _ in range(3)]
            assert loop.captured
            return torch.cat(found)
        return torch.stack([step(batch) for _ in range(3) for batch in loader])

    want = losses(DataLoader(graph, SEEDS, [4, 3], **about), False)
    for capacities in ("max", small):
        fixed = DataLoader(graph, SEEDS, [4, 3], static=capacities, **about)
        got = losses(fixed, True)
        assert (fixed._static.epochs.remade > 0) == (capacities is small)
        torch.testing.assert_close(got, want, rtol=2e-3, atol=2e-3)
    assert want[-1] < 0.99 * want[0]
