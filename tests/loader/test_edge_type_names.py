"""Edge types by the name of their relation in loaders."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import pygsampler as pgs
from pygsampler.torch import DataLoader, LinkLoader, NegativeSampling

WRITES, CITES = ("author", "writes", "paper"), ("paper", "cites", "paper")
NODES = {"author": 20, "paper": 30}


def graph() -> pgs.Graph:
    random = torch.Generator().manual_seed(1)
    edges = {
        kind: tuple(torch.randint(0, NODES[of], (150,), generator=random) for of in kind[::2])
        for kind in (WRITES, CITES)
    }
    return pgs.Graph.from_coo(edges, num_nodes=NODES)  # type: ignore[arg-type]


X = {kind: torch.rand(count, 4) for kind, count in NODES.items()}
W = {kind: torch.rand(150, 2) for kind in (WRITES, CITES)}


@pytest.mark.parametrize(
    "features", [{"x": X, "z": X}, {kind: {"x": x, "z": x} for kind, x in X.items()}]
)
@pytest.mark.parametrize(
    "edge_features",
    [
        {"w": W},
        {"w": {"writes": W[WRITES], "paper__cites__paper": W[CITES]}},
        {"writes": {"w": W[WRITES]}, "cites": {"w": W[CITES]}},
        {kind: {"w": w} for kind, w in W.items()},
    ],
)
def test_features_in_either_order(features: Any, edge_features: Any) -> None:
    of, seeds = graph(), {"paper": torch.arange(30)}
    labels = {"paper": torch.arange(30)}
    loader = DataLoader(
        of,
        seeds,
        [3, 3],
        batch_size=10,
        features=features,
        edge_features=edge_features,
        labels=labels,
    )
    for batch in loader:
        for kind in NODES:
            assert batch.x[kind].equal(X[kind][batch.input_nodes[kind]])
            assert batch.z[kind].equal(batch.x[kind])
        for hop in batch.blocks:
            for kind in W:
                assert hop[kind[1]].w.equal(W[kind][hop[kind].edge_ids])
        assert batch.y["paper"].equal(batch.output_nodes["paper"])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"features": {"x": {"venue": X["paper"]}}}, r"features\['x'\]: expected types of the "),
        ({"features": {"venue": {"x": X["paper"]}}}, r"features\['venue'\]: expected types of "),
        ({"edge_features": {"w": {"sells": W[CITES]}}}, "got 'sells'; there are .*'writes'"),
        ({"features": {"paper": {"y": X["paper"]}}}, "features: expected another name, since lab"),
        (
            {"edge_features": {"w": {"cites": W[CITES], CITES: W[CITES]}}},
            "expected each edge type once, got .*'cites', 'paper'. twice",
        ),
    ],
)
def test_wrong_features(options: Any, text: str) -> None:
    labels = {"paper": torch.arange(30)}
    with pytest.raises(ValueError, match=text):
        DataLoader(graph(), {"paper": [1]}, [3], batch_size=1, labels=labels, **options)


def test_link_loaders() -> None:
    of = graph()
    seeds: list[Any] = [
        {WRITES: torch.arange(100), CITES: torch.arange(90)},
        {"author__writes__paper": torch.arange(100), "cites": torch.arange(90)},
    ]
    made = []
    for edges in seeds:
        first, second = edges
        options: Any = {
            "negative_sampling": {
                first: NegativeSampling("structural"),
                second: NegativeSampling("uniform", 2),
            },
            "labels": None,
        }
        loader = LinkLoader(of, edges, [{"writes": 2, CITES: 3}], batch_size=32, seed=1, **options)
        made.append([batch.minibatch.input_nodes["paper"].tolist() for batch in loader])
        for batch in loader:
            assert list(batch.edge_label_index) == [WRITES, CITES]
            assert batch.edge_label_index["writes"].equal(batch.edge_label_index[WRITES])
            assert batch.input_id["cites"].equal(batch.input_id[CITES])
    assert made[0] == made[1]
    with pytest.raises(ValueError, match="labels: expected types of the loader's edges"):
        LinkLoader(of, seeds[0], [2], batch_size=8, labels={"reads": [1]})
    with pytest.raises(ValueError, match="edges: expected each edge type once"):
        LinkLoader(of, {"cites": [1], CITES: [2]}, [2], batch_size=8)
    src, dst = torch.tensor([1, 2]), torch.tensor([3, 4])
    drawn = [
        NegativeSampling().draw(of, src, dst, seed=1, edge_type=each) for each in (WRITES, "writes")
    ]
    assert drawn[0].equal(drawn[1])


def test_capacities() -> None:
    """Sizes of static batches are checked wherever they are made."""
    from pygsampler._loader.static_layouts import StaticLayout

    of = graph()
    form = StaticLayout(of, pgs.PGSampler([2]), {"paper": 4}, False)
    given = [({"author": 9, "paper": 20}, {"writes": 7, CITES: 12})]
    (made,) = form.checked(given, pgs.PGSampler([{"writes": 2, "cites": 3}])) or []
    assert made.num_edges == {WRITES: 7, CITES: 12}
    (most,) = form.checked("max", pgs.PGSampler([{"writes": 2}], default_fanout=3)) or []
    assert most.num_edges == {WRITES: 8, CITES: 12}
    with pytest.raises(ValueError, match=r"static\[0\]\[1\]: expected types of the graph"):
        form.checked([({}, {"sells": 1})], pgs.PGSampler([2]))
