"""PASS' gradients: how likely the edges that were drawn are by the tensors as they are now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygsampler._engine.checks import describe
from pygsampler._graph.graph import Graph, is_homogeneous

if TYPE_CHECKING:
    import torch

__all__ = ["pass_ratio"]


def pass_ratio(
    graph: Graph,
    block: Any,
    x: torch.Tensor,
    *,
    W1: torch.Tensor,
    W2: torch.Tensor,
    W3: torch.Tensor,
    weight: torch.Tensor | None = None,
) -> torch.Tensor:
    """Returns p over its value at the draw, by which PASS (Yoon et al., 2021) learns.

    A destination's sum over all edges of p h is estimated by the mean over its draws of ratio h.
    While the sampler has the same tensors the ratio is 1, and the sum's gradient is the paper's,
    the mean over draws of (dL/dh_v . h_u) grad log p. Batches that a loader has sampled ahead, by
    older tensors, count by how likely they are now, and both stay unbiased:

        ratio = samplers.learned.pass_ratio(graph, block, x, W1=W1, W2=W2, W3=W3)
        heard = block.weighted_sum(h, ratio / K)        # K: the fanout
        ...
        loss.backward()
        optimizer.step()                                # of W1, W2 and W3 too
        sampler.update(W1=W1, W2=W2, W3=W3)

    Parameters
    ----------
    graph : Graph
        That ``pass_sampler`` sampled, here or on a GPU: all edges of the block's destinations are
        read, since p is a share of theirs.
    block : Block
        Of ``pass_sampler`` with ``scope=-1``: other candidates are not known.
    x : tensor of shape [num_nodes, d]
        The features that it samples by, where the tensors are.
    W1, W2, W3 : tensors
        As those of ``pass_sampler``; gradients go to them.
    weight : tensor of shape [edges], optional
        The weights of edges by their ids, where it has ``weight=``.

    Returns
    -------
    torch.Tensor
        The ratio of each edge of the block, shape [num_edges].

    Raises
    ------
    TypeError, ValueError
        For other arguments, naming the argument, and a block without chances of its edges.
    """
    import torch

    from pygsampler._batch.induced_edges import edge_rows, in_edges

    if not is_homogeneous(graph):
        raise TypeError(f"graph: expected a pygsampler.Graph, got {describe(graph)}")
    drawn = getattr(block, "edge_data", {}).get("w")
    if not isinstance(drawn, torch.Tensor):
        raise ValueError(
            f"block: expected a Block of samplers.learned.pass_sampler, got {describe(block)} "
            "without chances of its edges"
        )
    _check(x, "x", (graph.num_nodes, None))
    for name, W in (("W1", W1), ("W2", W2)):
        _check(W, name, (x.shape[1], None))
    _check(W3, "W3", (3,))

    begins, sources, edges = in_edges(graph, block.dst_nodes)
    degrees = begins.diff()
    row, targets = edge_rows(degrees), block.dst_nodes.long()
    # Each node is projected once, and not once for each of its edges.
    nodes, place = torch.unique(torch.cat([targets, sources]), return_inverse=True)
    of_targets, of_sources = place[: len(targets)], place[len(targets) :]
    rows = x[nodes.to(x.device)].to(W1.dtype)
    projected = rows @ W1, rows @ W2
    share = W3.softmax(0)

    def attention(u: torch.Tensor, v: torch.Tensor, third: torch.Tensor) -> torch.Tensor:
        first, second = ((h[u] * h[v]).sum(1) for h in projected)
        score = share[0] * first + share[1] * second + share[2] * third
        return score.relu() + 1e-9

    src, dst = (ends.long() for ends in block.coo())
    # The destinations are the first sources of the block; the others are found by id.
    u = torch.searchsorted(nodes, block.src_nodes.long())[src]
    if weight is None:
        each = 1 / degrees.to(W1.dtype)
        a3, own = each[row], each[dst]
    else:
        _check(weight, "weight", (None,))
        w = weight.to(W1.dtype)
        sums = rows.new_zeros(len(targets)).index_add(0, row, w[edges])
        a3, own = w[edges] / sums[row], w[block.edge_ids.long()] / sums[dst]
    candidates = attention(of_sources, of_targets[row], a3)
    total = candidates.new_zeros(len(targets)).index_add(0, row, candidates)
    p = attention(u, of_targets[dst], own) / total[dst]
    return p / drawn.to(p.dtype)


def _check(value: Any, where: str, shape: tuple[int | None, ...]) -> None:
    import torch

    if not isinstance(value, torch.Tensor):
        raise TypeError(f"{where}: expected a tensor, got {describe(value)}")
    found = tuple(value.shape)
    if len(found) != len(shape) or any(
        n is not None and n != m for n, m in zip(shape, found, strict=True)
    ):
        wanted = ", ".join("any" if n is None else str(n) for n in shape)
        raise ValueError(f"{where}: expected shape [{wanted}], got {list(found)}")
