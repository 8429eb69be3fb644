"""Published samplers on the Debian graph: the same model, trained on the batches of each.

GraphSAGE with two layers learns the sections of packages from batches of uniform neighbors, of
KGCN, VR-GCN, LADIES, FastGCN, AS-GCN, LABOR, GNNSampler's locality, GCN-BS, Thanos, PASS, MVS,
GraphSAINT, Cluster-GCN, ShaDow and PinSAGE, and is tested on uniform neighbors each time. A
batch has the weights of its edges: a destination adds the mean of its in-neighbors by
``block.edge_data["w"]``. VR-GCN has a history of the rows that all nodes sent, GCN-BS and Thanos
learn from the rows along the edges they drew, AS-GCN's scores and PASS' attention learn from the
loss, and MVS from the gradients of its seeds. PinSAGE's weights are visits of walks. The norms of
GraphSAINT's walks are estimated before. Clusters are from METIS, which needs pymetis; without it
the example leaves them out.

    python examples/samplers.py [--epochs 4] [--only ladies --only labor] [--device cuda]
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

import pygsampler as pgs
from pygsampler import datasets, research, samplers
from pygsampler.quickstart.model import DROPOUT, HIDDEN, Bags, WordSum, linear
from pygsampler.samplers import CompletedJob, PendingBatch, layer_wise
from pygsampler.torch import DataLoader

BATCH_SIZE = 1024
# Numbers that stand for a package's words where AS-GCN and PASS look at them, and PASS' width.
CODE, WIDTH = 32, 16
# Clusters, and how many of them are a batch.
PARTS, JOINED = 200, 10
# Each with the sizes that make about as many edges a batch.
ALGORITHMS: dict[str, Callable[[pgs.Graph], Any]] = {
    "graphsage": lambda graph: samplers.graphsage(fanouts=[10, 10], seed=0),
    "kgcn": lambda graph: samplers.kgcn(fanouts=[8, 8], seed=0),
    "kgcn_static": lambda graph: samplers.kgcn_static(fanout=8, seed=0),
    "vrgcn": lambda graph: samplers.vrgcn(fanouts=[2, 2], seed=0),
    "gcn_bs": lambda graph: samplers.learned.gcn_bs(graph, fanouts=[10, 10], seed=0),
    "thanos": lambda graph: samplers.learned.thanos(graph, fanouts=[10, 10], seed=0),
    "thanos_m": lambda graph: samplers.learned.thanos(
        graph, fanouts=[10, 10], method="exp3m", seed=0
    ),
    "pass": lambda graph: samplers.learned.pass_sampler(
        fanouts=[10, 10], features="code", **attention(), seed=0
    ),
    "mvs": lambda graph: samplers.learned.mvs_trained(graph, size=512, fanouts=[10, -1], seed=0),
    "locality": lambda graph: research.locality(fanouts=[10, 10], beta=3.0, seed=0),
    "labor": lambda graph: layer_wise.labor(fanouts=[10, 10], seed=0),
    "ladies": lambda graph: samplers.ladies(nodes=[2048, 2048], seed=0),
    "fastgcn": lambda graph: samplers.fastgcn(nodes=[4096, 4096], seed=0),
    "asgcn": lambda graph: samplers.learned.asgcn_trained(
        graph, features=code(), w=scores(), nodes=[4096, 4096], seed=0
    ),
    "locality_importance": lambda graph: research.locality_importance(
        nodes=[4096, 4096], beta=3.0, seed=0
    ),
    "locality_layers": lambda graph: research.locality_layers(nodes=[4096, 4096], seed=0),
    "saint_node": lambda graph: samplers.saint_node(budget=6000, seed=0),
    "saint_edge": lambda graph: samplers.saint_edge(budget=4000, seed=0),
    "saint_walk": lambda graph: samplers.saint_walk(roots=3000, length=2, seed=0),
    "locality_saint": lambda graph: research.locality_saint(budget=20000, beta=3.0, seed=0),
    "cluster_gcn": lambda graph: samplers.cluster_gcn_parts(
        samplers.clusters(graph, PARTS), seed=0
    ),
    "shadow": lambda graph: samplers.shadow(fanouts=[2, 3], seed=0),
    "shadow_disjoint": lambda graph: samplers.shadow_disjoint(fanouts=[5, 10], seed=0),
    "ppr_shadow": lambda graph: samplers.ppr_shadow(k=20, epsilon=1e-4, seed=0),
    "pinsage": lambda graph: Visited(hops=2, num_neighbors=10, seed=0),
}


class Visited(pgs.Sampler):
    """PinSAGE's neighbors as blocks: of each node those that walks from it visit most.

    They need not be joined in the graph: in place of an edge's id stands how many visits it had.
    """

    def __init__(self, hops: int, num_neighbors: int, seed: int) -> None:
        super().__init__(seed)
        self.hops, self.num_neighbors = hops, num_neighbors

    @property
    def plan(self) -> tuple[str, int, int]:
        return "visited", self.hops, self.num_neighbors

    def launch(
        self, graph: pgs.Graph, seeds: Any, *, epoch: int, batch: int, **how: Any
    ) -> PendingBatch[pgs.MiniBatch]:
        given = torch.as_tensor(seeds).cpu().numpy()
        nodes, index = numbered(given)
        blocks: list[Any] = []
        for hop in range(self.hops):
            # Each hop walks anew.
            walks = pgs.walks.PinSAGE(
                num_traversals=2,
                num_random_walks=20,
                num_neighbors=self.num_neighbors,
                direction="in",
                seed=self.seed + hop,
            )
            visits = walks.sample(graph, nodes, epoch=epoch, batch=batch).torch()
            sources, place, counts = (part.cpu().numpy() for part in visits.coo())
            indptr = np.searchsorted(place, np.arange(len(nodes) + 1))
            known = len(nodes)
            nodes, places = numbered(np.concatenate([nodes, sources]))
            blocks.insert(0, (indptr, places[known:], counts))
        return CompletedJob(
            pgs.MiniBatch.from_blocks(
                given, nodes, blocks, output_index=index, epoch=epoch, batch=batch
            )
        )


def numbered(ids: Any) -> tuple[Any, Any]:
    """The distinct ids as they come first, and the place of each there."""
    values, first, which = np.unique(ids, return_index=True, return_inverse=True)
    order = first.argsort()
    return values[order], order.argsort()[which]


@functools.cache
def code() -> Tensor:
    """[num_nodes, CODE]: words of packages, each in a fixed random direction."""
    data = datasets.debian()
    random = torch.Generator().manual_seed(0)
    words = torch.randn(data.num_features, CODE, generator=random) / CODE**0.5
    return functional.normalize(torch.from_numpy(data.features()).float() @ words)


def scores() -> Tensor:
    """[CODE, 2]: the w that AS-GCN begins with."""
    return 0.1 * torch.randn(CODE, 2, generator=torch.Generator().manual_seed(1))


def attention() -> dict[str, Tensor]:
    """The tensors that PASS begins with."""
    random = torch.Generator().manual_seed(1)
    W1, W2 = 0.1 * torch.randn(2, CODE, WIDTH, generator=random)
    return {"W1": W1, "W2": W2, "W3": torch.tensor([0.01, 0.01, 1.0])}


class Factor(nn.Module):
    """The weights of a block's edges: what the sampler says they are."""

    def forward(self, block: Any) -> Tensor | None:
        """[num_edges], or None where all are alike."""
        weights: Tensor | None = block.edge_data.get("w")
        return weights


