"""Link prediction on the Debian packages with their types, in plain PyTorch.

Predicts which packages a package names, in each of five relations, as examples/links.py does
without types: a tenth of the pairs is hidden, and a model learns from the other edges, each beside
a node that it does not lead to. Here packages are also joined by the source that they are built
from and by their maintainer, and each type of edges has weights of its own (Schlichtkrull et al.,
"Modeling Relational Data with Graph Convolutional Networks", 2018). The same model without types is
there for comparison; both have the same pairs to tell apart.

    python examples/links_hetero.py --edges 100000

Prints the loss of each epoch, and at the end of each model the area under the curve (AUC) of hidden
edges against nodes that are drawn for them, and how many of them are among the 10 best of 100
(hits@10): of 100,000 edges, once, 94.4 % and 84.9 %, and without types 92.9 % and 79.9 %.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.nn import functional

import pygsampler as pgs
from pygsampler import datasets
from pygsampler.evaluate import rank_scores
from pygsampler.torch import LinkLoader, NegativeSampling

HIDDEN = 64
OTHERS = 99
Ends = tuple[torch.Tensor, torch.Tensor]


class Layer(nn.Module):
    """A layer that adds a node's own row and, per relation, the mean of its in-neighbors' rows."""

    def __init__(self, graph: pgs.Graph) -> None:
        super().__init__()
        self.own = nn.ModuleDict({kind: nn.Linear(HIDDEN, HIDDEN) for kind in graph.node_types})
        self.of = nn.ModuleList(nn.Linear(HIDDEN, HIDDEN, bias=False) for _ in graph.edge_types)

    def forward(
        self, hop: Mapping[Any, Any], h: dict[str, torch.Tensor]
    ) -> dict[str, torch.Tensor]:
        made: dict[str, torch.Tensor] = {}
        for ((src, _, dst), block), weight in zip(hop.items(), self.of, strict=True):
            if dst not in made:
                made[dst] = self.own[dst](h[dst][: block.num_dst_nodes])
            if block.num_edges:
                made[dst] = made[dst] + weight(block.mean(h[src][: block.num_src_nodes]))
        return made


class RGCN(nn.Module):
    """Two layers over the words of packages, and a learned row for every other node."""

    def __init__(self, graph: pgs.Graph, words: int) -> None:
        super().__init__()
        self.words = nn.EmbeddingBag(words + 1, HIDDEN, mode="sum", padding_idx=words)
        others = {kind: count for kind, count in graph.num_nodes.items() if kind != "package"}
        self.rows = nn.ModuleDict({kind: nn.Embedding(n, HIDDEN) for kind, n in others.items()})
        self.layers = nn.ModuleList([Layer(graph), Layer(graph)])
        # An edge has a direction, and so have scores.
        self.turn = nn.Linear(HIDDEN, HIDDEN)

    def forward(self, batch: Any) -> dict[Any, torch.Tensor]:
        """The scores of a batch's pairs, by relation: products of their rows."""
        minibatch = batch.minibatch
        h = {"package": self.words(minibatch.x["package"])}
        h |= {kind: table(minibatch.input_nodes[kind]) for kind, table in self.rows.items()}
        for hop, layer in zip(minibatch.blocks, self.layers, strict=True):
            h = layer(hop, h)
            if layer is not self.layers[-1]:
                h = {kind: rows.relu() for kind, rows in h.items()}
        rows, turned = h["package"], self.turn(h["package"])
        ends = batch.edge_label_index.items()
        return {kind: (turned[src] * rows[dst]).sum(1) for kind, (src, dst) in ends}


def with_reverses(
    predicted: Mapping[Any, Ends], others: Mapping[Any, Ends], nodes: Mapping[str, int]
) -> tuple[pgs.Graph, dict[Any, Any]]:
    """The graph of these edges and of their reverses, and the reverse of each that is predicted."""
    edges, reverse = {**predicted, **others}, {}
    for (src, name, dst), ends in list(edges.items()):
        back = dst, f"rev_{name}", src
        edges[back] = ends[::-1]
        if (src, name, dst) in predicted:
            reverse[src, name, dst] = back
    return pgs.Graph.from_coo(edges, num_nodes=nodes), reverse


