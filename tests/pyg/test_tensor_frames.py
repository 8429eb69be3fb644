"""``TensorFrame`` of PyTorch Frame in ``data[type].tf``: batches have PyG's rows of them."""

from __future__ import annotations

from typing import Any

import pytest
from partners import partner

torch = partner("torch")
partner("torch_geometric")
torch_frame = partner("torch_frame")

from torch_frame.data import MultiEmbeddingTensor, MultiNestedTensor  # noqa: E402
from torch_geometric import loader as theirs  # noqa: E402
from torch_geometric.data import Data, HeteroData  # noqa: E402

from pygsampler.pyg import LinkNeighborLoader, NeighborLoader, PGSampler, batch_features  # noqa: E402

NODES, EDGES = 200, 3000
stype = torch_frame.stype


def frame(rows: int, seed: int, embedded: bool = True) -> Any:
    """A frame with all kinds of tensors: by row, embeddings, nested ones and a dict of those."""
    random = torch.Generator().manual_seed(seed)
    numbers = torch.randn(rows, 3, generator=random)
    numbers[::7, 1] = float("nan")
    nested = MultiNestedTensor.from_tensor_mat(
        [[torch.arange(i % 4), torch.arange(i % 3)] for i in range(rows)]
    )
    words = MultiNestedTensor.from_tensor_mat([[torch.arange(1 + i % 5)] for i in range(rows)])
    features: dict[Any, Any] = {
        stype.numerical: numbers,
        stype.categorical: torch.randint(-1, 9, (rows, 2), generator=random),
        stype.timestamp: torch.randint(0, 60, (rows, 1, 7), generator=random),
        stype.multicategorical: nested,
        stype.text_tokenized: {"input_ids": words},
    }
    names = {
        stype.numerical: ["a", "b", "c"],
        stype.categorical: ["d", "e"],
        stype.timestamp: ["t"],
        stype.multicategorical: ["m", "n"],
        stype.text_tokenized: ["words"],
    }
    if embedded:
        parts = [torch.randn(rows, width, generator=random) for width in (4, 2)]
        features[stype.embedding] = MultiEmbeddingTensor.from_tensor_list(parts)
        names[stype.embedding] = ["f", "g"]
    return torch_frame.TensorFrame(features, names, y=torch.arange(rows))


def edges(seed: int) -> Any:
    return torch.randint(0, NODES, (2, EDGES), generator=torch.Generator().manual_seed(seed))


def homogeneous() -> Any:
    return Data(tf=frame(NODES, 0), edge_index=edges(0))


def typed() -> Any:
    data = HeteroData()
    for seed, kind in enumerate(("a", "b", "alone")):
        data[kind].tf = frame(NODES, seed, embedded=kind != "b")
    for seed, edge in enumerate((("a", "to", "b"), ("b", "of", "a"), ("alone", "of", "alone"))):
        data[edge].edge_index = edges(seed)
    return data


@pytest.fixture(params=["engine", "torch"])
def read(request: Any, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The shapes that the engine reads: of all arrays, or of none, as their rows are few."""
    found: list[Any] = []
    read_many = batch_features.read_many

    def noted(wanted: Any, **options: Any) -> Any:
        found.extend(features.shape for features, _ in wanted)
        return read_many(wanted, **options)

    monkeypatch.setattr(batch_features, "read_many", noted)
    monkeypatch.setattr(batch_features, "_READ_BYTES", 0 if request.param == "engine" else 1 << 40)
    return found


def same_frames(one: Any, other: Any) -> None:
    assert one == other and one.col_names_dict == other.col_names_dict
    assert list(one.feat_dict) == list(other.feat_dict)
    for kind, mine in one.feat_dict.items():
        assert type(mine) is type(other.feat_dict[kind]), kind
        if isinstance(mine, MultiEmbeddingTensor):
            assert type(mine.values) is torch.Tensor and mine.num_rows == len(one)
            assert torch.equal(mine.values, other.feat_dict[kind].values)
        elif isinstance(mine, torch.Tensor):
            assert type(mine) is torch.Tensor and mine.dtype == other.feat_dict[kind].dtype
            assert torch.equal(mine.nan_to_num(-7), other.feat_dict[kind].nan_to_num(-7))
    assert type(one.y) is torch.Tensor and torch.equal(one.y, other.y)


@pytest.mark.parametrize("make", [homogeneous, typed])
@pytest.mark.parametrize("links", [False, True])
def test_batches_have_the_rows_that_pygs_loader_has(
    make: Any, links: bool, read: list[Any], request: Any
) -> None:
    data = make()
    options: dict[str, Any] = {"batch_size": 32, "shuffle": False}
    of_type = make is typed
    if links:
        options |= {
            "edge_label_index": ("a", "to", "b") if of_type else None,
            "neg_sampling": "binary",
        }
    else:
        options |= {"input_nodes": "a" if of_type else None}
    loaders = (
        (LinkNeighborLoader, theirs.LinkNeighborLoader)
        if links
        else (NeighborLoader, theirs.NeighborLoader)
    )
    batches = []
    for kind in loaders:
        # PyG's own loader draws with the same sampler: its rows are looked up by PyG alone.
        sampler = PGSampler(data, [4, 3], seed=1)
        sampler.set_epoch(0)
        torch.manual_seed(2)
        batches.append(list(kind(data, [4, 3], neighbor_sampler=sampler, **options)))
    for one, other in zip(*batches, strict=True):
        if not of_type:
            assert torch.equal(one.n_id, other.n_id)
            same_frames(one.tf, other.tf)
            same_frames(one.tf, data.tf[one.n_id])
            continue
        for name in data.node_types:
            assert torch.equal(one[name].n_id, other[name].n_id)
            same_frames(one[name].tf, other[name].tf)
            if len(one[name].n_id):
                same_frames(one[name].tf, data[name].tf[one[name].n_id])
    shapes = set(read)
    assert bool(shapes) == ("engine" in request.node.name)
    if shapes:
        # By row: numbers, categories, times, embeddings and y; nested ones are left to torch.
        assert shapes == {(NODES, 3), (NODES, 2), (NODES, 1, 7), (NODES, 6), (NODES,)}


def test_frames_of_data_are_left_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_features, "_READ_BYTES", 0)
    data = homogeneous()
    before = {kind: id(value) for kind, value in data.tf.feat_dict.items()}
    next(iter(NeighborLoader(data, [4], batch_size=8, seed=1)))
    assert before == {kind: id(value) for kind, value in data.tf.feat_dict.items()}
    assert type(data.tf.feat_dict[stype.embedding].values) is torch.Tensor
    assert type(data.tf.y) is torch.Tensor


def test_data_with_another_number_of_rows_is_refused() -> None:
    data = typed()
    loader = NeighborLoader(data, [4, 3], input_nodes="a", batch_size=8, seed=1)
    data["b"].tf = frame(NODES + 1, 1)
    with pytest.raises(ValueError, match=r"data\['b'\]: expected 200 nodes .* got 201"):
        next(iter(loader))


def test_batches_in_workers_have_frames() -> None:
    data = homogeneous()
    options: dict[str, Any] = {"batch_size": 64, "seed": 1, "shuffle": True}
    alone = list(NeighborLoader(data, [4, 3], **options))
    worked = NeighborLoader(data, [4, 3], num_workers=1, **options)
    for one, other in zip(alone, worked, strict=True):
        same_frames(one.tf, other.tf)
