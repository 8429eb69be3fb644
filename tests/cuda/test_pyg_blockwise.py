"""``pygsampler.pyg.blockwise`` on a GPU gives what PyG's models give there."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("torch_geometric", reason="needs PyG")

from torch_geometric import nn  # noqa: E402
from torch_geometric.data import Data, HeteroData  # noqa: E402

from pygsampler.pyg import NeighborLoader, blockwise  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("gpu")]
NODES, EDGES, IN, OUT = 500, 4000, 12, 7
MODELS: dict[str, tuple[Any, str]] = {
    "GraphSAGE": (lambda: nn.GraphSAGE(IN, 16, 2, OUT), ""),
    "GraphSAGE max": (lambda: nn.GraphSAGE(IN, 16, 2, OUT, aggr="max"), ""),
    "GraphSAGE lstm": (lambda: nn.GraphSAGE(IN, 16, 2, OUT, aggr="lstm"), ""),
    "GraphSAGE norm": (lambda: nn.GraphSAGE(IN, 16, 2, OUT, norm="batch_norm", bias=False), ""),
    "GCN": (lambda: nn.GCN(IN, 16, 2, OUT), ""),
    "GCN weights": (lambda: nn.GCN(IN, 16, 2, OUT), "edge_weight"),
    "GIN": (lambda: nn.GIN(IN, 16, 2, OUT), ""),
    "GAT": (lambda: nn.GAT(IN, 16, 2, OUT, heads=2), ""),
    "GAT attributes": (lambda: nn.GAT(IN, 16, 2, OUT, heads=2, edge_dim=3), "edge_attr"),
    "GAT v2": (lambda: nn.GAT(IN, 16, 2, OUT, heads=2, v2=True), ""),
    "EdgeCNN": (lambda: nn.EdgeCNN(IN, 16, 2, OUT), ""),
}


def make_data(edges_on: str = "cuda") -> Any:
    """A graph with self loops, parallel edges and isolated nodes."""
    random = torch.Generator().manual_seed(0)
    src = torch.randint(0, NODES, (EDGES,), generator=random)
    dst = (torch.rand(EDGES, generator=random) ** 3 * NODES * 0.9).long()
    dst[::20] = src[::20]
    return Data(
        x=torch.randn(NODES, IN, generator=random, dtype=torch.float64),
        edge_attr=torch.randn(EDGES, 3, generator=random, dtype=torch.float64),
        edge_weight=torch.rand(EDGES, generator=random, dtype=torch.float64) + 0.1,
        edge_index=torch.stack([src, dst]),
    ).to(edges_on)


def step(call: Any, model: Any, count: int) -> list[Any]:
    out = call()[:count]
    out.square().sum().backward()
    return [out.detach(), *[each.grad for each in model.parameters() if each.grad is not None]]


@pytest.mark.parametrize("way", ["sampled there", "moved there", "edge_index"])
@pytest.mark.parametrize("name", MODELS)
def test_outputs_and_gradients_of_the_model(name: str, way: str) -> None:
    make, extra = MODELS[name]
    device = "cpu" if way == "moved there" else "cuda"
    layout = "edge_index" if way == "edge_index" else "coo"
    seeds = torch.arange(0, NODES, 9)
    options = {"batch_size": 30, "seed": 3, "device": device, "edge_index": layout}
    batch = next(iter(NeighborLoader(make_data(device), [5, 4], seeds, **options))).to("cuda")
    torch.manual_seed(0)
    model = make().double().cuda()
    other = copy.deepcopy(model)
    extras = {extra: batch[extra]} if extra else {}
    expected = step(lambda: model(batch.x, batch.edge_index, **extras), model, batch.batch_size)
    wrapped = blockwise(other)
    result = step(lambda: wrapped(batch, **extras), other, batch.batch_size)
    assert len(result) == len(expected)
    for one, two in zip(result, expected, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-9, atol=1e-9)
    # Loops, and sums of rows, are the same at each run.
    again = wrapped(batch, **extras) if name != "GraphSAGE norm" else None
    assert again is None or torch.equal(again.detach(), wrapped(batch, **extras).detach())


def test_a_heterogeneous_model() -> None:
    random = torch.Generator().manual_seed(1)
    data = HeteroData()
    for kind in ("a", "b"):
        data[kind].x = torch.randn(200, IN, generator=random, dtype=torch.float64)
    for src, dst in (("a", "a"), ("b", "a"), ("a", "b")):
        ends = torch.randint(0, 200, (2, 1500), generator=random)
        data[src, "to", dst].edge_index = ends
    data = data.cuda()
    loader = NeighborLoader(data, [4, 3], ("a", torch.arange(40)), batch_size=25, device="cuda")
    batch = next(iter(loader))
    model = nn.to_hetero(nn.GraphSAGE((IN, IN), 16, 2, OUT), data.metadata()).double().cuda()
    out = blockwise(model)(batch)
    expected = model(batch.x_dict, batch.edge_index_dict)
    torch.testing.assert_close(out["a"], expected["a"][:25], rtol=1e-9, atol=1e-9)
    assert len(out["b"]) == 0


def test_a_step_of_a_loader_of_the_gpu_does_not_wait() -> None:
    batch = next(iter(NeighborLoader(make_data(), [5, 4], torch.arange(60), batch_size=60)))
    steps = [blockwise(MODELS[name][0]().double().cuda()) for name in ("GraphSAGE", "GCN", "GAT")]
    for each in steps:
        each(batch).sum().backward()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        for each in steps:
            each(batch).sum().backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("name", ["GraphSAGE", "GraphSAGE max", "GCN", "GIN", "GAT", "GAT v2"])
def test_a_captured_step_trains_as_an_eager_one(name: str) -> None:
    """Sampling and the step of a PyG model are one CUDA graph, with the losses of eager steps."""
    import pygsampler as pgs
    from pygsampler.torch import DataLoader, capture

    data = make_data()
    graph = pgs.Graph.from_pyg(make_data("cpu"))
    labels = torch.randint(OUT, (NODES,), device="cuda")
    torch.manual_seed(0)
    first = MODELS[name][0]().cuda().double()
    losses = {}
    for static in (False, True):
        model = copy.deepcopy(first)
        wrapped = blockwise(model)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, capturable=True)
        loader = DataLoader(
            graph,
            torch.arange(NODES, device="cuda"),
            [4, 3],
            batch_size=32,
            seed=1,
            device="cuda",
            features={"x": data.x},
            labels=labels,
            static=static,
        )

        def train(batch: Any, wrapped: Any = wrapped, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            out = wrapped(batch).index_select(0, batch.output_index)
            loss = torch.nn.functional.cross_entropy(out, batch.y)
            loss.backward()
            optimizer.step()
            return loss

        if static:
            losses[static] = capture(train, loader).run()
        else:
            losses[static] = torch.stack([train(batch).detach() for batch in loader])
    torch.testing.assert_close(losses[True], losses[False].to(losses[True]), rtol=1e-6, atol=1e-6)


@pytest.mark.skipif(
    not hasattr(torch.library, "register_autograd"), reason="needs torch 2.4 or newer"
)
@pytest.mark.parametrize("name", ["GraphSAGE", "GraphSAGE max", "GCN", "GIN", "GAT", "GAT v2"])
def test_compiled_models_are_one_graph(name: str) -> None:
    make, _ = MODELS[name]
    torch.manual_seed(0)
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    model = make().double().cuda()
    eager, compiled = blockwise(model), blockwise(copy.deepcopy(model))
    compiled.compile(fullgraph=True, backend="aot_eager")
    loader = NeighborLoader(make_data(), [4, 3], torch.arange(NODES), batch_size=90, seed=1)
    for batch in loader:
        results = []
        for call in (eager, compiled):
            call.zero_grad()
            out = call(batch)
            out.square().sum().backward()
            grads = [each.grad for each in call.parameters() if each.grad is not None]
            results.append([out.detach(), *grads])
        for one, two in zip(*results, strict=True):
            torch.testing.assert_close(one, two, rtol=1e-8, atol=1e-8)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1
