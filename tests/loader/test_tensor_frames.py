"""Columns of tables as frames of PyTorch Frame: made once, and read by loaders as features are."""

from __future__ import annotations

import datetime
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from partners import partner

import pygsampler as pgs

torch = partner("torch")
pandas = partner("pandas")
partner("torch_geometric")
torch_frame = partner("torch_frame")

from torch_frame.config import TextEmbedderConfig  # noqa: E402
from torch_frame.data import Dataset, MultiEmbeddingTensor, MultiNestedTensor, StatType  # noqa: E402

from pygsampler.pyg import NeighborLoader, tensor_frames  # noqa: E402
from pygsampler.torch import DataLoader, LinkLoader  # noqa: E402

stype = torch_frame.stype
ITEMS, SALES = 60, 400
SEED_TIME = np.datetime64("2024-08-01")
SCHEMA: dict[str, Any] = {
    "items": {
        "key": "id",
        "columns": {
            "price": "number",
            "old": "number",
            "color": "category",
            "note": "text",
            "born": "time",
            "emb": "embedding",
        },
    },
    "shops": {"key": "id", "columns": []},
    "sales": {"links": {"item": "items", "shop": "shops"}, "time": "day"},
}


def embed(texts: list[str]) -> Any:
    return torch.tensor([[len(text), text.count("a"), 1] for text in texts], dtype=torch.float32)


def frames_of_pandas() -> dict[str, Any]:
    random = np.random.default_rng(0)
    day = datetime.datetime(2024, 1, 1)
    born = [None if i % 9 == 2 else day + datetime.timedelta(hours=31 * i) for i in range(ITEMS)]
    items = {
        "id": np.arange(ITEMS) + 100,
        "price": np.where(np.arange(ITEMS) % 7 == 0, np.nan, random.random(ITEMS)),
        "old": random.random(ITEMS) < 0.5,
        "color": [None if i % 5 == 1 else ("red", "blue", "green")[i % 3] for i in range(ITEMS)],
        "note": ["a" * (i % 6) + "b" for i in range(ITEMS)],
        "born": pandas.Series(born, dtype="datetime64[ns]"),
        "emb": list(random.random((ITEMS, 4)).astype(np.float32)),
    }
    sales = {
        "item": random.integers(100, 100 + ITEMS, SALES),
        "shop": random.integers(0, 3, SALES),
        "day": np.datetime64("2024-01-01") + np.sort(random.integers(0, 300, SALES)),
    }
    tables = {"items": items, "shops": {"id": [0, 1, 2]}, "sales": sales}
    return {name: pandas.DataFrame(of) for name, of in tables.items()}


@pytest.fixture(scope="module")
def graph() -> pgs.Graph:
    return pgs.Graph.from_tables(frames_of_pandas(), SCHEMA)


def same(one: Any, other: Any) -> None:
    assert one == other
    for kind, values in one.feat_dict.items():
        expected = other.feat_dict[kind]
        assert values.dtype == expected.dtype, kind
        if isinstance(values, MultiEmbeddingTensor):
            assert torch.equal(values.values, expected.values) and values.device == expected.device
            assert torch.equal(values.offset, expected.offset)


def embedding(frame: Any, name: str) -> Any:
    """Not ``get_col_feat``, which looks for text under the kind that it was before."""
    place = frame.col_names_dict[stype.embedding].index(name)
    return frame.feat_dict[stype.embedding][:, place].values


def test_frames_are_those_of_pytorch_frame(graph: pgs.Graph, tmp_path: Path) -> None:
    graph.save(tmp_path / "g.pgs")
    kinds = {
        "price": stype.numerical,
        "old": stype.numerical,
        "color": stype.categorical,
        "note": stype.text_embedded,
        "born": stype.timestamp,
        "emb": stype.embedding,
    }
    config = TextEmbedderConfig(embed, batch_size=7)
    table = frames_of_pandas()["items"]
    with warnings.catch_warnings():
        # pandas' arrays are read-only.
        warnings.simplefilter("ignore")
        floats = table.astype({"old": float})
        theirs = Dataset(floats, kinds, col_to_text_embedder_cfg=config).materialize()
    for made in (graph, pgs.Graph.open(tmp_path / "g.pgs")):
        frames, stats = tensor_frames(made, text_embedder=config)
        mine, expected = frames["items"], theirs.tensor_frame
        assert set(mine.feat_dict) == set(expected.feat_dict)
        for kind in (stype.numerical, stype.timestamp):
            assert mine.col_names_dict[kind] == expected.col_names_dict[kind]
            one, other = mine.feat_dict[kind], expected.feat_dict[kind]
            assert one.dtype == other.dtype
            assert torch.equal(one.nan_to_num(-5), other.nan_to_num(-5))
        for name in ("emb", "note"):
            one, other = (embedding(frame, name) for frame in (mine, expected))
            assert one.dtype == other.dtype and torch.equal(one, other)
        # Codes are by another order of the same categories.
        codes = mine.get_col_feat("color")[:, 0].tolist()
        names, counts = stats["items"]["color"][StatType.COUNT]
        found = [None if code < 0 else names[code] for code in codes]
        assert found == [None if isinstance(c, float) else c for c in table["color"].tolist()]
        assert dict(zip(names, counts, strict=True)) == dict(
            zip(*theirs.col_stats["color"][StatType.COUNT], strict=True)
        )
        assert set(stats["items"]) == set(theirs.col_stats)
        for name, of_column in theirs.col_stats.items():
            for stat, value in of_column.items():
                got = stats["items"][name][stat]
                if stat == StatType.COUNT:
                    continue
                if isinstance(value, torch.Tensor):
                    assert torch.equal(got, value), (name, stat)
                else:
                    assert np.allclose(got, value), (name, stat)
        assert frames["sales"].col_names_dict == {stype.timestamp: ["time"]}
        assert frames["shops"].col_names_dict == {stype.numerical: ["__const__"]}
        assert len(frames["shops"]) == 3


