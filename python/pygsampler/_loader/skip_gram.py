"""``skip_gram``: what embeddings are trained on, of walks, where they are."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import torch

from pygsampler._batch.html_tables import arrays_html
from pygsampler._engine.checks import boolean, describe, integer
from pygsampler._graph.graph import Graph, is_homogeneous
from pygsampler._loader.rng import BatchId, DrawShape, check_power, draw
from pygsampler.walks.result import Walks

__all__ = ["SkipGram", "skip_gram"]

_MOST_WINDOW = 1 << 12
# The sites of draws in a walk's state: see docs/developer/walk-draws.md.
_NEGATIVES, _WINDOWS = range(2)


class SkipGram(NamedTuple):
    """Pairs of nodes that are near each other on walks, and others that need not be."""

    centres: torch.Tensor
    """A node of a walk for each pair: shape [pairs], in the graph's id dtype."""
    contexts: torch.Tensor
    """One up to ``window`` steps from it: shape [pairs]."""
    negatives: torch.Tensor
    """Nodes drawn for the pair: shape [pairs, negatives]."""

    def __repr__(self) -> str:
        return f"SkipGram({len(self.centres)} pairs, negatives={self.negatives.shape[1]})"

    def _repr_html_(self) -> str:
        return arrays_html(repr(self), self._asdict().items())


def skip_gram(
    graph: Graph,
    walks: Walks[Any],
    window: int,
    *,
    negatives: int = 5,
    power: float = 0.75,
    dynamic: bool = False,
) -> SkipGram:
    """Returns the pairs of skip-gram with negative sampling of walks, on their device.

    Each node of a walk is a centre, and the nodes up to ``window`` steps before and after it are
    its contexts. Pairs are ordered by the position of the centre, then of the context, then by
    walk. Positions behind the end of a walk are in no pair. The call waits for a GPU once, for the
    number of pairs.

        for walks in DataLoader(graph, seeds, pgs.walks.Node2Vec(40, q=0.5), batch_size=512):
            centres, contexts, negatives = skip_gram(graph, walks, 5)
            ...

    Parameters
    ----------
    graph : Graph
        The graph of the walks: negatives are its nodes.
    walks : Walks
    window : int
        1 to 4096; node2vec has 10.
    negatives : int
        Negatives of each pair, 0 or more. They may be the pair's own nodes, or adjacent.
    power : float
        In [0, 1]: a node is drawn by its in-degree to this power, counting one without in-edges as
        one with one; 0 makes all equally likely. The table, 8 bytes per node, is built at the first
        use and stored with the graph, with a copy on each device.
    dynamic : bool
        Each centre draws its own window, from 1 to ``window``, all equally likely: word2vec weights
        near contexts higher in this way.

    Returns
    -------
    SkipGram
        ``centres``, ``contexts``, ``negatives``. They are a function of the walks, of their seed,
        epoch and batch, and of the options: the same on the CPU and on a GPU.

    Raises
    ------
    TypeError, ValueError
        For arguments of another type or value.

    Notes
    -----
    Sources: word2vec (Mikolov et al., 2013, sections 2.2 and 2.3, whose power 3/4 is of how often
    a word occurs), node2vec (Grover and Leskovec, 2016). docs/developer/walk-draws.md has the rule.
    """
    if not is_homogeneous(graph):
        raise TypeError(f"graph: expected a pygsampler.Graph, got {describe(graph)}")
    if not isinstance(walks, Walks):
        raise TypeError(f"walks: expected Walks, got {describe(walks)}")
    walks = walks.torch()
    count = integer(negatives, "negatives", 0)
    window = integer(window, "window", 1, _MOST_WINDOW)
    power = check_power(power)
    boolean(dynamic, "dynamic")
    steps, nodes = walks.length + 1, walks.per_step()
    number = BatchId(walks.seed, walks.epoch, walks.batch)
    centre, context, slot = (of.to(nodes.device) for of in _places(steps, window))
    # A walk ends once, so both are there where the later one is.
    is_pair = nodes[torch.maximum(centre, context)] >= 0
    if dynamic:
        own = draw(nodes, number, _WINDOWS, window, DrawShape(steps * len(walks), steps, 1))
        reach = own.view(len(walks), steps).t() + 1
        is_pair &= (context - centre).abs().unsqueeze(1) <= reach[centre]
    pair, walk = is_pair.nonzero(as_tuple=True)
    places = walk * (2 * window * steps) + slot[pair]
    rows = DrawShape(len(places), 2 * window * steps, count, places)
    table = graph._source._negatives(power) if power and count else None
    others = draw(nodes, number, _NEGATIVES, graph.num_nodes, rows, table)
    return SkipGram(nodes[centre[pair], walk], nodes[context[pair], walk], others)


@functools.lru_cache(maxsize=16)
def _places(steps: int, window: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The places of centre and context in a walk of so many nodes, and the slot of each pair."""
    around = torch.cat([torch.arange(-window, 0), torch.arange(1, window + 1)])
    centre = torch.arange(steps).repeat_interleave(2 * window)
    context = centre + around.repeat(steps)
    slot = ((context >= 0) & (context < steps)).nonzero().squeeze(1)
    return centre[slot], context[slot], slot