class Visits(Factor):
    """PinSAGE's importance pooling: neighbors by their visits."""

    def forward(self, block: Any) -> Tensor:
        """[num_edges], of ``Visited``'s blocks."""
        visits: Tensor = block.edge_ids.float()
        return visits


class ExactNorms(Factor):
    """GraphSAINT's, where they are exact: 1 / the value of an edge."""

    def forward(self, block: Any) -> Tensor:
        """[num_edges]."""
        return 1 / block.edge_data["w"]


class Norms(Factor):
    """GraphSAINT's, where they are estimated: 1 / the chance of an edge beside its target."""

    def __init__(self, norms: Any) -> None:
        super().__init__()
        self.register_buffer("node", torch.from_numpy(norms.node))
        self.register_buffer("edge", torch.from_numpy(norms.edge))

    def forward(self, block: Any) -> Tensor:
        return 1 / self.edge[block.edge_ids]


class Attention(Factor):
    """AS-GCN's scores, which are in the weights of edges already: by them the loss tells w.

    The paper adds the variance of the sampler to the loss.
    """

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(scores())
        self.register_buffer("code", code())

    def forward(self, block: Any) -> Tensor:
        """The sampler's [num_edges], with the gradient of relu(h_u + h_v) + 1."""
        h = self.code[block.src_nodes] @ self.w
        src, dst = block.coo()
        score = functional.relu(h[src, 0] + h[dst, 1]) + 1
        return block.edge_data["w"] * score / score.detach()


