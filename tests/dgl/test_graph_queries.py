"""Our blocks answer what DGL's blocks of the same edges answer, and no question changes others."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import dgl
import numpy
import pytest
import torch

from pygsampler.dgl import PGSampler
from tests.dgl.block_pairs import BLOCKS, KINDS, outcome, pair_of
from tests.dgl.comparable import plain
from tests.dgl.graph_queries import FUNCTIONS, METHODS, OF_GRAPHS, Question
from tests.dgl.graphs import DTYPES, random_graph

OLD = dgl.__version__.startswith("1.")

# ---- what DGL refuses, of blocks of its own too -------------------------------------------------

# A block may not be changed into something that is none, or has two types of nodes.
REFUSED: dict[str, type] = {
    **dict.fromkeys(
        [
            *("add_nodes", "add_self_loop", "batch_num_nodes", "clone", "edge_subgraph"),
            *("edge_ids missing", "find_edges beyond", "in_subgraph", "in_subgraph relabeled"),
            *("khop_in_subgraph", "khop_out_subgraph", "node_type_subgraph", "nodes"),
            *("out_subgraph", "out_subgraph relabeled", "remove_nodes", "remove_self_loop"),
            *("reorder_graph", "reverse", "reverse with edata", "sample_etype_neighbors"),
            *("subgraph", "to_cugraph", "to_simple", "to_simple mapping"),
            *("adj_product_graph", "batch", "compact_graphs", "load_graphs", "node_subgraph"),
            *("random_walk", "slice_batch of two", "to_block of dst", "to_heterogeneous"),
            *("to_simple_graph", "unbatch of two"),
        ],
        dgl.DGLError,
    ),
    **dict.fromkeys(
        [
            *("inc both", "line_graph", "khop_adj", "khop_graph"),
            *("add_reverse_edges", "add_reverse_edges bipartite"),
        ],
        AssertionError,
    ),
    **dict.fromkeys(["lap_pe", "laplacian_pe", "svd_pe"], ValueError),
    "linkx_homophily": KeyError,
    "node_homophily": AttributeError,
}
if OLD:
    REFUSED |= {"to_networkx": dgl.DGLError, "to_networkx data": dgl.DGLError}
    # It has no native code for the sparse matrices of a torch that is newer.
    REFUSED |= {"adj": FileNotFoundError, "adjacency_matrix": FileNotFoundError}

# Questions that take sources and destinations for the same nodes if their numbers are equal.
UNLIKE_A_SQUARE: dict[str, type] = {
    **dict.fromkeys(
        [
            *("bfs_edges_generator", "bfs_nodes_generator", "dfs_edges_generator"),
            *("dfs_labeled_edges_generator", "metapath_reachable_graph"),
            *("to_homogeneous with data", "topological_nodes_generator"),
        ],
        dgl.DGLError,
    ),
    "double_radius_node_labeling": IndexError,
    "random_walk_pe": ValueError,
    "shortest_dist": ValueError,
}
WITH_LOOPS: dict[str, type] = {"topological_nodes_generator": dgl.DGLError}
WITHOUT_EDGES: dict[str, type] = {
    **dict.fromkeys(
        ["laplacian_lambda_max", "to_homogeneous", "to_homogeneous with data"], TypeError
    ),
    **dict.fromkeys(["to_networkx", "to_networkx data"], TypeError),
    **dict.fromkeys(
        [
            *("sample_neighbors_biased", "sort_csc_by_tag", "sort_csc_by_tag edges"),
            *("sort_csr_by_tag", "sort_csr_by_tag edges"),
        ],
        IndexError,
    ),
}
REFUSED_ON: dict[str, dict[str, type]] = {"square": WITH_LOOPS, "no edges": WITHOUT_EDGES}

# ---- what is not asked here ---------------------------------------------------------------------

IN_TEST_DGL_MESSAGES = {
    *("apply_edges", "broadcast_edges", "copy_u", "copy_v", "filter_edges", "multi_update_all"),
    *("prop_edges", "prop_nodes", "pull", "push", "send_and_recv", "softmax_edges", "sum_edges"),
    *("topk_edges", "u_add_v", "u_div_v", "u_dot_v", "u_mul_v", "u_sub_v", "update_all"),
}
NEED_CUDA = {"pin_memory_", "record_stream", "unpin_memory_"}
# Given a block of its own, DGL reads beyond its arrays, and the process may end.
CRASH = {"metis_partition", "metis_partition_assignment", "partition_graph_with_halo"}
# Messages along the generators that are asked.
ALONG_GENERATORS = {"prop_edges_dfs", "prop_nodes_bfs", "prop_nodes_topo"}

SINCE_DGL_2 = {
    *("adjusted_homophily", "edge_label_informativeness", "materialize_data"),
    "node_label_informativeness",
}
QUESTIONS = {
    name: question
    for name, question in {**METHODS, **FUNCTIONS}.items()
    if not (OLD and name in SINCE_DGL_2)
}


def takes_a_graph(name: str, function: Any) -> bool:
    if name.startswith("_") or isinstance(function, type) or not callable(function):
        return False
    try:
        first = next(iter(signature(function).parameters), None)
    except ValueError:
        return False
    return first in ("g", "G", "graph", "graphs", "block", "A")


def test_everything_is_asked() -> None:
    """Fails if another version of DGL has a question that nobody has looked at."""
    methods = {name for name in dir(dgl.DGLGraph) if not name.startswith("_")}
    functions = {
        name
        for module in (dgl, dgl.sampling)
        for name, value in vars(module).items()
        if takes_a_graph(name, value)
    }
    asked = {name.split()[0] for name in QUESTIONS if not name.startswith("__")}
    elsewhere = IN_TEST_DGL_MESSAGES | NEED_CUDA | CRASH | ALONG_GENERATORS
    assert not asked & elsewhere
    # Its first parameter is the name of a file.
    assert asked | elsewhere == methods | functions | {"load_graphs"}
    assert set(REFUSED) | set(UNLIKE_A_SQUARE) | set(WITHOUT_EDGES) <= set(QUESTIONS)


def test_blocks_are_what_their_kinds_are_called() -> None:
    assert {kind for kind, _ in BLOCKS} == set(KINDS)
    blocks = {kind: pair_of(kind).ours for kind in KINDS}
    for kind, block in blocks.items():
        degrees = block.in_degrees()
        edges = list(zip(*(ids.tolist() for ids in block.edges()), strict=True))
        assert kind != "parallel" or len(set(edges)) < len(edges)
        assert (block.num_src_nodes() == block.num_dst_nodes()) == (kind in ("square", "no edges"))
        assert (block.num_edges() == 0) == (kind == "no edges")
        assert bool((degrees > 0).all()) == (kind == "all have edges")
        seeds = block.dstdata[dgl.NID]
        assert (len(seeds.unique()) < len(seeds)) == (kind == "repeated seeds")
    assert blocks["outer"].dstdata[dgl.NID].equal(blocks["inner"].srcdata[dgl.NID])


def answer(question: Question, block: Any) -> Any:
    """Returns the answer in plain values; the class of an error is an answer too."""
    dgl.seed(0)
    torch.manual_seed(0)
    numpy.random.seed(0)
    return outcome(lambda: plain(question(block)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question(name: str) -> None:
    for kind, dtype in BLOCKS:
        pair = pair_of(kind, dtype)
        ours, theirs = (answer(QUESTIONS[name], block) for block in pair)
        refused = REFUSED.get(name, REFUSED_ON.get(kind, UNLIKE_A_SQUARE).get(name))
        if refused is None:
            assert not isinstance(theirs, type), (kind, dtype, theirs)
        else:
            assert theirs is refused, (kind, dtype)
        assert ours == theirs, (kind, dtype)


@pytest.mark.parametrize("name", OF_GRAPHS)
def test_a_question_to_the_graph_of_a_block(name: str) -> None:
    for kind, dtype in BLOCKS:
        ours, theirs = (
            answer(OF_GRAPHS[name], dgl.block_to_graph(block)) for block in pair_of(kind, dtype)
        )
        # Its to_homogeneous fails without edges.
        refused = TypeError if (name, kind) == ("line_graph", "no edges") else None
        assert isinstance(theirs, type) == (refused is not None), (kind, dtype, theirs)
        assert ours == theirs, (kind, dtype)


# ---- what a question changes --------------------------------------------------------------------


def batch_of(g: Any, fanouts: list[int]) -> tuple[torch.Tensor, torch.Tensor, list[Any]]:
    """The same batch by every call."""
    sampler = PGSampler(fanouts, seed=1)
    sampler.set_epoch(0)
    return sampler.sample(g, torch.arange(g.num_nodes() // 2, dtype=g.idtype))


def arrays(block: Any) -> list[torch.Tensor]:
    """Returns copies of a block's arrays, with its CSC as it lies in memory."""
    frames = [*block._node_frames, *block._edge_frames]
    columns = [value for frame in frames for _, value in sorted(frame.items())]
    return [array.clone() for array in (*block.adj_tensors("csc"), *columns)]


