"""Ranks of links among all nodes, by ``pygsampler.evaluate.rank``, by plain torch and by PyG::

    python -m benchmarks.ranking --quick
    python -m benchmarks.ranking
    python -m benchmarks.ranking --device cuda --links 10000

Dot products of rows of one graph's nodes. Plain torch is what evaluation scripts write: a product
for each 64 links, known edges set to -inf one link after another, and two comparisons. PyG is
``KGEModel.test`` of DistMult, without known edges, which ranks one link at a time; it gets fewer
links, and its time is that of as many links as the others have. Ranks are compared before the clock
starts; rows are whole numbers, so that they are equal. The ways take turns; a time is the least of
the rounds.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

import pygsampler as pgs
from pygsampler._cli.bench.check import CheckError
from pygsampler.evaluate import Ranks, rank

from . import environment, report

BATCH = 64
PYG_LINKS = 20


def plain(
    x: torch.Tensor, links: torch.Tensor, known: Sequence[torch.Tensor] | None
) -> torch.Tensor:
    """The ranks as scripts compute them; ``known`` has the out-neighbors of each link's source."""
    ranks = []
    for start in range(0, links.shape[1], BATCH):
        src, dst = links[:, start : start + BATCH]
        scores = x[src] @ x.T
        true = scores.gather(1, dst.unsqueeze(1))
        if known is not None:
            for row, nodes in zip(scores, known[start : start + BATCH], strict=True):
                row[nodes] = -torch.inf
        scores.scatter_(1, dst.unsqueeze(1), -torch.inf)
        ranks.append(((scores > true).sum(1) + (scores >= true).sum(1)) / 2 + 1)
    return torch.cat(ranks)


def of_pyg(x: torch.Tensor) -> Any:
    """DistMult of PyG whose scores are dot products of the rows."""
    with warnings.catch_warnings():
        # PyG's import uses what torch is about to drop.
        warnings.simplefilter("ignore")
        from torch_geometric.nn.kge import DistMult
    model = DistMult(num_nodes=len(x), num_relations=1, hidden_channels=x.shape[1]).to(x.device)
    with torch.no_grad():
        model.node_emb.weight.copy_(x)
        model.rel_emb.weight.fill_(1)
    return model


def check(options: argparse.Namespace, ways: dict[str, Callable[[], Any]]) -> None:
    """Raises CheckError unless all ways give the same ranks."""
    for setting in ("all", "filtered"):
        expected, found = ways[f"plain torch, {setting}"](), ways[f"rank, {setting}"]()
        if not expected.double().equal(found.ranks):
            raise CheckError(f"ranks differ from plain torch, {setting}")
    if options.pyg:
        few: dict[str, Ranks] = {}
        for ties in ("optimistic", "pessimistic"):
            few[ties] = options.rank_few(ties)
        mean_rank, _, _ = ways["PyG, all"]()
        # PyG breaks ties by the sort's order, and counts from 0.
        if not few["optimistic"].mean_rank <= mean_rank + 1 <= few["pessimistic"].mean_rank:
            raise CheckError(f"mean rank: PyG has {mean_rank + 1}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0, or 1 after a failed check."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(given)
    if options.quick:
        options.nodes, options.links, options.rounds = 500, 100, 1
    record = environment.describe(given, "benchmarks.ranking", note=options.note)
    print(environment.summary(record), end="\n\n")
    random = torch.Generator().manual_seed(1)
    x = torch.randint(-4, 5, (options.nodes, options.width), generator=random).float()
    edges = torch.randint(0, options.nodes, (2, options.nodes * options.degree), generator=random)
    graph = pgs.Graph.from_coo(*edges, num_nodes=options.nodes)
    links = edges[:, torch.randperm(edges.shape[1], generator=random)[: options.links]]
    order = edges[0].argsort()
    rows = edges[1, order].split(edges[0].bincount(minlength=options.nodes).tolist())
    x, there = x.to(options.device), links.to(options.device)
    known = [rows[u].to(options.device) for u in links[0].tolist()]
    ways: dict[str, Callable[[], Any]] = {
        "plain torch, all": lambda: plain(x, there, None),
        "rank, all": lambda: rank(x, there),
        "plain torch, filtered": lambda: plain(x, there, known),
        "rank, filtered": lambda: rank(x, there, filters=graph),
    }
    few = there[:, :PYG_LINKS]
    if options.pyg:
        model, relations = of_pyg(x), torch.zeros_like(few[0])
        options.rank_few = lambda ties: rank(x, few, ties=ties)
        ways["PyG, all"] = lambda: model.test(few[0], relations, few[1], 1 << 16, log=False)
    try:
        check(options, ways)
    except CheckError as error:
        print(f"refused: {error}", file=sys.stderr)
        return 1
    finish: Callable[[], Any] = torch.cuda.synchronize if x.is_cuda else lambda: None
    least = report.least_times(ways, options.rounds, finish=finish)
    record["rows"] = []
    for name, seconds in least.items():
        share = few.shape[1] if name.startswith("PyG") else options.links
        row = {"way": name, "seconds": seconds, "us a link": 1e6 * seconds / share}
        record["rows"].append(row)
        print(f"  {name:24} {row['us a link']:12.1f} us a link")
    report.keep(record, options.out, "ranking", options.device)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ranking", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a second instead of a minute")
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default: cpu)")
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--width", type=int, default=128, help="numbers of a row")
    parser.add_argument("--degree", type=int, default=20, help="edges by nodes")
    parser.add_argument("--links", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-pyg", dest="pyg", action="store_false", help="without PyG")
    parser.add_argument("--note", help="as in python -m benchmarks")
    parser.add_argument("--out", type=Path, help="folder for ranking.json, ranking-cuda.json")
    return parser


if __name__ == "__main__":
    sys.exit(main())
