"""Arrays of ``data`` are read by the engine: batches are those of PyG's reading, but for time."""

from __future__ import annotations

from typing import Any

import pytest
from partners import partner

torch = partner("torch")
partner("torch_geometric")

from torch_geometric.data import Data, HeteroData  # noqa: E402

from pygsampler.pyg import LinkNeighborLoader, NeighborLoader, batch_features  # noqa: E402
from pygsampler.pyg import loader as loaders  # noqa: E402

NODES, EDGES = 300, 4000


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The arrays that the engine reads, which are all, however few the rows."""
    found: list[Any] = []
    read_many = batch_features.read_many

    def noted(wanted: Any, **options: Any) -> Any:
        found.extend(features.shape for features, _ in wanted)
        return read_many(wanted, **options)

    monkeypatch.setattr(batch_features, "read_many", noted)
    monkeypatch.setattr(batch_features, "_READ_BYTES", 0)
    return found


def values(count: int, *shape: int) -> Any:
    return torch.randn(count, *shape, generator=torch.Generator().manual_seed(count))


def homogeneous() -> Any:
    random = torch.Generator().manual_seed(1)
    data = Data(
        x=values(NODES, 5),
        edge_index=torch.randint(0, NODES, (2, EDGES), generator=random),
        y=torch.arange(NODES),
        edge_attr=values(EDGES, 3),
        train_mask=torch.rand(NODES, generator=random) < 0.5,
    )
    data.name, data.half, data.whole = "a graph", values(NODES, 2).half(), values(7)
    data.turned, data.complex = values(4, NODES).T, torch.complex(data.x, data.x)
    data.weight = values(NODES, 2).requires_grad_()
    return data


def typed() -> Any:
    random = torch.Generator().manual_seed(1)
    data = HeteroData()
    for kind in ("a", "b", "alone"):
        data[kind].x, data[kind].y = values(NODES, 4), torch.arange(NODES)
    for edge in (("a", "to", "b"), ("b", "of", "a"), ("alone", "of", "alone")):
        data[edge].edge_index = torch.randint(0, NODES, (2, EDGES), generator=random)
        data[edge].edge_attr = values(EDGES, 2)
    return data


def same(one: Any, other: Any) -> None:
    """Stores have the same keys in the same order, and equal values of the same type."""
    assert str(one) == str(other)
    for mine, theirs in zip(one.stores, other.stores, strict=True):
        assert list(mine.keys()) == list(theirs.keys())
        for name, value in mine.items():
            assert type(value) is type(theirs[name]), name
            if isinstance(value, torch.Tensor):
                assert value.dtype == theirs[name].dtype and torch.equal(value, theirs[name]), name
                assert value.is_contiguous() == theirs[name].is_contiguous()
                assert value.requires_grad == theirs[name].requires_grad


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (homogeneous, {}),
        (homogeneous, {"prefetch": 2}),
        (homogeneous, {"subgraph_type": "induced"}),
        (homogeneous, {"subgraph_type": "bidirectional"}),
        (homogeneous, {"replace": True, "disjoint": True}),
        (homogeneous, {"transform": lambda batch: batch.to("cpu")}),
        (typed, {"input_nodes": "a"}),
        (typed, {"input_nodes": ("b", torch.arange(0, NODES, 3)), "prefetch": 2}),
    ],
)
def test_batches_of_nodes(make: Any, options: Any, reads: list[Any], monkeypatch: Any) -> None:
    data = make()
    options = {"batch_size": 64, "shuffle": True, "seed": 1, **options}
    ours = list(NeighborLoader(data, [4, 3], **options))
    assert reads
    monkeypatch.setattr(loaders, "read_by_engine", lambda data, out: data)
    monkeypatch.setattr(loaders, "join_edges", lambda data, out: out)
    for one, other in zip(ours, NeighborLoader(data, [4, 3], **options), strict=True):
        same(one, other)


@pytest.mark.parametrize("make", [homogeneous, typed])
def test_batches_of_links(make: Any, reads: list[Any], monkeypatch: Any) -> None:
    data = make()
    options = {"batch_size": 64, "shuffle": True, "seed": 1, "neg_sampling": "binary"}
    if make is typed:
        options["edge_label_index"] = ("a", "to", "b")
    ours = list(LinkNeighborLoader(data, [4, 3], **options))
    assert reads
    monkeypatch.setattr(loaders, "read_by_engine", lambda data, out: data)
    monkeypatch.setattr(loaders, "join_edges", lambda data, out: out)
    for one, other in zip(ours, LinkNeighborLoader(data, [4, 3], **options), strict=True):
        same(one, other)


@pytest.mark.parametrize("subgraph_type", ["directional", "bidirectional", "induced"])
def test_edges_are_the_engines_memory(subgraph_type: str, reads: list[Any]) -> None:
    options: dict[str, Any] = {"batch_size": 64, "seed": 1, "subgraph_type": subgraph_type}
    seen: list[Any] = []

    def keep(out: Any) -> Any:
        seen.append(out)
        return out

    shared = NeighborLoader(homogeneous(), [4, 3], **options)
    copied = NeighborLoader(homogeneous(), [4, 3], transform_sampler_output=keep, **options)
    for batch, other in zip(shared, copied, strict=True):
        assert type(batch.edge_index) is torch.Tensor and batch.edge_index.is_contiguous()
        assert torch.equal(batch.edge_index, other.edge_index)
        memory = batch.edge_index.untyped_storage().data_ptr()
        # Sources and targets of induced subgraphs do not follow each other.
        is_shared = memory == batch.n_id.untyped_storage().data_ptr()
        assert is_shared == (subgraph_type == "directional")
        # A transform may keep what it sees.
        row = seen[-1].row.clone()
        other.edge_index.add_(1)
        assert type(seen[-1].row) is torch.Tensor and torch.equal(seen[-1].row, row)


def test_pairs_of_other_tensors_are_stacked_by_torch() -> None:
    ends = torch.arange(8)
    row, col = ends[:4].as_subclass(batch_features._EngineTensor), ends[4:]
    assert torch.stack([row, col]).data_ptr() == ends.data_ptr()
    assert torch.stack([row, col], dim=1).tolist() == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert torch.stack([row, col, col]).shape == (3, 4)
    out = torch.zeros(2, 4, dtype=torch.int64)
    torch.stack([row, col], out=out)
    assert out.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert torch.stack([row, col.clone()]).data_ptr() != ends.data_ptr()


def test_which_arrays_are_read(reads: list[Any]) -> None:
    data = homogeneous()
    batch = next(iter(NeighborLoader(data, [4, 3], batch_size=64, seed=1)))
    shapes = {tuple(data[name].shape) for name in ("x", "y", "edge_attr", "half", "train_mask")}
    assert set(reads) == shapes and len(reads) == 5
    # What the engine does not read is as PyG has it: a gradient is not lost.
    batch.weight.sum().backward()
    assert data.weight.grad is not None and data.weight.grad.count_nonzero() > 0
    assert type(data.x) is torch.Tensor


def test_what_is_assigned_and_changed_counts_from_the_next_batch_on(reads: list[Any]) -> None:
    data = homogeneous()
    batches = iter(NeighborLoader(data, [4, 3], batch_size=64, seed=1))
    next(batches)
    data.x[:] = 1
    data.y = torch.arange(NODES) * 2
    batch = next(batches)
    assert torch.equal(batch.x, torch.ones_like(batch.x)) and torch.equal(batch.y, batch.n_id * 2)


def test_workers_and_few_rows_are_left_to_torch(reads: list[Any], monkeypatch: Any) -> None:
    data = homogeneous()
    del data.weight
    next(iter(NeighborLoader(data, [4], batch_size=64, num_workers=1, filter_per_worker=True)))
    assert not reads
    monkeypatch.setattr(batch_features, "_READ_BYTES", 1 << 30)
    next(iter(NeighborLoader(data, [4], batch_size=64)))
    assert not reads
