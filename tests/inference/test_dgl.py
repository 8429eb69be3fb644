"""``inference`` beside the layer-by-layer loop that DGL's examples evaluate with."""

from __future__ import annotations

from typing import Any

import pytest
from inference_cases import NODES, WIDTH, random_edges, random_graph, random_rows, torch
from partners import partner

import pygsampler as pgs

# DGL's loader warns of cores that it is not told to keep.
pytestmark = pytest.mark.filterwarnings("ignore:Dataloader CPU affinity")
dgl: Any = partner("dgl")
# Others are imported with it.
from dgl.nn import pytorch as layers  # noqa: E402

LAYERS: dict[str, Any] = {
    "SAGEConv mean": lambda inputs, outputs: layers.SAGEConv(inputs, outputs, "mean"),
    "SAGEConv pool": lambda inputs, outputs: layers.SAGEConv(inputs, outputs, "pool"),
    "GINConv": lambda inputs, outputs: layers.GINConv(torch.nn.Linear(inputs, outputs), "max"),
    "GATConv": lambda inputs, outputs: layers.GATConv(
        inputs, outputs, 1, allow_zero_in_degree=True
    ),
    "GraphConv right": lambda inputs, outputs: layers.GraphConv(
        inputs, outputs, norm="right", allow_zero_in_degree=True
    ),
}


def by_dgl(layer: Any) -> Any:
    """The layer itself as a function of our block."""

    def run(block: Any, x_src: Any, x_dst: Any) -> Any:
        ends = block.coo()
        sizes = {"num_src_nodes": block.num_src_nodes, "num_dst_nodes": block.num_dst_nodes}
        return layer(dgl.create_block(ends, **sizes), (x_src, x_dst)).flatten(1)

    return run


@pytest.mark.parametrize("batch_size", [None, 17])
@pytest.mark.parametrize("name", LAYERS)
def test_rows_equal_those_of_the_loop_of_dgl(name: str, batch_size: int | None) -> None:
    torch.manual_seed(0)
    model = [LAYERS[name](WIDTH, 8), LAYERS[name](8, 3)]
    src, dst = random_edges()
    whole, x = dgl.graph((src, dst), num_nodes=NODES), random_rows()
    sampler = dgl.dataloading.MultiLayerFullNeighborSampler(1)
    loader = dgl.dataloading.DataLoader(whole, torch.arange(NODES), sampler, batch_size=25)
    rows = x
    with torch.no_grad():
        for place, layer in enumerate(model):
            made = torch.zeros(NODES, (8, 3)[place])
            for inputs, outputs, blocks in loader:
                h = rows[inputs]
                h = layer(blocks[0], (h, h[: blocks[0].num_dst_nodes()])).flatten(1)
                made[outputs] = h.relu() if place == 0 else h
            rows = made
    functions = [by_dgl(model[0]), torch.relu, by_dgl(model[1])]
    found = pgs.inference(functions, random_graph(), x, batch_size=batch_size, progress=False)
    torch.testing.assert_close(found, rows)