def test_text_needs_an_embedder(graph: pgs.Graph) -> None:
    frames, stats = tensor_frames(graph)
    assert frames["items"].col_names_dict[stype.embedding] == ["emb"]
    assert "note" not in stats["items"]
    sizes: list[int] = []

    def noted(texts: list[str]) -> Any:
        sizes.append(len(texts))
        return embed(texts)

    frames, stats = tensor_frames(graph, noted)
    assert frames["items"].col_names_dict[stype.embedding] == ["emb", "note"]
    assert stats["items"]["note"] == {StatType.EMB_DIM: 3} and sizes == [ITEMS]
    tensor_frames(graph, TextEmbedderConfig(noted, batch_size=25))
    assert sizes[1:] == [25, 25, 10]
    for wrong in (lambda texts: embed(texts)[1:], lambda texts: [1.0] * len(texts)):
        with pytest.raises(ValueError, match=r"text_embedder: items.note: expected a tensor \[60"):
            tensor_frames(graph, wrong)
    with pytest.raises(TypeError, match=r"text_embedder: expected a function .*, got int 5"):
        tensor_frames(graph, 5)


def test_a_graph_without_columns_is_refused() -> None:
    plain = pgs.Graph.from_coo([0], [1], num_nodes=2)
    with pytest.raises(ValueError, match=r"expected a graph of Graph\.from_tables with"):
        tensor_frames(plain)


@pytest.mark.parametrize("prefetch", [0, 3])
def test_batches_have_the_rows_of_frames(graph: pgs.Graph, prefetch: int) -> None:
    frames, _ = tensor_frames(graph, embed)
    price = torch.arange(ITEMS)
    loader = DataLoader(
        graph,
        {"items": torch.arange(ITEMS)},
        pgs.PGSampler([4, 3], temporal="time", seed=1),
        batch_size=16,
        shuffle=True,
        seed=1,
        seed_time=SEED_TIME,
        features={"tf": frames, "price": {"items": price}},
        prefetch=prefetch,
    )
    for batch in loader:
        assert set(batch.tf) == set(frames) and batch.features["tf"] is batch.tf
        for kind, ids in batch.input_nodes.items():
            same(batch.tf[kind], frames[kind][ids.long()])
            assert len(batch.tf[kind]) == len(ids)
        assert torch.equal(batch.price["items"], price[batch.input_nodes["items"]])
        data = batch.to_pyg()
        same(data["items"].tf, batch.tf["items"])
        again = pickle.loads(pickle.dumps(batch))
        same(again.tf["items"], batch.tf["items"])
        same(batch.to("cpu").tf["items"], batch.tf["items"])
    rows = {name: of["rows"] for name, of in loader.stats()["features"].items()}
    assert "tf.numerical['items']" in rows and "tf.timestamp['sales']" in rows


def test_frames_count_as_memory(graph: pgs.Graph) -> None:
    from pygsampler._batch.minibatch import result_bytes

    frames, _ = tensor_frames(graph)
    given = graph, {"items": [0, 1]}, [4]
    plain, framed = (
        result_bytes(next(iter(DataLoader(*given, batch_size=2, seed=1, features=features))))
        for features in (None, {"tf": {"items": frames["items"]}})
    )
    # Two numbers, a category, seven parts of a time, four of an embedding.
    assert framed - plain == 2 * (2 * 4 + 8 + 7 * 8 + 4 * 4)


