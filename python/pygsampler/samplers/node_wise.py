"""Node-wise algorithms: each destination draws among its own edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pygsampler.programs import program
from pygsampler.samplers.hop_order import innermost_first

if TYPE_CHECKING:
    from pygsampler.programs import GraphMatrix, Matrix, NodeList

__all__ = ["graphsage", "kgcn", "vrgcn"]


@program
def graphsage(
    A: GraphMatrix, seeds: NodeList, *, fanouts: Sequence[int], replace: bool = False
) -> list[Matrix]:
    """GraphSAGE (Hamilton et al., 2017): uniform neighbors, as ``PGSampler(fanouts)``.

    Parameters
    ----------
    fanouts : sequence of int
        Edges of each destination, outermost hop first; the paper has 10 and 25.
    replace : bool
        Draw with replacement.
    """
    blocks: list[Any] = []
    for K in innermost_first(fanouts, "fanouts"):
        B = A[:, seeds].individual_sample(K, replace=replace)
        blocks.insert(0, B)
        seeds = seeds | B.row()
    return blocks


@program
def kgcn(A: GraphMatrix, seeds: NodeList, *, fanouts: Sequence[int]) -> list[Matrix]:
    """KGCN (Wang et al., 2019): always ``K`` draws, distinct where there are as many edges.

    They are drawn anew in each batch, as the paper says; its code draws once: ``kgcn_static``.

    Parameters
    ----------
    fanouts : sequence of int
        Draws of each destination, outermost hop first; the paper has 4 to 8. A destination with
        fewer edges draws with replacement, one without any has none.
    """
    blocks: list[Any] = []
    for K in innermost_first(fanouts, "fanouts"):
        C = A[:, seeds]
        # The two kinds of columns draw at sites of their own, and one block has both.
        few = C.spread(C.count(axis=0) < K, axis=0)
        B = C.where(~few).individual_sample(K)
        B = B.merge(C.where(few).individual_sample(K, replace=True))
        blocks.insert(0, B)
        seeds = seeds | B.row()
    return blocks


@program
def vrgcn(A: GraphMatrix, seeds: NodeList, *, fanouts: Sequence[int]) -> list[Matrix]:
    """VR-GCN (Chen et al., 2018): a few uniform neighbors, weighted to stand for all.

    Parameters
    ----------
    fanouts : sequence of int
        Edges of each destination, outermost hop first; the paper has 2.

    Notes
    -----
    ``block.edge_data["w"]`` is d / K of the sampled edges of a destination of degree d: the factor
    of the aggregated difference to the history.
    """
    blocks: list[Any] = []
    for K in innermost_first(fanouts, "fanouts"):
        C = A[:, seeds]
        B = C.individual_sample(K)
        blocks.insert(0, B.spread(C.count(axis=0) / B.count(axis=0), axis=0))
        seeds = seeds | B.row()
    return blocks