class Drawn(Factor):
    """PASS' attention, by which edges are drawn: by the ratio the loss tells W1, W2 and W3."""

    def __init__(self, graph: pgs.Graph) -> None:
        super().__init__()
        self.graph = graph
        self.attention = nn.ParameterDict(attention())
        self.register_buffer("code", code())

    def forward(self, block: Any) -> Tensor:
        return samplers.learned.pass_ratio(self.graph, block, self.code, **self.attention)


class Layer(nn.Module):
    """A destination's own row, and the mean of what it hears by the weights of its edges."""

    def __init__(self, own: nn.Module, heard: nn.Module, size: int) -> None:
        super().__init__()
        self.own, self.heard = own, heard
        self.bias = nn.Parameter(torch.zeros(size))
        # The rows sent last, and for VR-GCN the rows that all nodes sent in their last batches.
        self.sent: Tensor | None = None
        self.history: samplers.learned.History | None = None

    def forward(self, block: Any, x: Any, weights: Tensor | None) -> Tensor:
        """x: [num_src_nodes, ...] -> [num_dst_nodes, size]; ``weights`` are of the edges."""
        rows = self.heard(x)
        self.sent = rows.detach()
        if weights is None:
            heard = block.mean(rows)
        elif self.history is not None and self.training:
            heard = self.history.aggregate(0, block, rows)
            self.history.update(0, block.src_nodes, rows)
        else:
            total = block.weighted_sum(torch.ones_like(rows[:, :1]), weights.detach())
            heard = block.weighted_sum(rows, weights) / total.clamp(min=1e-9)
        own: Tensor = self.own(x[: block.num_dst_nodes])
        return own + heard + self.bias


class Model(nn.Module):
    """Two layers, for two blocks or for one subgraph."""

    def __init__(self, num_words: int, num_classes: int) -> None:
        super().__init__()
        self.num_words = num_words
        self.first = Layer(WordSum(num_words), WordSum(num_words), HIDDEN)
        self.second = Layer(linear(num_classes), linear(num_classes), num_classes)

    def forward(self, batch: Any, factor: Factor) -> Tensor:
        """Scores [destinations of the last block, num_classes]."""
        first, last = batch.blocks[0], batch.blocks[-1]
        x = functional.relu(
            self.first(first, Bags.from_words(batch.words, self.num_words), factor(first))
        )
        x = functional.dropout(x, DROPOUT, self.training)
        scores: Tensor = self.second(last, x, factor(last))
        return scores


class Losses(NamedTuple):
    """The training nodes of a batch, their scores, losses, and shares in the loss."""

    nodes: Tensor
    scores: Tensor
    each: Tensor
    share: Tensor

    def sum(self) -> Tensor:
        """The loss."""
        return (self.each * self.share).sum()


def losses_of(
    scores: Tensor, batch: Any, labels: Tensor, training: Tensor, factor: Factor
) -> Losses:
    """Returns the losses of a batch's training nodes.

    Seeds have equal shares, MVS' seeds shares by their probabilities, and the training nodes in
    GraphSAINT's subgraphs shares by their norms.
    """
    norm = factor.node[batch.nodes] if isinstance(factor, Norms) else batch.extra.get("node_norm")
    share = batch.extra.get("loss_weight")
    if share is not None:
        # Each seed occurs once; seeds that did not stay have the weight 0.
        nodes, ours = batch.blocks[-1].dst_nodes, share > 0
    elif norm is not None:
        nodes, ours = batch.nodes, training[batch.nodes]
        share = 1 / norm
    else:
        nodes, scores = batch.output_nodes, scores[batch.output_index]
        # A cluster has others too.
        ours = training[nodes]
        share = torch.ones(len(nodes), device=scores.device)
    nodes, scores, share = nodes[ours], scores[ours], share[ours]
    if "loss_weight" not in batch.extra:
        share = share / share.sum()
    each = functional.cross_entropy(scores, labels[nodes], reduction="none")
    return Losses(nodes, scores, each, share)


