"""GNNSampler's Algorithms 1, 2, 3 and 5 as classes with the paper's names, each as by hand."""

# ruff: noqa: E741 (l is the name that the paper has for a layer)

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from pygsampler import research, samplers


@pgs.program
class Algorithm1:
    """Node-wise sampling, lines 3 to 12: GraphSAGE."""

    def __init__(self, sizes: list[int]) -> None:
        self.sizes, self.layers = sizes, len(sizes)

    def get_minibatch(self, G: Any) -> None:
        """The caller divides the nodes."""

    def get_sample_standard(self) -> bool:
        return False

    def get_batch_input(self, Bk: Any) -> Any:
        return Bk

    def get_sample_num(self, l: int) -> int:
        return self.sizes[-1 - l]

    def get_neighbor(self, G: Any, v: Any) -> Any:
        return G[:, v]

    def sample_node(self, nei_idx: Any, n_l: int, S: bool) -> Any:
        return nei_idx.individual_sample(n_l, replace=S)

    def update_adjacency_matrix(self, sampled_idx: Any) -> Any:
        return sampled_idx


@pgs.program
class Algorithm1ByNode:
    """The second printing of Algorithm 1, which has no layers and calls a step sample_neighbor."""

    layers = 1

    def get_sample_num(self) -> int:
        return 3

    def get_neighbor(self, v: Any, G: Any) -> Any:
        return G[:, v]

    def sample_neighbor(self, nei_idx: Any, n: int, S: None) -> Any:
        assert S is None
        return nei_idx.individual_sample(n)


@pgs.program
class Algorithm2:
    """Layer-wise sampling, lines 3 to 12: FastGCN without its weights."""

    def __init__(self, sizes: list[int]) -> None:
        self.sizes, self.layers = sizes, len(sizes)

    def get_sample_standard(self) -> bool:
        return True

    def get_batch_input(self, Bk: Any) -> Any:
        return Bk.unique()

    def get_sample_num(self, l: int) -> int:
        return self.sizes[-1 - l]

    def get_prob_distribution(self, G: Any) -> Any:
        return (G * G).sum(axis=1)

    def sample_node(self, G: Any, inputs: Any, n_l: int, S: bool, P: Any) -> Any:
        C = G[:, inputs]
        return C.collective_sample(n_l, P[C.row()], replace=S)

    def update_adjacency_matrix(self, sampled_idx: Any) -> Any:
        return {"w": sampled_idx, "times": sampled_idx.spread(sampled_idx.times(), axis=1)}

    def update_input(self, sampled_idx: Any) -> Any:
        return sampled_idx.row()


@pgs.program
class Algorithm3:
    """Subgraphs, lines 3 to 13: GraphSAINT's nodes by the locality of Algorithm 5."""

    def __init__(self, size: int, s: float = 0.77, n: int = 3) -> None:
        self.subgraph_size, self.s, self.n = size, s, n

    def construct_locality(self, adj_train: Any, s: float, n: int) -> Any:
        return adj_train.ndata[f"locality_{n}_{s}"]

    def get_prob_distribution(self, L: Any) -> Any:
        return L

    def sample_node(self, P: Any, subgraph_size: int) -> Any:
        return P.draw(subgraph_size, replace=True)

    def append_node(self, sampled_idx: Any, inputs: Any) -> Any:
        return inputs.concat(sampled_idx)

    def processing(self, node_pool: Any, G: Any) -> Any:
        return G.induce(node_pool.unique())

    def induce_subgraph(self, adjacency_matrix: Any) -> Any:
        return adjacency_matrix


@pgs.program
def layers_by_hand(A: Any, seeds: Any, *, sizes: list[int]) -> Any:
    blocks: list[Any] = []
    seeds = seeds.unique()
    for K in reversed(sizes):
        q = (A * A).sum(axis=1)
        C = A[:, seeds]
        B = C.collective_sample(K, q[C.row()], replace=True)
        blocks.insert(0, {"w": B, "times": B.spread(B.times(), axis=1)})
        seeds = B.row()
    return blocks


@pgs.program
def subgraph_by_hand(A: Any, seeds: Any, *, size: int, score: str) -> Any:
    drawn = A.ndata[score].draw(size, replace=True)
    return A.induce(seeds.concat(drawn).unique())


def graph() -> pgs.Graph:
    rng = np.random.default_rng(2)
    src, dst = rng.integers(0, 60, (2, 500))
    made = pgs.Graph.from_coo(src, dst, num_nodes=60, edge_data={"w": rng.random(500)})
    marks = research.locality_scores(made, measure="published", threshold=0.77, min_neighbors=3)
    assert 0 < marks.sum() < 60
    return made.with_data(node_data={"locality_3_0.77": marks})


