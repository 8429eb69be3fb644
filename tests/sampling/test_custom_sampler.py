"""A sampler that is written here, in Python, goes through every loader as ours do."""

from __future__ import annotations

import pickle
import random
from typing import Any

import pytest
from graphs import circulant
from partners import partner

import pygsampler as pgs
from pygsampler.samplers import CompletedJob, PendingBatch


class Last(pgs.Sampler):
    """Two hops, of each vertex one of its last ``width`` in-edges."""

    def __init__(self, width: int, seed: int | None = None) -> None:
        super().__init__(seed)
        self.width = width

    @property
    def plan(self) -> tuple[str, int]:
        return "last", self.width

    def launch(
        self, graph: pgs.Graph, seeds: Any, *, epoch: int, batch: int, **how: Any
    ) -> PendingBatch[pgs.MiniBatch]:
        draw = random.Random(f"{self.seed} {epoch} {batch}")
        given = [int(seed) for seed in seeds]
        nodes, blocks = list(dict.fromkeys(given)), []
        index = [nodes.index(seed) for seed in given]
        for _ in range(2):
            ends = [graph.indptr[v + 1] for v in nodes]
            edges = [end - 1 - draw.randrange(self.width) for end in ends]
            sources = [graph.indices[edge] for edge in edges]
            rows = list(range(len(nodes) + 1))
            if graph.edge_ids is not None:
                edges = [graph.edge_ids[edge] for edge in edges]
            nodes = list(dict.fromkeys([*nodes, *sources]))
            blocks.insert(0, (rows, [nodes.index(v) for v in sources], edges))
        numbers = {"epoch": epoch, "batch": batch}
        return CompletedJob(
            pgs.MiniBatch.from_blocks(given, nodes, blocks, output_index=index, **numbers)
        )


def ids(batch: Any) -> list[list[int]]:
    return [batch.input_nodes.tolist(), *(block.edge_ids.tolist() for block in batch.blocks)]


def test_calls_are_those_of_every_sampler() -> None:
    graph, sampler = circulant(50, 6), Last(3, seed=1)
    one = sampler.sample(graph, [4, 5, 4])
    assert (one.epoch, one.batch) == (0, 0)
    assert one.output_nodes.tolist() == [4, 5, 4] and one.output_index.tolist() == [0, 1, 0]
    assert (
        one.blocks[1].num_dst_nodes == 2
        and one.blocks[0].num_dst_nodes == one.blocks[1].num_src_nodes
    )
    assert ids(sampler.submit(graph, [4, 5, 4], batch=0).result()) == ids(one)
    many = sampler.sample_many(graph, [[1, 2], [4, 5, 4]], epoch=0, batch=7)
    assert ids(many[1]) == ids(sampler.sample(graph, [4, 5, 4], batch=8))
    copy = pickle.loads(pickle.dumps(sampler))
    assert copy.plan == sampler.plan == Last(3).plan and copy.seed == 1
    assert ids(copy.sample(graph, [9])) == ids(sampler.sample(graph, [9]))
    sampler.set_epoch(0)
    assert ids(sampler.sample(graph, [4, 5, 4])) == ids(one)
    other = sampler.with_seed(2)
    assert (other.seed, sampler.seed) == (2, 1)
    assert ids(other.sample(graph, range(20), batch=0)) != ids(
        sampler.sample(graph, range(20), batch=0)
    )


