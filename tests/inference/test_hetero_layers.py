"""``inference`` with layers on the blocks of a heterogeneous graph."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from inference_cases import torch

import pygsampler as pgs

inference = functools.partial(pgs.inference, progress=False)
SIZES = {"paper": 60, "author": 45, "field": 6}
EDGE_TYPES = {
    ("paper", "cites", "paper"): 300,
    ("author", "writes", "paper"): 200,
    ("paper", "written", "author"): 200,
    ("author", "knows", "author"): 0,
    ("field", "has", "author"): 100,
}
WIDTH = 4


def edges() -> dict[Any, Any]:
    random = torch.Generator().manual_seed(0)
    return {
        kind: tuple(torch.randint(SIZES[end], (count,), generator=random) for end in kind[::2])
        for kind, count in EDGE_TYPES.items()
    }


def graph() -> Any:
    return pgs.Graph.from_coo(edges(), num_nodes=SIZES)


def inputs() -> dict[str, Any]:
    random = torch.Generator().manual_seed(1)
    return {kind: torch.randn(count, WIDTH, generator=random) for kind, count in SIZES.items()}


class Layer(torch.nn.Module):
    """R-GCN of the examples: the rows of a node and, by relation, the mean of its neighbors'."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.own = torch.nn.Linear(inputs, outputs)
        self.of = torch.nn.ModuleList(torch.nn.Linear(inputs, outputs) for _ in EDGE_TYPES)

    def forward(self, hop: Any, h: Any) -> Any:
        result = {kind: self.own(h["field"]) for kind in ["field"]}
        for (edge_type, block), weight in zip(hop.items(), self.of, strict=True):
            src, _, dst = edge_type
            assert block.num_src_nodes == len(h[src])
            if dst not in result:
                result[dst] = self.own(h[dst][: block.num_dst_nodes])
            result[dst] = result[dst] + block.mean(weight(h[src]))
        return result


class Relations(Layer):
    """The same without a row for fields, which have no in-edges."""

    def forward(self, hop: Any, h: Any) -> Any:
        return {kind: rows for kind, rows in super().forward(hop, h).items() if kind != "field"}


def relu(h: Any) -> Any:
    return {kind: rows.relu() for kind, rows in h.items()}


def plain(layer: Any, h: Any) -> Any:
    """A layer by matrices of the relations."""
    result = {kind: layer.own(rows) for kind, rows in h.items()}
    for (kind, (src, dst)), weight in zip(edges().items(), layer.of, strict=True):
        matrix = torch.zeros(SIZES[kind[2]], SIZES[kind[0]])
        matrix.index_put_((dst, src), torch.ones(1), accumulate=True)
        mean = matrix @ weight(h[kind[0]]) / matrix.sum(1, keepdim=True).clamp(min=1)
        result[kind[2]] = result[kind[2]] + mean
    return result


@pytest.mark.parametrize("memory", [None, 3000])
@pytest.mark.parametrize("batch_size", [None, 1, 7, 100])
def test_layers_equal_products_of_matrices(batch_size: int | None, memory: int | None) -> None:
    first, last = Layer(WIDTH, 8), Relations(8, 3)
    rows = inference([first, relu, last], graph(), inputs(), batch_size=batch_size, memory=memory)
    with torch.no_grad():
        expected = plain(last, relu(plain(first, inputs())))
    assert set(rows) == {"paper", "author"}
    for kind, each in rows.items():
        torch.testing.assert_close(each, expected[kind], rtol=1e-4, atol=1e-5)


def test_blocks_name_their_nodes() -> None:
    seen: dict[str, list[int]] = {kind: [] for kind in SIZES}

    def layer(blocks: Any, x: Any) -> Any:
        for (src, name, dst), block in blocks.items():
            assert torch.equal(x[src][:, 0].long(), block.src_nodes)
            assert torch.equal(x[dst][: block.num_dst_nodes, 0].long(), block.dst_nodes)
            sources, targets = block.coo()
            known = edges()[src, name, dst]
            assert torch.equal(block.src_nodes[sources], known[0][block.edge_ids])
            assert torch.equal(block.dst_nodes[targets], known[1][block.edge_ids])
            if name in ("cites", "written"):
                seen[dst] += block.dst_nodes.tolist()
        cites, written = blocks["cites"], blocks["written"]
        return {
            "paper": x["paper"][: cites.num_dst_nodes],
            "author": x["author"][: written.num_dst_nodes],
        }

    ids = {kind: torch.arange(count)[:, None].float() for kind, count in SIZES.items()}
    for batch_size in (None, 1, 13):
        for nodes in seen.values():
            nodes.clear()
        rows = inference(layer, graph(), ids, batch_size=batch_size)
        assert seen == {"paper": [*range(60)], "author": [*range(45)], "field": []}
        for kind in ("paper", "author"):
            assert torch.equal(rows[kind], ids[kind])


def test_rows_equal_those_of_batches_with_all_neighbors() -> None:
    layer = Relations(WIDTH, 3)
    rows = inference(layer, graph(), inputs(), batch_size=11)
    seeds = {kind: torch.arange(SIZES[kind]) for kind in ("paper", "author")}
    batch = pgs.PGSampler([-1]).sample(graph(), seeds).torch()
    x = {kind: inputs()[kind][ids] for kind, ids in batch.input_nodes.items()}
    with torch.no_grad():
        expected = layer(batch.blocks[0], x)
    for kind, each in rows.items():
        torch.testing.assert_close(each, expected[kind], rtol=1e-4, atol=1e-5)