def learn(sampler: samplers.learned.Bandit, batch: Any, layers: list[Layer]) -> None:
    """Rewards the edges that were drawn, by what they brought."""
    rewards = [sampler.rewards(batch, hop, layer.sent) for hop, layer in enumerate(layers)]
    sampler.update(batch, rewards)


def train(data: Any, graph: pgs.Graph, name: str, epochs: int, device: str) -> dict[str, float]:
    """Accuracy on the validation packages, edges of an epoch, and seconds."""
    torch.manual_seed(0)
    sampler = ALGORITHMS[name](graph)
    options: dict[str, Any] = {"features": {"words": torch.from_numpy(data.words())}}
    options["device"] = device
    seeds, size = data.train, BATCH_SIZE
    if isinstance(sampler, samplers.ClusterGCN):
        seeds, size = range(sampler.num_parts), JOINED
    loader = DataLoader(graph, seeds, sampler, batch_size=size, shuffle=True, **options)
    labels = torch.from_numpy(data.labels).to(loader.device)
    training = torch.zeros(graph.num_nodes, dtype=torch.bool)
    training[torch.from_numpy(data.train)] = True
    training = training.to(loader.device)
    model = Model(data.num_features, data.num_classes).to(loader.device)
    layers = [model.first, model.second]
    if name == "vrgcn":
        for layer in layers:
            layer.history = samplers.learned.History(loader.graph, [len(layer.bias)])
    factor = Factor()
    if name == "asgcn":
        factor = Attention()
    elif name == "pass":
        factor = Drawn(loader.graph)
    elif name == "pinsage":
        factor = Visits()
    elif name in ("saint_node", "saint_edge", "locality_saint"):
        factor = ExactNorms()
    elif name == "saint_walk":
        factor = Norms(samplers.saint_norms(graph, sampler))
    factor.to(loader.device)
    optimizer = torch.optim.Adam([*model.parameters(), *factor.parameters()], lr=5e-3)
    edges, begin = 0, time.perf_counter()
    for _ in range(epochs):
        for batch in loader:
            losses = losses_of(model(batch, factor), batch, labels, training, factor)
            if isinstance(sampler, samplers.learned.GradientBounds):
                sampler.update(
                    losses.nodes, samplers.learned.gradient_norms(losses.each, losses.scores)
                )
            optimizer.zero_grad()
            losses.sum().backward()
            optimizer.step()
            if isinstance(sampler, samplers.learned.Bandit):
                learn(sampler, batch, layers)
            if isinstance(factor, Attention):
                sampler.update(factor.w.detach().cpu())
            if isinstance(factor, Drawn):
                sampler.update(**factor.attention)
            edges += batch.num_edges
    seconds = time.perf_counter() - begin
    model.eval()
    right = 0
    with torch.no_grad():
        for batch in DataLoader(graph, data.val, [10, 10], batch_size=4096, seed=0, **options):
            scores = model(batch, Factor())[batch.output_index]
            right += int((scores.argmax(1) == labels[batch.output_nodes]).sum())
    return {
        "accuracy": right / len(data.val),
        "edges": edges / epochs,
        "seconds": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--only", action="append", choices=list(ALGORITHMS))
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    data = datasets.debian()
    graph = data.graph()
    graph = graph.with_data(
        node_data={"locality": research.locality_scores(graph), "code": code().numpy()}
    )
    for name in options.only or ALGORITHMS:
        if name == "cluster_gcn" and not find_spec("pymetis"):
            print(f"{name:15} left out: METIS needs pymetis, pip install pymetis")
            continue
        if name == "pinsage" and options.device != "cpu":
            print(f"{name:15} left out: its blocks are made on the CPU", flush=True)
            continue
        found = train(data, graph, name, options.epochs, options.device)
        print(
            f"{name:15} validation accuracy: {found['accuracy']:.1%}, "
            f"{found['edges']:11,.0f} edges an epoch, {found['seconds']:.1f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
