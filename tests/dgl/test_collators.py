"""DGL's collators around our samplers, in torch's own DataLoader."""

from __future__ import annotations

from typing import Any

import dgl
import pytest
import torch
from torch.utils.data import DataLoader

from pygsampler.dgl import LaborSampler, PGSampler
from tests.dgl.graphs import check_blocks

pytestmark = pytest.mark.filterwarnings(
    # Python 3.12 warns of forks in processes with threads, which torch's own loader makes too.
    "ignore:This process .* is multi-threaded:DeprecationWarning",
)
NODES, EDGES = 200, 1500
RATES, RATED = ("user", "rates", "item"), ("item", "rated-by", "user")


def plain() -> Any:
    random = torch.Generator().manual_seed(3)
    return dgl.graph(
        torch.randint(0, NODES, (2, EDGES), generator=random).unbind(), num_nodes=NODES
    )


def typed() -> Any:
    random = torch.Generator().manual_seed(4)
    users = torch.randint(0, 40, (300,), generator=random)
    items = torch.randint(0, 60, (300,), generator=random)
    return dgl.heterograph(
        {RATES: (users, items), RATED: (items, users)}, num_nodes_dict={"user": 40, "item": 60}
    )


@pytest.mark.parametrize("workers", [0, 2])
def test_nodes_of_a_graph_without_types(workers: int) -> None:
    g = plain()
    collator = dgl.dataloading.NodeCollator(g, torch.arange(100), PGSampler([3, 2]))
    loader = DataLoader(
        collator.dataset, batch_size=40, collate_fn=collator.collate, num_workers=workers
    )
    seeds = torch.arange(100).split(40)
    for given, batch in zip(seeds, loader, strict=True):
        check_blocks(g, [3, 2], given, batch)


def test_labor() -> None:
    g = plain()
    collator = dgl.dataloading.NodeCollator(g, torch.arange(100), LaborSampler([3, 3]))
    for _, output_nodes, blocks in DataLoader(
        collator.dataset, batch_size=50, collate_fn=collator.collate
    ):
        assert output_nodes.equal(blocks[-1].dstdata[dgl.NID])
        for block in blocks:
            src, dst = g.find_edges(block.edata[dgl.EID])
            ends = block.edges()
            assert len(src)
            assert block.srcdata[dgl.NID][ends[0]].equal(src)
            assert block.dstdata[dgl.NID][ends[1]].equal(dst)


def test_nodes_of_several_types() -> None:
    g = typed()
    seeds = {"user": torch.arange(20), "item": torch.arange(30)}
    collator = dgl.dataloading.NodeCollator(g, seeds, PGSampler([3, 3]))
    seen: dict[str, list[int]] = {"user": [], "item": []}
    for input_nodes, output_nodes, blocks in DataLoader(
        collator.dataset, batch_size=16, collate_fn=collator.collate
    ):
        for name in g.ntypes:
            assert input_nodes[name].equal(blocks[0].srcnodes[name].data[dgl.NID])
        for name, nodes in output_nodes.items():
            assert nodes.equal(blocks[-1].dstnodes[name].data[dgl.NID])
            seen[name] += nodes.tolist()
    assert seen == {name: nodes.tolist() for name, nodes in seeds.items()}


def test_edges_and_their_reverses_are_sampled_around() -> None:
    g = typed()
    collator = dgl.dataloading.EdgeCollator(
        g,
        {RATES: torch.arange(120)},
        PGSampler([4, 4]),
        exclude="reverse_types",
        reverse_etypes={"rates": "rated-by", "rated-by": "rates"},
        negative_sampler=dgl.dataloading.negative_sampler.Uniform(2),
    )
    for _, positive, negative, blocks in DataLoader(
        collator.dataset, batch_size=50, collate_fn=collator.collate
    ):
        own = positive.edges[RATES].data[dgl.EID]
        assert negative.num_edges(RATES) == 2 * len(own)
        assert positive.nodes["user"].data[dgl.NID].equal(blocks[-1].dstnodes["user"].data[dgl.NID])
        sampled = [block.edges[t].data[dgl.EID] for block in blocks for t in (RATES, RATED)]
        assert sum(map(len, sampled))
        assert not torch.isin(torch.cat(sampled), own).any()
