"""Batches as graphs of other libraries: every edge is the graph's, with its ids and features."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from partners import partner

import pygsampler as pgs
import pygsampler.torch as pgt

RNG = np.random.default_rng(3)
SRC, DST = RNG.integers(0, 50, 400), RNG.integers(0, 50, 400)
BUYS, RATED, KNOWS = ("u", "buys", "i"), ("i", "rated", "u"), ("u", "knows", "u")
TYPED = {
    BUYS: (RNG.integers(0, 20, 100), RNG.integers(0, 30, 100)),
    RATED: (RNG.integers(0, 30, 100), RNG.integers(0, 20, 100)),
    KNOWS: (RNG.integers(0, 20, 60), RNG.integers(0, 20, 60)),
}


def batch(frontier: str) -> Any:
    """A loader's batch, whose features are ids; a seed is there twice."""
    return next(
        iter(
            pgt.DataLoader(
                pgs.Graph.from_coo(SRC, DST, num_nodes=50),
                [3, 4, 4, 7],
                pgs.PGSampler([3, 2], seed=1, frontier=frontier),
                batch_size=4,
                features={"x": torch.arange(50.0)[:, None]},
                labels=torch.arange(50),
                edge_features={"w": torch.arange(400)},
            )
        )
    )


def typed_batch(frontier: str) -> Any:
    features = {kind: torch.arange(float(count))[:, None] for kind, count in COUNTS.items()}
    return next(
        iter(
            pgt.DataLoader(
                pgs.Graph.from_coo(TYPED, num_nodes={**COUNTS, "z": 4}),
                {"u": [1, 2, 3]},
                pgs.PGSampler([3, 2], seed=1, frontier=frontier),
                batch_size=3,
                features={"x": features},
            )
        )
    )


COUNTS = {"u": 20, "i": 30}


def edge_ids(batch: Any) -> list[int]:
    return sorted(int(edge) for block in batch.blocks for edge in block.edge_ids)


@pytest.mark.parametrize("frontier", ["all", "new"])
def test_pyg_has_all_edges_with_their_features(frontier: str) -> None:
    partner("torch_geometric")
    of = batch(frontier)
    data = of.to_pyg()
    assert data.validate()
    nodes, edges = data.n_id.numpy(), data.e_id.numpy()
    src, dst = data.edge_index.numpy()
    assert sorted(edges.tolist()) == edge_ids(of)
    assert (SRC[edges] == nodes[src]).all()
    assert (DST[edges] == nodes[dst]).all()
    assert (data.x[:, 0].numpy() == nodes).all()
    assert (data.w.numpy() == edges).all()
    assert data.batch_size == 3
    assert nodes[data.output_index.numpy()].tolist() == [3, 4, 4, 7] == data.y.tolist()


def test_factors_are_the_weights_of_edges() -> None:
    graph = pgs.Graph.from_coo(SRC, DST, num_nodes=50)
    of = pgs.PGSampler([2], seed=1, edge_weights="ht").sample(graph, [1, 2])
    weights = of.blocks[0].edge_weights.tolist()
    (matrix,) = of.to_scipy()
    assert matrix.data.tolist() == weights
    partner("torch_geometric")
    assert of.to_pyg().edge_weight.tolist() == weights
    partner("dgl")
    assert of.to_dgl()[0].edata["w"].tolist() == weights


def test_dgl_has_the_blocks() -> None:
    dgl = partner("dgl")
    of = batch("all")
    blocks = of.to_dgl()
    assert [block.num_dst_nodes() for block in blocks] == [b.num_dst_nodes for b in of.blocks]
    for theirs, block in zip(blocks, of.blocks, strict=True):
        u, v = theirs.edges(order="eid")
        edges = theirs.edata[dgl.EID].numpy()
        assert edges.tolist() == block.edge_ids.tolist()
        assert (theirs.srcdata[dgl.NID][u].numpy() == SRC[edges]).all()
        assert (theirs.dstdata[dgl.NID][v].numpy() == DST[edges]).all()
        assert (theirs.edata["w"].numpy() == edges).all()
    assert (blocks[0].srcdata["x"][:, 0] == blocks[0].srcdata[dgl.NID]).all()
    assert "y" not in blocks[0].srcdata
    with pytest.raises(ValueError, match=r"to_dgl: expected destinations first .*; frontier='all'"):
        batch("new").to_dgl()


@pytest.mark.parametrize("frontier", ["all", "new"])
def test_scipy_has_a_matrix_for_each_block(frontier: str) -> None:
    of = batch(frontier)
    for matrix, block in zip(of.to_scipy(), of.blocks, strict=True):
        count, first = block.num_src_nodes, block.dst_offset
        assert matrix.shape == (count, first + block.num_dst_nodes)
        x = torch.arange(float(count))[:, None]
        assert (matrix.T @ x.numpy())[first:].tolist() == block.sum(x).tolist()
        assert not (matrix.T @ x.numpy())[:first].any()