def test_a_homogeneous_graph_and_links() -> None:
    frame = torch_frame.TensorFrame(
        {
            stype.numerical: torch.randn(10, 2),
            stype.embedding: MultiEmbeddingTensor.from_tensor_list([torch.randn(10, 3)]),
        },
        {stype.numerical: ["a", "b"], stype.embedding: ["c"]},
        y=torch.arange(10),
    )
    plain = pgs.Graph.from_coo(np.arange(10), (np.arange(10) + 1) % 10, num_nodes=10)
    for loader in (
        DataLoader(plain, torch.arange(10), [2, 2], batch_size=4, features={"tf": frame}),
        LinkLoader(plain, torch.arange(10), [2, 2], batch_size=4, features={"tf": frame}),
    ):
        for found in loader:
            batch = getattr(found, "minibatch", found)
            same(batch.tf, frame[batch.input_nodes.long()])
            assert torch.equal(batch.tf.y, batch.input_nodes.long())


def test_pygs_loaders_take_frames_as_features(graph: pgs.Graph) -> None:
    frames, _ = tensor_frames(graph)
    data = graph.to_pyg()
    for kind, frame in frames.items():
        data[kind].tf = frame
    options: dict[str, Any] = {"input_nodes": "items", "batch_size": 16, "seed": 1}
    stored = NeighborLoader(data, [4, 3], **options)
    bare = graph.to_pyg()
    given = NeighborLoader(bare, [4, 3], features={"tf": frames}, **options)
    replaced = NeighborLoader(data, [4, 3], features={"tf": frames}, **options)
    for one, other, third in zip(stored, given, replaced, strict=True):
        for kind in frames:
            same(one[kind].tf, other[kind].tf)
            same(one[kind].tf, third[kind].tf)
            if len(one[kind].n_id):
                same(one[kind].tf, frames[kind][one[kind].n_id])


def test_frames_that_have_no_rows_are_refused(graph: pgs.Graph) -> None:
    nested = MultiNestedTensor.from_tensor_mat([[torch.arange(i % 3)] for i in range(ITEMS)])
    several = torch_frame.TensorFrame(
        {stype.multicategorical: nested}, {stype.multicategorical: ["m"]}
    )
    empty = torch_frame.TensorFrame({}, {}, num_rows=ITEMS)
    short = torch_frame.TensorFrame({stype.numerical: torch.ones(9, 1)}, {stype.numerical: ["a"]})
    given = graph, {"items": [0, 1]}, [4]
    for frame, text in (
        (several, r"features\['tf'\]\['items'\]: expected a TensorFrame .*, got m, of several"),
        (empty, r"features\['tf'\]\['items'\]: expected a TensorFrame with columns .*, got none"),
        (short, r"features\['tf.numerical'\]\['items'\]: expected a row for each of 60 .*, got 9"),
    ):
        with pytest.raises(ValueError, match=text):
            DataLoader(*given, batch_size=2, features={"tf": {"items": frame}})
    with pytest.raises(TypeError, match="labels"):
        DataLoader(*given, batch_size=2, labels={"items": short})


def test_a_label_in_a_frame_is_a_leak(graph: pgs.Graph) -> None:
    frames, _ = tensor_frames(graph)
    price = frames["items"].get_col_feat("price")[:, 0]
    options: dict[str, Any] = {"features": {"tf": frames}, "labels": {"items": price}}
    sampler = pgs.PGSampler([4], temporal="time", seed=1)
    given = graph, {"items": torch.arange(ITEMS)}, sampler
    text = r"features\['tf.numerical'\]\['items'\]: expected features that do not tell the labels"
    with pytest.raises(ValueError, match=text):
        DataLoader(*given, batch_size=8, seed_time=SEED_TIME, guard=True, **options)


def test_a_model_of_pytorch_frame_trains(graph: pgs.Graph) -> None:
    from torch_frame.nn import EmbeddingEncoder, LinearEncoder, ResNet, TimestampEncoder
    from torch_frame.nn.encoder import LinearEmbeddingEncoder

    frames, stats = tensor_frames(graph, embed)
    torch.manual_seed(0)
    model = ResNet(
        channels=8,
        out_channels=1,
        num_layers=1,
        col_stats=stats["items"],
        col_names_dict=frames["items"].col_names_dict,
        stype_encoder_dict={
            stype.numerical: LinearEncoder(na_strategy=torch_frame.NAStrategy.MEAN),
            stype.categorical: EmbeddingEncoder(),
            stype.timestamp: TimestampEncoder(na_strategy=torch_frame.NAStrategy.MEDIAN_TIMESTAMP),
            stype.embedding: LinearEmbeddingEncoder(),
        },
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    loader = DataLoader(
        graph, {"items": torch.arange(ITEMS)}, [2], batch_size=20, features={"tf": frames},
        labels={"items": (torch.arange(ITEMS) % 3 == 0).float()},
    )  # fmt: skip
    losses = []
    for _ in range(12):
        for batch in loader:
            out = model(batch.tf["items"])[: len(batch.y["items"])].squeeze(1)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(out, batch.y["items"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert np.mean(losses[-3:]) < 0.5 * np.mean(losses[:3])
