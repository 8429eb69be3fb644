"""Training on walks on a GPU: pairs, negatives and PyG's models of walks."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch")

import pygsampler as pgs  # noqa: E402
from pygsampler.torch import DataLoader, skip_gram  # noqa: E402

pytestmark = pytest.mark.usefixtures("gpu")
NODES = 700


def edges(dtype: str = "int64") -> np.ndarray[Any, Any]:
    return np.random.default_rng(1).integers(0, NODES - 20, (2, 4000)).astype(dtype)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"negatives": 40, "power": 0},
        {"negatives": 2, "power": 0.3, "dynamic": True},
        {"negatives": 0},
    ],
)
def test_pairs_of_the_cpu(dtype: str, options: dict[str, Any]) -> None:
    graph = pgs.Graph.from_coo(*edges(dtype), num_nodes=NODES)
    walks = pgs.RandomWalk(12, stop=0.05, seed=2)
    loaders = [
        DataLoader(graph, np.arange(NODES), walks, batch_size=300, device=where)
        for where in ("cpu", "cuda")
    ]
    for cpu, gpu in zip(*loaders, strict=True):
        one = skip_gram(graph, cpu, 4, **options)
        other = skip_gram(loaders[1].graph, gpu, 4, **options)
        assert {t.device.type for t in other} == {"cuda"}
        assert len(one.centres) > 1000
        assert all(a.equal(b.cpu()) for a, b in zip(one, other, strict=True))
        assert cpu.staying().equal(gpu.staying().cpu())


def test_in_another_stream() -> None:
    """The table is there for every stream, and what is drawn is in the current one."""
    graph = pgs.Graph.from_coo(*edges(), num_nodes=NODES).to("cuda")
    walks = pgs.RandomWalk(12, seed=2).sample(graph, np.arange(NODES))
    wanted = skip_gram(graph, walks, 4)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        made = skip_gram(graph, walks, 4)
    stream.synchronize()
    assert all(a.equal(b) for a, b in zip(made, wanted, strict=True))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["Node2Vec", "MetaPath2Vec"])
def test_models_of_walks(kind: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("torch_geometric", reason="needs PyG")
    from pygsampler import pyg

    def model() -> Any:
        torch.manual_seed(0)
        pairs = torch.from_numpy(edges())
        if kind == "Node2Vec":
            return pyg.Node2Vec(pairs, 8, 6, 3, p=0.5, q=2.0, num_nodes=NODES, seed=1)
        path = [("a", "to", "b"), ("b", "to", "a")]
        return pyg.MetaPath2Vec(
            dict.fromkeys(path, pairs),
            8,
            path,
            6,
            3,
            num_nodes_dict={"a": NODES, "b": NODES},
            seed=1,
        )

    found = []
    for where in ("cpu", "cuda"):
        made = model().to(where)
        torch.manual_seed(5)
        batches = list(made.loader(batch_size=256, shuffle=True))
        for pos, neg in batches:
            assert {pos.device.type, neg.device.type} == {where}
            made.loss(pos, neg).backward()
        found.append([pos.cpu() for pos, _ in batches])
        pinned = next(iter(made.loader(batch_size=256, pin_memory=True)))
        assert all(each.is_pinned() for each in pinned)
        forked = next(iter(made.loader(batch_size=256, num_workers=1)))
        assert all(each.device.type == "cpu" for each in forked)
    assert all(a.equal(b) for a, b in zip(*found, strict=True))