@pytest.mark.parametrize("frontier", ["all", "new"])
def test_networkx_has_original_ids(frontier: str) -> None:
    partner("networkx")
    for of in (
        batch(frontier),
        pgs.PGSampler([3, 2], frontier=frontier).sample(
            pgs.Graph.from_coo(SRC, DST, num_nodes=50), [3, 4, 7]
        ),
    ):
        theirs = of.to_networkx()
        assert sorted(theirs.nodes) == sorted(int(node) for node in of.input_nodes)
        found = [(u, v, *about.values()) for u, v, about in theirs.edges(data=True)]
        assert sorted(edge for *_, edge, _ in found) == edge_ids(of)
        assert all((SRC[edge], DST[edge]) == (u, v) for u, v, edge, _ in found)
        assert {v for _, v, _, hop in found if hop == 0} <= {3, 4, 7}


@pgs.program
def _induced(A: Any, seeds: Any) -> Any:
    return A.induce(seeds.unique())


@pytest.mark.parametrize("into", ["torch", "own"])
def test_a_subgraph_is_one_graph(into: str) -> None:
    dgl = partner("dgl")
    graph = pgs.Graph.from_coo(SRC, DST, num_nodes=50)
    of: Any = _induced().sample(graph, range(20))
    of = of.torch() if into == "torch" else of
    nodes, edges = list(range(20)), edge_ids(of)
    expected = sorted(e for e in range(400) if SRC[e] < 20 and DST[e] < 20)
    assert edges == expected
    theirs = of.to_dgl()
    u, v = theirs.edges(order="eid")
    ids = theirs.edata[dgl.EID].numpy()
    assert theirs.ndata[dgl.NID].tolist() == nodes
    assert (SRC[ids] == u.numpy()).all()
    assert (DST[ids] == v.numpy()).all()
    matrix = of.to_scipy()
    dense = np.zeros((20, 20))
    np.add.at(dense, (SRC[expected], DST[expected]), 1)
    assert (matrix.toarray() == dense).all()
    partner("networkx")
    assert of.to_networkx().number_of_edges() == len(expected)
    partner("torch_geometric")
    assert of.to_pyg().edge_index.shape == (2, len(expected))


@pytest.mark.parametrize("frontier", ["all", "new"])
def test_types_in_pyg_and_networkx(frontier: str) -> None:
    partner("torch_geometric")
    of = typed_batch(frontier)
    data = of.to_pyg()
    for kind, (src, dst) in TYPED.items():
        edges, index = data[kind].e_id.numpy(), data[kind].edge_index.numpy()
        assert sorted(edges.tolist()) == sorted(
            int(edge) for hop in of.blocks for edge in hop[kind].edge_ids
        )
        assert (src[edges] == data[kind[0]].n_id.numpy()[index[0]]).all()
        assert (dst[edges] == data[kind[2]].n_id.numpy()[index[1]]).all()
    for kind in COUNTS:
        assert data[kind].x[:, 0].tolist() == data[kind].n_id.tolist()
    assert (data["u"].batch_size, data["i"].batch_size, data["z"].num_nodes) == (3, 0, 0)
    partner("networkx")
    theirs = of.to_networkx()
    assert theirs.number_of_edges() == of.num_edges
    for u, v, about in theirs.edges(data=True):
        src, dst = TYPED[about["edge_type"]]
        assert (u[1], v[1]) == (src[about["edge_id"]], dst[about["edge_id"]])
    for matrices, hop in zip(of.to_scipy(), of.blocks, strict=True):
        for kind, matrix in matrices.items():
            assert matrix.nnz == hop[kind].num_edges
            assert matrix.shape[0] == hop[kind].num_src_nodes


def test_types_in_dgl() -> None:
    dgl = partner("dgl")
    of = typed_batch("all")
    blocks = of.to_dgl()
    for place, theirs in enumerate(blocks):
        for kind, (src, dst) in TYPED.items():
            u, v = theirs.edges(etype=kind, order="eid")
            edges = theirs.edges[kind].data[dgl.EID].numpy()
            assert edges.tolist() == of.blocks[place][kind].edge_ids.tolist()
            assert (theirs.srcnodes[kind[0]].data[dgl.NID][u].numpy() == src[edges]).all()
            assert (theirs.dstnodes[kind[2]].data[dgl.NID][v].numpy() == dst[edges]).all()
    assert blocks[0].srcnodes["i"].data["x"][:, 0].tolist() == of.input_nodes["i"].tolist()
    # The destinations of a block are the sources of the next.
    assert blocks[0].num_dst_nodes("u") == blocks[1].num_src_nodes("u")
    with pytest.raises(ValueError, match=r"to_dgl: expected destinations first .*; frontier='all'"):
        typed_batch("new").to_dgl()