def test_results_go_where_they_are_asked_for(tmp_path: Any) -> None:
    numpy = pytest.importorskip("numpy", reason="needs NumPy")
    layer = Relations(WIDTH, 3)
    expected = inference(layer, graph(), inputs())
    out = {"paper": torch.empty(60, 3), "author": tmp_path / "author.npy"}
    rows = inference(layer, graph(), inputs(), out=out, batch_size=20)
    assert rows["paper"] is out["paper"]
    torch.testing.assert_close(rows["paper"], expected["paper"])
    authors = torch.from_numpy(numpy.load(rows["author"]))
    torch.testing.assert_close(authors, expected["author"])


@pytest.mark.parametrize("batch_size", [None, 20])
def test_a_result_may_take_the_place_of_the_features(batch_size: int | None) -> None:
    layer = Relations(WIDTH, WIDTH)
    expected = inference(layer, graph(), inputs(), batch_size=batch_size)
    x = inputs()
    rows = inference(layer, graph(), x, out=x, batch_size=batch_size)
    for kind, each in expected.items():
        assert rows[kind] is x[kind] and torch.equal(each, x[kind])
    assert torch.equal(x["field"], inputs()["field"])


@pytest.mark.parametrize("batch_size", [None, 20])
def test_functions_in_place_leave_the_features(batch_size: int | None) -> None:
    x, layer = inputs(), Relations(WIDTH, 3)

    def relu_in_place(h: Any) -> Any:
        return {kind: rows.relu_() for kind, rows in h.items()}

    rows = inference([relu_in_place, layer], graph(), x, batch_size=batch_size)
    expected = inference([layer], graph(), relu(x), batch_size=batch_size)
    for kind, each in inputs().items():
        assert torch.equal(x[kind], each)
    for kind, each in rows.items():
        torch.testing.assert_close(each, expected[kind])


@pytest.mark.parametrize("batch_size", [None, 1, 20])
def test_functions_of_rows_stand_at_the_head_of_a_list(batch_size: int | None) -> None:
    layer = Relations(WIDTH, 3)
    for memory in (None, 3000):
        options = {"batch_size": batch_size, "memory": memory}
        rows = inference([relu, layer], graph(), inputs(), **options)
        expected = inference(layer, graph(), relu(inputs()), **options)
        for kind, each in rows.items():
            torch.testing.assert_close(each, expected[kind])
        rows = inference([relu], graph(), inputs(), **options)
        for kind, each in relu(inputs()).items():
            assert torch.equal(rows[kind], each)


@pytest.mark.parametrize("batch_size", [None, 2])
def test_a_type_without_nodes_has_rows(batch_size: int | None) -> None:
    ends = torch.tensor([0, 1]), torch.tensor([1, 2])
    none = torch.tensor([], dtype=torch.int64)
    kinds = ("a", "to", "a"), ("b", "to", "a"), ("a", "to", "b")
    empty = pgs.Graph.from_coo(
        {kinds[0]: ends, kinds[1]: (none, none), kinds[2]: (none, none)},
        num_nodes={"a": 5, "b": 0},
    )

    def layer(blocks: Any, x: Any) -> Any:
        own, into_a, into_b = (blocks[kind] for kind in kinds)
        return {"a": own.sum(x["a"]) + into_a.sum(x["b"]), "b": into_b.sum(x["a"])}

    x = {"a": torch.ones(5, 3), "b": torch.ones(0, 3)}
    rows = inference([layer, layer], empty, x, batch_size=batch_size)
    assert rows["b"].shape == (0, 3)
    assert rows["a"].sum(1).tolist() == [0, 0, 3, 0, 0]


@pytest.mark.parametrize("batch_size", [None, 7])
def test_types_without_features_may_have_rows(batch_size: int | None) -> None:
    def layer(blocks: Any, x: Any) -> Any:
        rows = {"paper": blocks["cites"].sum(x["paper"])}
        if "author" in x:
            rows["paper"] = rows["paper"] + blocks["writes"].sum(x["author"])
        return {**rows, "author": blocks["written"].sum(x["paper"])}

    papers = {"paper": inputs()["paper"]}
    nothing = {"author": torch.zeros(SIZES["author"], WIDTH)}
    rows = inference([layer, layer], graph(), papers, batch_size=batch_size)
    expected = inference([layer, layer], graph(), {**papers, **nothing}, batch_size=batch_size)
    assert set(rows) == {"paper", "author"}
    for kind, each in rows.items():
        torch.testing.assert_close(each, expected[kind])


def test_unsuitable_arguments_are_refused(tmp_path: Any) -> None:
    def three(blocks: Any, x_src: Any, x_dst: Any) -> Any:
        return x_dst

    with pytest.raises(TypeError, match="heterogeneous graph"):
        inference(three, graph(), inputs())
    with pytest.raises(ValueError, match="resume"):
        inference(Layer(WIDTH, 3), graph(), inputs(), resume=tmp_path / "layers")
    with pytest.raises(TypeError, match="mapping of node types"):
        inference(lambda blocks, x: x["paper"], graph(), inputs())
    with pytest.raises(ValueError, match="out: expected node types of"):
        inference(Layer(WIDTH, 3), graph(), inputs(), out={"papers": torch.empty(60, 3)})
    with pytest.raises(ValueError, match="a row for each of 60"):
        inference(lambda blocks, x: {"paper": x["field"]}, graph(), inputs())
