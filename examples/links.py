"""Link prediction on the Debian packages, in plain PyTorch.

Predicts which packages a package names as what it needs or goes well with. A tenth of the edges is
hidden; GraphSAGE reads the words of packages and learns from the other edges, each beside a node
that it does not lead to. An edge that is to be predicted, and its reverse, are not sampled.

    python examples/links.py --epochs 3

Prints the loss of each epoch, and at the end the area under the curve (AUC) of hidden edges against
nodes that are drawn for them, about 97 % (50 % for guessing), and how many of them are among the
10 best of 100 (hits@10), about 93 % (10 % for guessing), and their mean reciprocal rank (MRR). An
epoch takes about 20 seconds of a core.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import torch
from torch import nn
from torch.nn import functional

import pygsampler as pgs
from pygsampler import datasets
from pygsampler.evaluate import rank_scores
from pygsampler.torch import LinkBatch, LinkLoader, NegativeSampling

HIDDEN = 64
FANOUTS = [10, 10]
OTHERS = 99


class Layer(nn.Module):
    """A layer that adds a node's own row and the mean of its in-neighbors' rows."""

    def __init__(self) -> None:
        super().__init__()
        self.own = nn.Linear(HIDDEN, HIDDEN)
        self.of = nn.Linear(HIDDEN, HIDDEN, bias=False)

    def forward(self, block: Any, h: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.own(h[: block.num_dst_nodes]) + self.of(block.mean(h))
        return made


class SAGE(nn.Module):
    """Two layers over the words of packages, and the score of a pair: its rows' product."""

    def __init__(self, words: int) -> None:
        super().__init__()
        self.words = nn.EmbeddingBag(words + 1, HIDDEN, mode="sum", padding_idx=words)
        self.layers = nn.ModuleList([Layer(), Layer()])
        # An edge has a direction, and so have scores.
        self.turn = nn.Linear(HIDDEN, HIDDEN)

    def forward(self, batch: LinkBatch) -> torch.Tensor:
        h = self.words(batch.minibatch.x)
        for block, layer in zip(batch.minibatch.blocks, self.layers, strict=True):
            h = layer(block, h)
            if layer is not self.layers[-1]:
                h = h.relu()
        assert batch.edge_label_index is not None
        src, dst = batch.edge_label_index
        score: torch.Tensor = (self.turn(h)[src] * h[dst]).sum(1)
        return score


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--edges", type=int, help="edges of an epoch, all by default")
    parser.add_argument("--batch-size", type=int, default=2048)
    arguments = parser.parse_args()

    torch.manual_seed(0)
    data = datasets.debian()
    x = torch.from_numpy(data.words())
    src, dst = torch.from_numpy(data.src), torch.from_numpy(data.dst)
    # The hidden edges are in no graph that is trained on; pairs and their reverses go together.
    pair = torch.minimum(src, dst) * len(x) + torch.maximum(src, dst)
    kinds, kind = torch.unique(pair, return_inverse=True)
    hidden = (torch.rand(len(kinds)) < 0.1)[kind]
    seen_src, seen_dst = src[~hidden], dst[~hidden]
    count = len(seen_src)
    graph = pgs.Graph.from_coo(
        torch.cat([seen_src, seen_dst]), torch.cat([seen_dst, seen_src]), num_nodes=len(x)
    )

    model = SAGE(data.num_features)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    loader = LinkLoader(
        graph,
        torch.randperm(count)[: arguments.edges],
        FANOUTS,
        batch_size=arguments.batch_size,
        shuffle=True,
        negative_sampling=NegativeSampling("structural"),
        exclude="reverse_id",
        reverse_eids=torch.arange(2 * count).roll(count),
        features={"x": x},
    )
    for epoch in range(arguments.epochs):
        start, total = time.perf_counter(), 0.0
        model.train()
        for batch in loader:
            assert batch.edge_label is not None
            loss = functional.binary_cross_entropy_with_logits(model(batch), batch.edge_label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: loss {total / len(loader):.3f}, {time.perf_counter() - start:.1f} s")

    model.eval()
    wanted = torch.stack([src[hidden], dst[hidden]])
    wanted = wanted[:, torch.randperm(wanted.shape[1])[:5000]]
    positive, negative = [], []
    with torch.no_grad():
        for batch in LinkLoader(
            graph,
            wanted,
            FANOUTS,
            batch_size=500,
            seed=1,
            negative_sampling=NegativeSampling("structural", OTHERS),
            exclude=None,
            features={"x": x},
        ):
            scores = model(batch)
            edges = len(batch.input_id)
            positive.append(scores[:edges])
            negative.append(scores[edges:].view(edges, OTHERS))
    ranks = rank_scores(torch.cat(positive), torch.cat(negative))
    print(f"AUC: {100 * ranks.auc:.1f}%")
    print(f"hits@10 of {OTHERS + 1}: {100 * ranks.hits(10):.1f}%")
    print(f"MRR: {ranks.mrr:.3f}")


if __name__ == "__main__":
    main()