@pytest.mark.parametrize("into", ["torch", "own"])
@pytest.mark.parametrize("seeds", [{"u": [2], "v": [0]}, {"v": [0], "z": [1]}, {"u": [2]}])
def test_blocks_of_dgl_have_the_sizes_of_its_own(seeds: dict[str, list[int]], into: str) -> None:
    dgl = partner("dgl")
    edges = {("u", "a", "v"): ([0, 1, 2], [0, 0, 1]), ("z", "b", "v"): ([0], [1])}
    counts = {"u": 3, "v": 2, "z": 2, "alone": 1}
    seeds = {**seeds, "alone": [0]}
    made = pgs.PGSampler([-1, -1]).sample(pgs.Graph.from_coo(edges, num_nodes=counts), seeds)
    ours = (made.torch() if into == "torch" else made).to_dgl()
    # DGL 1.1 leaves destinations of types that no relation enters out of the sources.
    into_all: dict[Any, Any] = {("v", f"no_{kind}", kind): ([], []) for kind in counts}
    graph = dgl.heterograph({**edges, **into_all}, num_nodes_dict=counts)
    ids = {kind: torch.tensor(each) for kind, each in seeds.items()}
    _, _, theirs = dgl.dataloading.MultiLayerFullNeighborSampler(2).sample_blocks(graph, ids)
    for block, expected in zip(ours, theirs, strict=True):
        for kind in counts:
            for side in ("srcnodes", "dstnodes"):
                found, right = (
                    getattr(each, side)[kind].data[dgl.NID].tolist() for each in (block, expected)
                )
                assert sorted(found) == sorted(right)
            assert block.num_src_nodes(kind) == expected.num_src_nodes(kind)
            assert block.num_dst_nodes(kind) == expected.num_dst_nodes(kind)
    for kind, each in seeds.items():
        assert ours[-1].dstnodes[kind].data[dgl.NID].tolist() == each


def test_a_subgraph_of_types_is_one_block_of_dgl() -> None:
    dgl = partner("dgl")
    edges = {("u", "a", "v"): ([0, 1, 2], [0, 0, 1]), ("v", "b", "u"): ([0, 1], [0, 2])}
    made: Any = pgs.samplers.HGTSampler([2, 2], seed=1).sample(
        pgs.Graph.from_coo(edges, num_nodes={"u": 3, "v": 2}), {"u": [2]}
    )
    (block,) = made.to_dgl()
    for kind, (src, dst) in edges.items():
        u, v = block.edges(etype=kind, order="eid")
        ids = block.edges[kind].data[dgl.EID].numpy()
        assert ids.tolist() == made.blocks[0][kind].edge_ids.tolist()
        assert (block.srcnodes[kind[0]].data[dgl.NID][u].numpy() == np.array(src)[ids]).all()
        assert (block.dstnodes[kind[2]].data[dgl.NID][v].numpy() == np.array(dst)[ids]).all()


def test_the_engines_own_batches_convert_too() -> None:
    partner("torch_geometric")
    graph = pgs.Graph.from_coo(TYPED, num_nodes=COUNTS)
    own = pgs.PGSampler([3], seed=2).sample(graph, {"u": [1, 5]})
    data, same = own.to_pyg(), own.torch().to_pyg()
    for kind in TYPED:
        assert data[kind].edge_index.tolist() == same[kind].edge_index.tolist()
    plain = pgs.PGSampler([3], seed=2).sample(pgs.Graph.from_coo(SRC, DST), [1, 5])
    assert plain.to_pyg().edge_index.tolist() == plain.torch().to_pyg().edge_index.tolist()


@pytest.mark.parametrize("disjoint", [False, True])
def test_pyg_has_the_attributes_of_its_own_loader(disjoint: bool) -> None:
    data_of, pyg = partner("torch_geometric.data"), partner("pygsampler.pyg")
    data = data_of.Data(edge_index=torch.tensor(np.array([SRC, DST])), num_nodes=50)
    loader = pyg.NeighborLoader(
        data, [2, 3], input_nodes=torch.tensor([3, 4, 7]), batch_size=3, disjoint=disjoint, seed=1
    )
    loader.set_epoch(0)
    theirs = next(iter(loader))
    sampler = pgs.PGSampler([3, 2], seed=1, frontier="new", disjoint=disjoint)
    ours = sampler.sample(pgs.Graph.from_coo(SRC, DST, num_nodes=50), [3, 4, 7]).to_pyg()
    names = {"n_id", "e_id", "edge_index", "batch_size", "num_sampled_nodes", "num_sampled_edges"}
    for name in names | ({"batch"} if disjoint else set()):
        found, expected = getattr(ours, name), getattr(theirs, name)
        assert type(found) is type(expected) and len(torch.as_tensor(found).shape) == len(
            torch.as_tensor(expected).shape
        )
    assert len(ours.num_sampled_nodes) == 3 and sum(ours.num_sampled_nodes) == ours.num_nodes
    assert len(ours.num_sampled_edges) == 2 and sum(ours.num_sampled_edges) == len(ours.e_id)
    assert ("batch" in ours) == disjoint
    trimmed = partner("torch_geometric.utils").trim_to_layer(
        1, ours.num_sampled_nodes, ours.num_sampled_edges, ours.n_id[:, None], ours.edge_index
    )
    kept = sum(ours.num_sampled_nodes[:-1])
    assert trimmed[0].shape == (kept, 1) and int(trimmed[1].max()) < kept