def same(blocks: list[Any], before: list[list[torch.Tensor]]) -> bool:
    return all(
        array.equal(old)
        for block, olds in zip(blocks, before, strict=True)
        for array, old in zip(arrays(block), olds, strict=True)
    )


def check_nothing_else_changed(g: Any, fanouts: list[int], change: Callable[[Any], None]) -> None:
    """Apart from the outer block of a batch, to which ``change`` is made, nothing is changed: not
    its neighbour, nor the same batch of another call, nor of a later one."""
    kept, used = batch_of(g, fanouts), batch_of(g, fanouts)
    before = [arrays(block) for block in kept[2]]
    assert same(used[2], before)
    change(used[2][0])
    assert same(used[2][1:], before[1:])
    assert used[0].equal(kept[0])
    assert same(kept[2], before)
    assert same(batch_of(g, fanouts)[2], before)
    for block in batch_of(g, fanouts[1:])[2]:
        assert block.adj_tensors("csc")[2].equal(torch.arange(block.num_edges()).to(g.idtype))


@pytest.mark.filterwarnings("ignore")
def test_questions_change_no_other_block() -> None:
    g = random_graph(60, 240)
    kept = batch_of(g, [4, 3])[2]
    before = [arrays(block) for block in kept]
    for name, question in QUESTIONS.items():
        used = batch_of(g, [4, 3])[2]
        assert same(used, before), name
        answer(question, used[0])
        assert same(used[1:], before[1:]), name
        assert same(kept, before), name