def test_torch() -> None:
    torch = pytest.importorskip("torch", reason="needs torch")
    from pygsampler.torch import DataLoader

    graph, sampler = circulant(50, 6), Last(3, seed=1)
    loader = DataLoader(graph, torch.arange(50), sampler, batch_size=20, shuffle=True)
    first = [ids(batch) for batch in loader]
    assert len(first) == 3 and first != [ids(batch) for batch in loader]
    loader.set_seed(1)
    assert [ids(batch) for batch in loader] == first
    again = pickle.loads(pickle.dumps(loader))
    again.set_epoch(0)
    assert [ids(batch) for batch in again] == first


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:Dataloader CPU affinity")
def test_dgl() -> None:
    dgl, torch = partner("dgl"), partner("torch")
    from pygsampler.dgl import Sampler

    src = torch.arange(50).repeat_interleave(6)
    g = dgl.graph((src, (src + torch.arange(6).repeat(50)) % 50))
    sampler = Sampler(Last(3, seed=1), prefetch_labels=["label"])
    g.ndata["label"] = torch.arange(50)
    sampler.set_epoch(2)
    got = []
    for workers in (0, 2):
        loader = dgl.dataloading.DataLoader(
            g, torch.arange(50), sampler, batch_size=20, num_workers=workers
        )
        batches = list(loader)
        got.append(sorted(blocks[0].edata[dgl.EID].tolist() for _, _, blocks in batches))
        for nodes, seeds, blocks in batches:
            assert blocks[-1].dstdata["label"].equal(seeds)
            assert blocks[0].srcdata[dgl.NID].equal(nodes)
            assert blocks[1].in_degrees().tolist() == [1] * len(seeds)
            u, _ = g.find_edges(blocks[0].edata[dgl.EID])
            assert u.equal(nodes[blocks[0].edges(order="eid")[0]])
    assert got[0] == got[1]
    new = Sampler(pgs.PGSampler([2, 2], frontier="new", seed=0))
    with pytest.raises(ValueError, match=r"sampler: expected destinations first .*dst_offset"):
        new.sample(g, torch.arange(3))
    with pytest.raises(TypeError, match=r"sampler: .*pygsampler\.dgl\.PGSampler takes fanouts"):
        Sampler([2, 2])  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_pyg() -> None:
    partner("torch_geometric")
    torch = partner("torch")
    from torch_geometric.data import Data
    from torch_geometric.loader import NodeLoader

    from pygsampler.pyg import NeighborLoader, Sampler

    src = torch.arange(50).repeat_interleave(6)
    edges = torch.stack([src, (src + torch.arange(6).repeat(50)) % 50])
    data = Data(x=torch.arange(50).reshape(-1, 1), edge_index=edges)
    sampler = Sampler(data, Last(3, seed=1))
    sampler.set_epoch(2)
    got = []
    for make, name, workers in (
        (NodeLoader, "node_sampler", 0),
        (NodeLoader, "node_sampler", 2),
        (NeighborLoader, "neighbor_sampler", 0),
    ):
        more: Any = {} if make is NodeLoader else {"num_neighbors": []}
        loader = make(
            data,
            input_nodes=torch.arange(50),
            batch_size=20,
            num_workers=workers,
            **{name: sampler},
            **more,
        )
        batches = list(loader)
        got.append([batch.e_id.tolist() for batch in batches])
        for batch in batches:
            assert batch.n_id[batch.edge_index].equal(edges[:, batch.e_id])
            assert batch.n_id[: batch.batch_size].equal(batch.input_id)
            assert (
                batch.num_sampled_nodes[0] == batch.batch_size and len(batch.num_sampled_edges) == 2
            )
    assert got[0] == got[1] == got[2]
    with pytest.raises(TypeError, match=r"sampler: .*pygsampler\.pyg\.PGSampler takes numbers"):
        Sampler(data, [2, 2])  # type: ignore[arg-type]


GOOD: dict[str, Any] = {
    "seeds": [7, 8],
    "nodes": [7, 8, 9],
    "blocks": [([0, 1, 2], [2, 0], [5, 6])],
}


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        ({"nodes": [7, -8, 9]}, ValueError, r"nodes\[1\]: expected a value >= 0, got -8"),
        ({"blocks": []}, TypeError, "blocks: expected a sequence of blocks"),
        ({"blocks": [([0, 1], [0])]}, TypeError, r"blocks\[0\]: expected \(indptr, indices"),
        ({"blocks": [([0, 2, 1], [2, 0], [5, 6])]}, ValueError, r"blocks\[0\]\.indptr: .* grow"),
        ({"blocks": [([0, 1, 2], [2, 3], [5, 6])]}, ValueError, r"indices\[1\]: .*\[0, 3\), got 3"),
        ({"blocks": [([0, 1, 2], [2, 0], [5])]}, ValueError, "edge_ids: expected 2 values, got 1"),
        (
            {"blocks": [([0, 1, 2], [2, 0], [5, 6], 2)]},
            ValueError,
            "among 3 sources, got 2 of them",
        ),
        ({"output_index": [0, 2]}, ValueError, r"output_index\[1\]: .*\[0, 2\), got 2"),
        ({"seeds": [0.5]}, TypeError, r"seeds\[0\]"),
    ],
)
def test_wrong_arrays(wrong: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        pgs.MiniBatch.from_blocks(**{**GOOD, **wrong})
    batch = pgs.MiniBatch.from_blocks(**GOOD)
    assert batch.blocks[0].src_nodes.tolist() == [7, 8, 9] and batch.blocks[0].num_dst_nodes == 2
    assert ids(pickle.loads(pickle.dumps(batch))) == ids(batch)
