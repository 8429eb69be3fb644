"""``skip_gram``: what embeddings are trained on, of walks, where they are."""

from __future__ import annotations

import functools
from array import array
from typing import TYPE_CHECKING, NamedTuple

import torch

from pygsampler._arrays import devices
from pygsampler._core.checks import boolean, describe, integer
from pygsampler._core.library import call
from pygsampler._sampling.seed import signed_seed
from pygsampler.graph import Graph
from pygsampler.walks import TorchWalks, Walks

if TYPE_CHECKING:
    from pygsampler._graph.derived import Negatives

__all__ = ["SkipGram", "skip_gram"]

_MOST_WINDOW = 1 << 12
# Which draws of a walk's state: docs/randomness.md.
_NEGATIVES, _WINDOWS = range(2)


class SkipGram(NamedTuple):
    """Pairs of vertices that are near each other on walks, and others that need not be."""

    centres: torch.Tensor
    """A vertex of a walk for each pair: shape [pairs], in the graph's id dtype."""
    contexts: torch.Tensor
    """One up to ``window`` steps from it: shape [pairs]."""
    negatives: torch.Tensor
    """Vertices drawn for the pair: shape [pairs, negatives]."""


def skip_gram(
    graph: Graph,
    walks: TorchWalks | Walks,
    window: int,
    *,
    negatives: int = 5,
    power: float = 0.75,
    dynamic: bool = False,
) -> SkipGram:
    """The pairs of skip-gram with negative sampling, of walks: on their device.

    Each vertex of a walk is a centre, and those up to ``window`` steps before and after it are its
    contexts. Pairs stand by the place of the centre, then of the context, then walk by walk.
    Nothing behind the end of a walk is in a pair. A GPU is waited for once, for their number.

        for walks in DataLoader(graph, seeds, pgs.Node2Vec(40, q=0.5), batch_size=512):
            centres, contexts, negatives = skip_gram(graph, walks, 5)
            ...

    Parameters
    ----------
    graph : Graph
        The one that was walked on: negatives are its vertices.
    walks : TorchWalks or Walks
    window : int
        1 to 4096; node2vec has 10.
    negatives : int
        Negatives of each pair, 0 or more. They may be the pair's own vertices, or adjacent.
    power : float
        In [0, 1]: a vertex is drawn by its in-degree to this power, counting one without in-edges
        as one with one; 0 makes all equally likely. The table, 8 bytes a vertex, is made at the
        first use and kept with the graph, with a copy on each device.
    dynamic : bool
        Each centre has a window of its own, from 1 to ``window``, all equally likely: word2vec's
        way to give near contexts more weight.

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
    a word occurs), node2vec (Grover and Leskovec, 2016). docs/randomness.md has the rule.
    """
    if not isinstance(graph, Graph):
        raise TypeError(f"graph: expected a pygsampler.Graph, got {describe(graph)}")
    if not isinstance(walks, (TorchWalks, Walks)):
        raise TypeError(f"walks: expected TorchWalks or Walks, got {describe(walks)}")
    walks = walks.torch()
    count = integer(negatives, "negatives", 0)
    window = integer(window, "window", 1, _MOST_WINDOW)
    power = _power(power)
    boolean(dynamic, "dynamic")
    steps, nodes = walks.length + 1, walks.per_step()
    centre, context, slot = (of.to(nodes.device) for of in _places(steps, window))
    # A walk ends once, so both are there where the later one is.
    is_pair = nodes[torch.maximum(centre, context)] >= 0
    if dynamic:
        own = _drawn(walks, _WINDOWS, window, _Rows(steps * len(walks), steps, 1))
        reach = own.view(len(walks), steps).t() + 1
        is_pair &= (context - centre).abs().unsqueeze(1) <= reach[centre]
    pair, walk = is_pair.nonzero(as_tuple=True)
    places = walk * (2 * window * steps) + slot[pair]
    rows = _Rows(len(places), 2 * window * steps, count, places)
    table = graph._negatives(power) if power and count else None
    drawn = _drawn(walks, _NEGATIVES, graph.num_nodes, rows, table)
    return SkipGram(nodes[centre[pair], walk], nodes[context[pair], walk], drawn)


class _Rows(NamedTuple):
    """``each`` numbers for ``rows`` places, the first or those given, of which a walk has so many
    ``slots``."""

    rows: int
    slots: int
    each: int
    places: torch.Tensor | None = None


def _drawn(
    walks: TorchWalks, site: int, below: int, of: _Rows, by: Negatives | None = None
) -> torch.Tensor:
    """Numbers in [0, below) of the states of walks: shape [rows, count], the dtype of their ids."""
    like = walks.per_step()
    index = _index(like)
    out = like.new_empty((of.rows, of.each))
    about = array(
        "q",
        [
            signed_seed(walks.seed),
            walks.epoch,
            walks.batch,
            site,
            below,
            of.rows,
            of.slots,
            of.each,
            0 if by is None else _address(by, index),
            0 if of.places is None else of.places.data_ptr(),
            out.data_ptr(),
            8 * out.element_size(),
        ],
    )
    address = about.buffer_info()[0]
    if index < 0:
        call("Negatives", address)
    else:
        call("DeviceNegatives", index, address, devices.current_stream(index))
    return out


def _address(by: Negatives, index: int) -> int:
    """Where the table is for the CPU (-1) or a device, which gets a copy that is kept."""
    if index < 0:
        return by.table._address
    copy = by.copies.get(index)
    if copy is None:
        # The host waits for the copy, so it is there for every stream.
        copy = by.copies[index] = by.table.torch().to(torch.device("cuda", index))
    return int(copy.data_ptr())


def _index(tensor: torch.Tensor) -> int:
    """-1 for the CPU, else the number of the device."""
    return tensor.get_device() if tensor.is_cuda else devices.CPU


@functools.lru_cache(maxsize=16)
def _places(steps: int, window: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The places of centre and context in a walk of so many vertices, and the slot of each pair."""
    around = torch.cat([torch.arange(-window, 0), torch.arange(1, window + 1)])
    centre = torch.arange(steps).repeat_interleave(2 * window)
    context = centre + around.repeat(steps)
    slot = ((context >= 0) & (context < steps)).nonzero().squeeze(1)
    return centre[slot], context[slot], slot


def _power(power: float) -> float:
    if isinstance(power, bool) or not isinstance(power, (int, float)):
        raise TypeError(f"power: expected a number, got {describe(power)}")
    if not 0 <= power <= 1:
        raise ValueError(f"power: expected a number in [0, 1], got {power}")
    return float(power)