@pgs.program
def shares(A: Any, seeds: Any) -> Any:
    blocks: list[Any] = []
    for _ in range(2):
        C = A[:, seeds]
        B = C.individual_sample(2, C)
        blocks.insert(0, {"w": B * 2, "share": B.div(C.sum(axis=0))})
        seeds = seeds | B.row()
    return blocks, {"degree": A.degree()}


def weighted(weights: np.ndarray) -> pgs.Graph:
    return pgs.Graph.from_coo(SRC, DST, num_nodes=50, edge_data={"w": weights})


def test_values_of_programs_are_edges_data() -> None:
    weights = RNG.uniform(1, 2, 400).astype(np.float32)
    of = shares(weight="w", seed=1).sample(weighted(weights), [3, 4, 4, 7])
    total = np.bincount(DST, weights, minlength=50)
    dgl = partner("dgl")
    for block in of.to_dgl():
        ids = block.edata[dgl.EID].numpy()
        assert block.edata["w"].numpy() == pytest.approx(2 * weights[ids])
        assert block.edata["share"].numpy() == pytest.approx(weights[ids] / total[DST[ids]])
    partner("torch_geometric")
    data = of.to_pyg()
    ids = data.e_id.numpy()
    assert data.edge_weight.numpy() == pytest.approx(2 * weights[ids])
    assert data.share.numpy() == pytest.approx(weights[ids] / total[DST[ids]])
    assert data.num_sampled_nodes == of.num_sampled_nodes
    assert data.num_sampled_edges == of.num_sampled_edges and sum(data.num_sampled_edges) == len(
        ids
    )


def test_values_of_some_blocks_alone() -> None:
    @pgs.program
    def uneven(A: Any, seeds: Any) -> Any:
        B = A[:, seeds].individual_sample(2)
        D = A[:, B.row()].individual_sample(2)
        return [D, {"w": B * 3, "twice": B * 2}]

    partner("torch_geometric")
    of = uneven(seed=1).sample(pgs.Graph.from_coo(SRC, DST, num_nodes=50), [3])
    with pytest.raises(ValueError, match="to_pyg: expected values 'twice' of the edges of all"):
        of.to_pyg()

    @pgs.program
    def factors(A: Any, seeds: Any) -> Any:
        B = A[:, seeds].individual_sample(2)
        return [A[:, B.row()].individual_sample(2), B * 3]

    of = factors(seed=1).sample(pgs.Graph.from_coo(SRC, DST, num_nodes=50), [3])
    outer, inner = (block.num_edges for block in of.blocks)
    assert of.to_pyg().edge_weight.tolist() == [3.0] * inner + [1.0] * outer


def test_a_subgraph_has_no_hops_in_pyg() -> None:
    @pgs.program
    def around(A: Any, seeds: Any) -> Any:
        return A.induce(seeds.unique() | A[:, seeds].row())

    partner("torch_geometric")
    data = around(seed=1).sample(pgs.Graph.from_coo(SRC, DST, num_nodes=50), [3, 4]).to_pyg()
    nodes = set(data.n_id.tolist())
    among = [e for e in range(400) if {int(SRC[e]), int(DST[e])} <= nodes]
    assert sorted(data.e_id.tolist()) == among and "num_sampled_nodes" not in data


def test_types_in_pyg_have_the_numbers_of_hops() -> None:
    partner("torch_geometric")
    of = pgs.PGSampler([3, 2], seed=1, frontier="new", disjoint=True).sample(
        pgs.Graph.from_coo(TYPED, num_nodes=COUNTS), {"u": [1, 2, 3]}
    )
    data = of.to_pyg()
    for kind in COUNTS:
        assert data[kind].num_sampled_nodes == of.num_sampled_nodes[kind]
        assert data[kind].batch.tolist() == of.subgraph_ids[kind].tolist()
    for kind in TYPED:
        assert data[kind].num_sampled_edges == of.num_sampled_edges[kind]
