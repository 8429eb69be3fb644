"""``rank``: ranks of true links among candidates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import torch

from pygsampler._engine.checks import integer
from pygsampler._engine.progress import progress_counter
from pygsampler._graph.graph import Graph
from pygsampler.evaluate.arguments import candidates_of, link_ends, node_counts, one_of
from pygsampler.evaluate.edge_filter import EdgeFilter, filter_relations
from pygsampler.evaluate.ranks import EXACT, TIES, Counts, Excluded, Ranks, Ties
from pygsampler.evaluate.scorers import Function, ScoreFunction, Scorer, scorer_of

if TYPE_CHECKING:
    from pygsampler._engine.progress import Progress
    from pygsampler._graph.schema import EdgeType

__all__ = ["rank"]

_SIDES = "src", "dst", "both"
# Pairs that are scored at once, on the CPU and on a GPU: by one matrix product, whose scores then
# fit into a core's cache, and by functions, which need rows of both ends for each pair.
_PRODUCT_CHUNK = 1 << 20, 1 << 25
_FUNCTION_CHUNK = 1 << 16, 1 << 20

Side = Literal["src", "dst", "both"]
# The scores of a block's links, the scores of candidates, [links, candidates], and the candidates
# that are left out: rows and columns, or a mask.
Tile = tuple[torch.Tensor, torch.Tensor, Excluded]


@torch.no_grad()
def rank(
    embeddings: Any,
    links: Any,
    *,
    candidates: Any = None,
    side: Side = "dst",
    filters: Graph | Sequence[Graph] | None = None,
    decoder: ScoreFunction | None = None,
    edge_type: EdgeType | str | None = None,
    ties: Ties = "mean",
    chunk: int | None = None,
    progress: Progress = False,
) -> Ranks:
    """Ranks each true link (u, v) among the pairs (u, w), or (w, v), of all candidates w.

    The rank is one plus the number of candidates with a higher score. Gradients are not recorded.

    Parameters
    ----------
    embeddings : array of shape [nodes, d], pair of arrays, mapping or callable
        One row of numbers for each node; of a pair, the first has the rows of nodes as sources, and
        the second as destinations. A mapping has an array for each node type, and ``edge_type``
        says which two are meant. float16, bfloat16, float32 or float64, on the device that
        computes. A callable ``f(src, dst)`` gets the ids of both ends of pairs, int64 tensors of
        shape [pairs] on the device of ``links``, and returns their scores, [pairs] or [pairs, 1].
    links : array of int32 or int64, shape [2, links], or a pair of arrays
        The sources and the destinations of the true links.
    candidates : array of int32 or int64, optional
        The nodes to compare with: of shape [n], each at most once, for all links; or of shape
        [links, n] for each link its own, such as the negatives of a benchmark, where a node may
        occur several times. All nodes by default. With ``side="both"`` a pair of arrays: for
        the sources and for the destinations.
    side : str
        The end that candidates replace: ``"dst"``, ``"src"``, or ``"both"`` in turns.
    filters : Graph or sequence of Graph, optional
        Graphs of known edges. Candidates that would make one of these edges are left out: the
        filtered setting of Bordes et al., "Translating Embeddings for Modeling Multi-relational
        Data" (2013), section 4.2. The true link itself always stays.
    decoder : callable, optional
        A function ``f(x_src, x_dst)`` of the rows of both ends of pairs, each of shape
        [pairs, d], that returns their scores, of shape [pairs] or [pairs, 1]. By default the dot
        product of the two rows, which is many times as fast.
    edge_type : (str, str, str) or str, optional
        With a heterogeneous graph, or a mapping, the edge type of the links.
    ties : str
        The rank of a link among candidates of the same score: the ``"mean"`` of the best and the
        worst one, as OGB has it, the best (``"optimistic"``) or the worst (``"pessimistic"``).
    chunk : int, optional
        The number of pairs that are scored at once, at least one of a link and its true end, which
        bounds the memory: about 12 bytes a pair for dot products with shared candidates, else also
        the rows of each pair. The same number of known edges is looked up at once, or the edges of
        one node. By default 2^20 on the CPU and 2^25 on a GPU, or 2^16 and 2^20 where each pair
        needs rows.
    progress : bool or callable
        True shows a tqdm bar when it takes more than two seconds; a function is called with the
        links done and in all.

    Returns
    -------
    Ranks
        On the device that computed the scores.

    Raises
    ------
    TypeError, ValueError, IndexError
        For other types, shapes and dtypes; for embeddings and graphs of different numbers of nodes;
        for ids out of range. ValueError for a score that is NaN, which would compare as the best.

    Notes
    -----
    A candidate that is the link's own end is left out. Without ``filters`` all others count, known
    edges and the node at the other end among them. Edges are looked up on the CPU, in the rows of
    the graph; for destinations in the rows of its out-edges, which the graph builds at the first
    use and keeps. Rows of 16 bits are multiplied in float32. ``chunk`` changes no rank, except
    that a matrix product may round scores differently.

    For DistMult with one row r per edge type pass ``(x * r, x)``: dot products of these pairs are
    its scores, at the speed of a matrix product. A decoder that is a module with dropout has to be
    in evaluation mode: ``decoder.eval()``.
    """
    one_of(ties, "ties", TIES)
    one_of(side, "side", _SIDES)
    if chunk is not None:
        integer(chunk, "chunk", 1)
    relations = filter_relations(filters, edge_type)
    end_ids = link_ends(links)
    scorer = scorer_of(embeddings, decoder, edge_type, relations, end_ids[0].device)
    sides = ("src", "dst") if side == "both" else (side,)
    per_side = candidates_of(candidates, side == "both", len(end_ids[0]))
    nodes = dict(zip(sides, per_side, strict=True))
    counts = node_counts(scorer.counts, relations, end_ids, nodes)
    results = []
    with progress_counter(progress, len(end_ids[0]) * len(sides), "ranking", " links") as step:
        for name, ids in nodes.items():
            edges = EdgeFilter(relations, end_ids, int(name == "dst"), counts)
            results.append(_rank_side(scorer, edges, ids, chunk, step).ranks(ties))
    if side != "both":
        return results[0]
    src, dst = results
    return Ranks(
        torch.stack([src.ranks, dst.ranks]),
        torch.stack([src.num_candidates, dst.num_candidates]),
    )


def _rank_side(
    scorer: Scorer,
    edges: EdgeFilter,
    candidates: torch.Tensor | None,
    chunk: int | None,
    step: Callable[[int], object],
) -> Counts:
    """Compares all links with candidates in the place of one end."""
    device = scorer.device
    own = candidates is not None and candidates.dim() == 2
    sizes = _FUNCTION_CHUNK if own or isinstance(scorer, Function) else _PRODUCT_CHUNK
    most = chunk or sizes[device.type == "cuda"]
    # The sides of a rectangle of that many pairs, a fourth as high as a square.
    height = max(1, math.isqrt(most) // 4)
    # Columns that are no candidates: the true ends, in products one for each link.
    more = height
    tiles: Callable[..., Iterator[Tile]] = partial(_shared_tiles, nodes=None, places=None)
    if candidates is not None and own:
        height, more = max(height, most // (candidates.shape[1] + 1)), 1
        tiles = partial(_per_link_tiles, nodes=candidates.to(device))
    elif candidates is not None:
        places = torch.full((edges.count,), -1)
        places[candidates.cpu().long()] = torch.arange(len(candidates))
        tiles = partial(_shared_tiles, nodes=candidates.to(device), places=places)
    counts = Counts(len(edges.fixed), device)
    for block in edges.blocks(height, most):
        width = max(1, min(most // (block.stop - block.start) - more, EXACT))
        is_nan = torch.zeros(block.stop - block.start, dtype=torch.bool, device=device)
        for true, scores, excluded in tiles(scorer, edges, block, width=width):
            is_nan |= scores.amax(1).isnan() | true.isnan()
            # NaN is neither above nor below anything, so that it does not count.
            if isinstance(excluded, tuple):
                scores[excluded] = math.nan
            else:
                scores.masked_fill_(excluded, math.nan)
            counts.add(block, true, scores)
            counts.exclude(block, excluded)
        # A GPU is waited for once a block: the bar shows what is done, and Ctrl-C is heard.
        if bool(is_nan.any()):
            link = block.start + int(is_nan.nonzero()[0])
            raise ValueError(f"scores: expected numbers, got NaN for links[:, {link}]")
        step(block.stop - block.start)
    return counts


def _shared_tiles(
    scorer: Scorer,
    edges: EdgeFilter,
    block: slice,
    *,
    nodes: torch.Tensor | None,
    places: torch.Tensor | None,
    width: int,
) -> Iterator[Tile]:
    """Yields scores of a block of links with the candidates that all links share.

    ``nodes`` are the candidates, all if None, and ``places`` has the column of each node.
    """
    count = edges.count if nodes is None else len(nodes)
    keys = edges.keys(block)
    link, column = keys // edges.count, keys % edges.count
    if places is not None:
        column = places[column]
        link, column = link[column >= 0], column[column >= 0]
    # In the order of columns a tile's are one range, whose ends are known to the host.
    column, order = column.sort()
    starts = range(0, count, width)
    bounds = torch.searchsorted(column, torch.tensor([*starts, count])).tolist()
    link, column = _sent(link[order], scorer.device), _sent(column, scorer.device)
    fixed, true = _sent(edges.fixed[block], scorer.device), _sent(edges.true[block], scorer.device)
    for start, first, last in zip(starts, bounds, bounds[1:], strict=False):
        tile = slice(start, min(start + width, count))
        scores = scorer.shared(edges.place, fixed, true, tile if nodes is None else nodes[tile])
        yield *scores, (link[first:last], column[first:last] - start)


def _per_link_tiles(
    scorer: Scorer, edges: EdgeFilter, block: slice, *, nodes: torch.Tensor, width: int
) -> Iterator[Tile]:
    """Yields scores of a block of links with the candidates that each link has of its own."""
    fixed, true = _sent(edges.fixed[block], scorer.device), _sent(edges.true[block], scorer.device)
    keys = _sent(edges.keys(block), scorer.device)
    first = torch.arange(len(fixed), device=scorer.device).unsqueeze(1) * edges.count
    for start in range(0, nodes.shape[1], width):
        columns = nodes[block, start : start + width].long()
        scores = scorer.per_link(edges.place, fixed, torch.cat([true.unsqueeze(1), columns], 1))
        wanted = first + columns
        # The clamped place exists: there is a key for each link's true end.
        at = torch.searchsorted(keys, wanted).clamp(max=len(keys) - 1)
        yield scores[:, 0], scores[:, 1:], keys[at] == wanted


def _sent(ids: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Returns a copy on the device; the host does not wait for a copy to a GPU."""
    if device.type != "cuda":
        return ids.to(device)
    return ids.pin_memory().to(device, non_blocking=True)
