"""``inference`` on a GPU gives what it gives on the CPU, wherever graph, rows and results are."""

from __future__ import annotations

import functools
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

import pygsampler as pgs  # noqa: E402

sys.path.append(str(Path(__file__).parents[1] / "inference"))
from inference_cases import NODES, PairConv, SAGEConv, random_graph, random_rows  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("gpu")]
inference = functools.partial(pgs.inference, progress=False)
WIDTH = 5
CLOSE = {"rtol": 1e-4, "atol": 1e-5}


def layers(device: str = "cpu") -> list[Any]:
    torch.manual_seed(0)
    modules = SAGEConv(WIDTH, 8), PairConv(8, 6), SAGEConv(6, 3)
    first, second, third = (each.to(device) for each in modules)
    return [first, torch.relu, second, torch.relu, third]


def placed(graph: Any, where: str) -> Any:
    return {"cpu": graph, "cuda": graph.to("cuda"), "pinned": graph.pin()}[where]


def features(x: Any, where: str) -> Any:
    host = pgs.Features.from_tensor(x)
    return {
        "cpu": x,
        "page-locked": x.pin_memory(),
        "cuda": x.cuda(),
        "features": host,
        "features on it": host.to("cuda"),
        "features pinned for it": host.pin(),
    }[where]


@pytest.mark.parametrize("memory", [None, 4000])
@pytest.mark.parametrize("batch_size", [None, 1, 37])
@pytest.mark.parametrize("graph_on", ["cpu", "cuda", "pinned"])
def test_rows_equal_those_of_the_cpu(
    graph_on: str, batch_size: int | None, memory: int | None
) -> None:
    graph, x = random_graph(), random_rows()
    expected = inference(layers(), graph, x)
    rows = inference(
        layers("cuda"), placed(graph, graph_on), x, batch_size=batch_size, memory=memory
    )
    # On the device of the features.
    assert rows.device.type == "cpu"
    torch.testing.assert_close(rows, expected, **CLOSE)


@pytest.mark.parametrize("memory", [None, 4000])
@pytest.mark.parametrize(
    "where",
    ["cpu", "page-locked", "cuda", "features", "features on it", "features pinned for it"],
)
def test_features_are_read_wherever_they_are(where: str, memory: int | None) -> None:
    graph, x = random_graph(torch.int32), random_rows()
    expected = inference(layers(), graph, x)
    rows = inference(layers("cuda"), graph.to("cuda"), features(x, where), memory=memory)
    assert rows.is_cuda == (where in ("cuda", "features on it"))
    torch.testing.assert_close(rows.cpu(), expected, **CLOSE)


def mean_and_max(block: Any, x_src: Any, x_dst: Any) -> Any:
    return torch.cat([x_dst, block.mean(x_src), block.max(x_src)], dim=1)


def test_reductions_have_the_bits_of_the_cpu() -> None:
    graph, x = random_graph(), random_rows()
    expected = inference([mean_and_max, mean_and_max], graph, x)
    for batch_size in (None, 1, 50):
        for memory in (None, 3000):
            rows = inference(
                [mean_and_max, mean_and_max],
                graph,
                x,
                device="cuda",
                batch_size=batch_size,
                memory=memory,
            )
            assert torch.equal(rows, expected)