# Few edges and many: their ids come from different places.
SIZES = [(60, 240), (3000, 40000)]


@pytest.mark.parametrize(("nodes", "edges"), SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_negative_sampling_sorts_one_block(nodes: int, edges: int, dtype: torch.dtype) -> None:
    """DGL sorts the CSC, in place on the CPU; the edges keep their ids."""

    def sample_negatives(block: Any) -> None:
        indptr, indices, _ = (array.clone() for array in block.adj_tensors("csc"))
        rows = torch.arange(block.num_dst_nodes()).repeat_interleave(indptr.diff().long())
        dgl.sampling.global_uniform_negative_sampling(block, 10)
        after = block.adj_tensors("csc")
        assert not after[1].equal(indices), "it was in order before: that shows nothing"
        assert after[1].equal(indices[after[2].long()])
        u, v = block.edges(order="eid")
        assert u.equal(indices)
        assert v.equal(rows.to(dtype))

    g = random_graph(nodes, edges, dtype=dtype)
    check_nothing_else_changed(g, [10, 10], sample_negatives)


@pytest.mark.parametrize(("nodes", "edges"), SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_of_a_block_are_its_own(nodes: int, edges: int, dtype: torch.dtype) -> None:
    def overwrite(block: Any) -> None:
        for array in block.adj_tensors("csc"):
            array.fill_(1)

    check_nothing_else_changed(random_graph(nodes, edges, dtype=dtype), [10, 10], overwrite)