def train(
    graph: pgs.Graph,
    reverse: Mapping[Any, Any],
    fanout: int,
    words: torch.Tensor,
    arguments: argparse.Namespace,
) -> RGCN:
    """A model that tells edges of the relations in ``reverse`` from others."""
    torch.manual_seed(0)
    # The number of words stands where a package has no more.
    model = RGCN(graph, int(words.max()))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    edges = {kind: torch.randperm(graph.num_edges[kind]) for kind in reverse}
    total = sum(map(len, edges.values()))
    share = min(1.0, (arguments.edges or total) / total)
    loader = LinkLoader(
        graph,
        {kind: ids[: int(len(ids) * share)] for kind, ids in edges.items()},
        [fanout, fanout],
        batch_size=arguments.batch_size,
        shuffle=True,
        negative_sampling=NegativeSampling("structural"),
        exclude="reverse_types",
        reverse_etypes=reverse,
        features={"x": {"package": words}},
    )
    for epoch in range(arguments.epochs):
        start, total_loss = time.perf_counter(), 0.0
        for batch in loader:
            scores = model(batch)
            loss = functional.binary_cross_entropy_with_logits(
                torch.cat(list(scores.values())),
                torch.cat([batch.edge_label[kind] for kind in scores]),
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total_loss += loss.item()
        seconds = time.perf_counter() - start
        print(f"epoch {epoch}: loss {total_loss / len(loader):.3f}, {seconds:.1f} s")
    return model


def judge(
    model: RGCN, graph: pgs.Graph, fanout: int, pairs: torch.Tensor, words: torch.Tensor
) -> tuple[float, float]:
    """AUC and hits@10 of the first of each 1 + OTHERS pairs, which need be no edges."""
    model.eval()
    # Types tell what to sample around; that of what is to be predicted counts nothing.
    kind = next(iter(graph.edge_types))
    batches = []
    with torch.no_grad():
        for batch in LinkLoader(
            graph,
            {kind: pairs},
            [fanout, fanout],
            batch_size=500 * (1 + OTHERS),
            seed=1,
            negative_sampling=None,
            exclude=None,
            features={"x": {"package": words}},
        ):
            batches.append(model(batch)[kind].view(-1, 1 + OTHERS))
    scores = torch.cat(batches)
    ranks = rank_scores(scores[:, 0], scores[:, 1:])
    return ranks.auc, ranks.hits(10)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--edges", type=int, help="edges of an epoch, all by default")
    parser.add_argument("--tested", type=int, default=5000, help="hidden edges that are told apart")
    parser.add_argument("--batch-size", type=int, default=2048)
    arguments = parser.parse_args()

    torch.manual_seed(0)
    data = datasets.debian()
    words = torch.from_numpy(data.words())
    src, dst, kind_of, source, maintainer = (
        torch.from_numpy(each)
        for each in (data.src, data.dst, data.kind, data.source, data.maintainer)
    )
    # The hidden edges are in no graph that is trained on; pairs and their reverses go together.
    pair = torch.minimum(src, dst) * len(words) + torch.maximum(src, dst)
    kinds, kind = torch.unique(pair, return_inverse=True)
    hidden = (torch.rand(len(kinds)) < 0.1)[kind]

    tested = hidden.nonzero().squeeze(1)
    tested = tested[torch.randperm(len(tested))[: arguments.tested]]
    ends = src[tested], dst[tested]
    others = NegativeSampling("structural", OTHERS).draw(data.graph(), *ends, seed=1)
    told = torch.cat([ends[1].unsqueeze(1), others], dim=1)
    pairs = torch.stack([ends[0].unsqueeze(1).expand_as(told).flatten(), told.flatten()])

    seen, everyone = ~hidden, torch.arange(data.num_nodes)
    of_kinds = {
        ("package", name, "package"): (src[seen & (kind_of == i)], dst[seen & (kind_of == i)])
        for i, name in enumerate(data.kinds)
    }
    beside = {
        ("source", "builds", "package"): (source, everyone),
        ("maintainer", "maintains", "package"): (maintainer, everyone),
    }
    nodes = {"package": data.num_nodes}
    more = {"source": int(source.max()) + 1, "maintainer": int(maintainer.max()) + 1}
    # With types each number counts for each of the twelve that lead to packages.
    runs = {
        "without types": ({("package", "names", "package"): (src[seen], dst[seen])}, {}, nodes, 10),
        "with types": (of_kinds, beside, nodes | more, 3),
    }
    for name, (predicted, besides, counts, fanout) in runs.items():
        print(f"{name}:")
        graph, reverse = with_reverses(predicted, besides, counts)
        model = train(graph, reverse, fanout, words, arguments)
        auc, hits = judge(model, graph, fanout, pairs, words)
        print(f"AUC {name}: {auc:.1%}")
        print(f"hits@10 of {OTHERS + 1} {name}: {hits:.1%}")


if __name__ == "__main__":
    main()
