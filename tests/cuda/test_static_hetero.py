"""Static batches and captured steps of graphs with types, and by time: those of a plain loop."""

from __future__ import annotations

from typing import Any

import pytest

import pygsampler as pgs

torch = pytest.importorskip("torch", reason="needs torch")

from pygsampler.samplers import Temporal  # noqa: E402
from pygsampler.torch import DataLoader, StaticMiniBatch, capture  # noqa: E402
from tests.support.assertions import content  # noqa: E402

pytestmark = pytest.mark.usefixtures("gpu")
COUNTS = {"a": 3000, "b": 2000, "none": 5}
WRITES, CITES, BACK = ("a", "w", "b"), ("b", "c", "b"), ("b", "w", "a")
SEEDS = {"a": torch.arange(500), "b": torch.arange(1000) % 900}
OPTIONS: dict[str, Any] = {"batch_size": 256, "shuffle": True}
WIDTH, CLASSES = 16, 5


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


SAMPLERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "uniform": ({}, {}),
    "weighted": ({"prob": "w"}, {}),
    "trees": ({"disjoint": True, "edge_weights": "ht"}, {}),
    "temporal": (
        {"temporal": Temporal("t", window=30)},
        {"seed_time": {"a": torch.arange(500) % 50, "b": torch.arange(1000) % 50}},
    ),
}


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
        """Of each type what the edges give its vertices, at once and hop by hop."""
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