@pytest.mark.parametrize("where", ["cpu", "page-locked", "features", "features pinned for it"])
def test_rows_that_many_need_are_kept_and_ranges_are_read_ahead(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows stay on the host, a range is read while another is computed, and bits are the same."""
    from pygsampler._inference import layer_runs

    nodes, edges = 30_000, 400_000
    random = torch.Generator().manual_seed(0)
    src = (torch.rand(edges, generator=random) ** 4 * nodes).long()
    graph = pgs.Graph.from_coo(src, torch.randint(nodes, (edges,), generator=random))
    x = torch.randn(nodes, 64, generator=random)
    expected = inference([mean_and_max, mean_and_max], graph.to("cuda"), x.cuda()).cpu()
    kept = []

    def note(*about: Any) -> Any:
        kept.append(layer_cache(*about))
        return kept[-1]

    layer_cache = layer_runs.cached_rows
    monkeypatch.setattr(layer_runs, "cached_rows", note)
    for on in (graph, graph.to("cuda")):
        for _ in range(3):
            given = [mean_and_max, mean_and_max], on, features(x, where)
            rows = inference(*given, device="cuda", memory=12_000_000, batch_size=997)
            assert torch.equal(rows, expected)
    assert len(kept) == 2 * 3 * 2
    for each in kept:
        stats = each.stats()
        # Rows that most edges lead from are the first.
        assert 0 < each.cached < nodes and stats["hits"] > each.cached


def test_results_go_where_they_are_asked_for(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    graph, x = random_graph(), random_rows()
    expected = inference(layers(), graph, x)
    for out in (torch.empty(NODES, 3), torch.empty(NODES, 3, device="cuda")):
        assert inference(layers("cuda"), graph, x, out=out) is out
        torch.testing.assert_close(out.cpu(), expected, **CLOSE)
    path = inference(layers("cuda"), graph, x, out=tmp_path / "rows.npy", resume=tmp_path / "r")
    rows = torch.from_numpy(numpy.load(path))
    torch.testing.assert_close(rows, expected, **CLOSE)
    assert torch.equal(inference(layers("cuda"), graph, x, resume=tmp_path / "r"), rows)


def test_a_layer_on_the_cpu_reads_rows_once_they_are_there() -> None:
    graph, x = pgs.Graph.from_coo([0], [0], num_nodes=1 << 18), torch.ones(1 << 18, 128)

    def layer(block: Any, rows: Any) -> Any:
        return rows[: block.num_dst_nodes].clone()

    for functions in ([layer], [torch.abs]):
        for batch_size in (None, 1 << 16):
            expected = torch.zeros_like(x, device="cuda")
            for _ in range(20):
                # Work that the copy has to wait for.
                expected = expected + x.cuda()
            rows = inference(functions, graph, expected, batch_size=batch_size, device="cpu")
            assert rows.is_cuda and torch.equal(rows, expected)


def test_a_model_elsewhere_is_refused() -> None:
    with pytest.raises(ValueError, match="move the model"):
        inference(layers(), random_graph(), random_rows(), device="cuda")


@pytest.mark.parametrize("memory", [None, 20_000])
@pytest.mark.parametrize(
    "name", ["GraphSAGE", "GCN", "GIN", "GAT", "GAT v2", "PNA", "EdgeCNN", "own"]
)
def test_models_of_pyg_equal_their_forward(name: str, memory: int | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nn = pytest.importorskip("torch_geometric.nn", reason="needs PyG")
        from torch_geometric.data import Data
    pna = {"aggregators": ["mean", "max"], "scalers": ["identity"], "deg": torch.ones(40).long()}
    kinds = {
        "GraphSAGE": lambda: nn.GraphSAGE(WIDTH, 8, 2, 3, jk="cat"),
        "GCN": lambda: nn.GCN(WIDTH, 8, 2, 3),
        "GIN": lambda: nn.GIN(WIDTH, 8, 2, 3, norm="batch_norm"),
        "GAT": lambda: nn.GAT(WIDTH, 8, 2, 3, heads=2),
        "GAT v2": lambda: nn.GAT(WIDTH, 8, 2, 3, heads=2, v2=True),
        "PNA": lambda: nn.PNA(WIDTH, 8, 2, 3, **pna),
        "EdgeCNN": lambda: nn.EdgeCNN(WIDTH, 8, 2, 3),
        "own": lambda: nn.Sequential("x, e", [(nn.TAGConv(WIDTH, 8), "x, e -> x")]),
    }
    from inference_cases import random_edges

    model = kinds[name]().double().cuda()
    data = Data(x=random_rows(dtype=torch.float64), edge_index=random_edges()).cuda()
    graph = pgs.Graph.from_pyg(data.cpu())
    data = data.cuda()
    for where in (graph, graph.to("cuda")):
        rows = inference(model, where, data.x, memory=memory)
        assert rows.is_cuda
        model.eval()
        with torch.no_grad():
            expected = model(data.x, data.edge_index)
        torch.testing.assert_close(rows, expected, rtol=1e-8, atol=1e-8)