def test_the_listings_are_the_functions_by_hand() -> None:
    """By their code, which is what the engine runs, and so by the byte."""
    by_node = Algorithm1(sizes=[3, 2], seed=4)
    assert by_node.code == samplers.graphsage(fanouts=[3, 2], seed=4).code
    one = Algorithm1ByNode(seed=4).sample(graph(), [5, 7], epoch=0, batch=0)
    other = samplers.graphsage(fanouts=[3], seed=4).sample(graph(), [5, 7], epoch=0, batch=0)
    assert one.blocks[0].edge_ids.tolist() == other.blocks[0].edge_ids.tolist()
    by_layer = Algorithm2(sizes=[6, 4], weight="w", seed=4)
    assert by_layer.code == layers_by_hand(sizes=[6, 4], weight="w", seed=4).code
    of_nodes = Algorithm3(size=9, seed=4)
    by_hand = subgraph_by_hand(size=9, score="locality_3_0.77", seed=4)
    assert (of_nodes.code, of_nodes.result_kind) == (by_hand.code, "subgraph")
    assert pickle.loads(pickle.dumps(of_nodes)).code == of_nodes.code
    assert repr(of_nodes) == "Algorithm3(size=9, seed=4)"


def test_a_subgraph_has_its_seeds_and_marked_nodes_alone() -> None:
    """Weights of 0 exclude, as published."""
    with_marks = graph()
    marked = set(np.flatnonzero(with_marks.ndata["locality_3_0.77"].numpy()).tolist())
    met = set()
    for batch in range(30):
        nodes = Algorithm3(size=9, seed=4).sample(with_marks, [1], epoch=0, batch=batch).nodes
        assert nodes.tolist()[0] == 1
        met |= set(nodes.tolist()[1:])
    assert met <= marked | {1} and len(met) > 9


def test_steps_that_are_left_out_have_the_listings_meaning() -> None:
    """Nodes of the batch, the sampled matrix, the union as inputs, distinct nodes, induced."""

    class Few:
        subgraph_size = 5

        def sample_node(self, G: Any, subgraph_size: int) -> Any:
            return G.roots(subgraph_size)

    @pgs.program
    def few(A: Any, seeds: Any) -> Any:
        return A.induce(A.roots(5).unique())

    class Sized:
        def __init__(self, size: int) -> None:
            self.subgraph_size = size

        def sample_node(self, G: Any, subgraph_size: int, replace: bool = False) -> Any:
            return G.roots(subgraph_size)

    assert pgs.program(Few)(seed=1).code == few(seed=1).code
    assert pgs.program(Sized)(size=5, seed=1).code == few(seed=1).code


def mistake(**members: Any) -> type:
    base: dict[str, Any] = {
        "layers": 1,
        "get_sample_num": lambda self, l: 2,
        "get_neighbor": lambda self, G, v: G[:, v],
        "sample_node": lambda self, nei_idx, n: nei_idx.individual_sample(n),
    }
    return type("Mine", (), {k: v for k, v in {**base, **members}.items() if v is not None})


def weights(self: Any, G: Any) -> Any:
    return G.degree()


def test_mistakes_of_steps_say_where_and_what() -> None:
    """Most are seen where the class is, and the rest where a sampler is created."""
    early = (
        ({"get_neighbor": None}, r"expected get_neighbor \(Algorithm 1, .*got none"),
        ({"get_sample_num": None}, r"expected a method get_sample_num, got none"),
        ({"sample_node": None}, r"expected a method sample_node, got none"),
        ({"sample_node": 3}, r"sample_node: expected a method, got int 3"),
        (
            {"sample_neighbor": lambda self, nei_idx: nei_idx},
            r"sample_neighbor: expected it or sample_node, got both",
        ),
        (
            {"get_neighbor": lambda self, P: P},
            r"py:\d+: get_neighbor: expected names among G, adj_train, Bk, S, .*n_l, got P",
        ),
        (
            {"get_weights": weights},
            r"py:\d+: get_weights: expected a step among .*underscore",
        ),
        (
            {"subgraph_size": 4},
            r"get_sample_num: expected none with a step of Algorithm 3, got one",
        ),
        (
            {"get_neighbor": eval("lambda self, G, /: G")},
            r"get_neighbor: expected arguments by name, got G by place alone",
        ),
    )
    for members, message in early:
        with pytest.raises(TypeError, match=rf"program Mine.*{message}"):
            pgs.program(mistake(**members))
    late = (
        ({"layers": None}, r"expected layers, an attribute or a method, got none"),
        ({"layers": 0}, r"layers: expected an integer >= 1, got 0"),
        ({"get_sample_num": lambda self: -2}, r"get_sample_num: expected an integer >= -1, got -2"),
        ({"sample_node": lambda self, v: v}, r"sample_node: expected a matrix of sampled edges"),
        ({"get_minibatch": lambda self, G: G}, r"get_minibatch: expected a list of nodes, got"),
        (
            {"update_adjacency_matrix": lambda self: 3},
            r"update_adjacency_matrix: expected a matrix, values by name or None, got int 3",
        ),
        ({"update_input": lambda self, P: 3}, r"update_input: expected a list of nodes, got int 3"),
        (
            {"construct_locality": lambda self, adj_train, s: None},
            r"expected s, an attribute or a method, got none",
        ),
    )
    for members, message in late:
        with pytest.raises(TypeError, match=rf"program Mine.*{message}"):
            pgs.program(mistake(**members))(seed=0)
    base = mistake(get_neighbour=lambda self, G: G)
    with pytest.raises(TypeError, match=r"get_neighbour: expected a step among"):
        pgs.program(type("Mine", (base,), {}))
    with pytest.raises(TypeError, match=r"got neither"):
        pgs.program(type("Mine", (), {"layers": 2}))
