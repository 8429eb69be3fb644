"""GraphSAINT (Zeng et al., 2020): subgraphs with the chances of their nodes and edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pygsampler._engine.checks import integer
from pygsampler.programs import program

if TYPE_CHECKING:
    from pygsampler.programs import GraphMatrix, Matrix, NodeList, Vector

__all__ = ["saint_edge", "saint_node", "saint_walk"]


@program
def saint_node(
    A: GraphMatrix,
    seeds: NodeList,
    *,
    budget: int,
    by: Literal["out_degree", "in_degree", "weights"] = "out_degree",
) -> Any:
    """GraphSAINT's node sampler: nodes by degree, and the edges among them.

    Parameters
    ----------
    budget : int
        Draws with replacement; the paper has 4500 to 8000. The seeds play no part.
    by : str
        What draws follow: ``"out_degree"``, which counts as 1 where it is 0, as in DGL;
        ``"in_degree"``; or ``"weights"``, the sum of the squared values of a node's out-edges,
        which are those of ``weight=``: the paper's rule.

    Notes
    -----
    The edge u to v has the value p(u, v) / p(v), by which its coefficient is to be divided, and
    ``extra["node_norm"]`` is p(v), the chance of node v to be in a subgraph: the loss of v is to
    be divided by p(v) and the number of nodes. Both are exact: with q(v) the share of v, they
    are p(v) = 1 - (1 - q(v))^n, and 1 - (1 - q(u))^n - (1 - q(v))^n + (1 - q(u) - q(v))^n, for a
    loop p(v).
    """
    if by == "out_degree":
        d = A.count(axis=1).maximum(1)
    elif by == "in_degree":
        d = A.degree()
    elif by == "weights":
        d = (A * A).sum(axis=1)
    else:
        raise ValueError(f"by: expected 'out_degree', 'in_degree' or 'weights', got {by!r}")
    return sampled_subgraph(A, d, budget)


def sampled_subgraph(A: GraphMatrix, d: Vector, budget: int) -> Any:
    """The subgraph of so many draws of nodes by d, with its exact chances."""
    integer(budget, "budget", 0, 2**31 - 1)
    q = d / d.sum()
    V = d.draw(budget, replace=True).unique()
    G = A.induce(V)
    missed = (1 - q) ** budget
    both = G.spread(q, axis=1).add(q, axis=0)
    return _normed(A, V, G, missed, (1 - both).maximum(0) ** budget)


@program
def saint_edge(
    A: GraphMatrix,
    seeds: NodeList,
    *,
    budget: int,
    method: Literal["draws", "independent"] = "draws",
) -> Any:
    """GraphSAINT's edge sampler: edges by 1 / d(u) + 1 / d(v), and all edges among their ends.

    Parameters
    ----------
    budget : int
        Edges, in the mean for ``"independent"``; the paper has 2000 to 6000. The seeds play no
        part.
    method : str
        ``"draws"``: with replacement, as in the authors' code. ``"independent"``: each edge by
        itself with the chance min(1, budget q), as in the paper's theorem, at the cost of a pass
        over the graph.

    Notes
    -----
    For a symmetric graph without parallel edges, whose edge between u and v, in both directions, is
    one; loops are not drawn by ``"independent"``. Values and ``extra["node_norm"]`` are those of
    ``saint_node``, exact for such graphs. A draw is a node that has edges, and one of its edges,
    both uniform: which has that law.
    """
    integer(budget, "budget", 0, 2**31 - 1)
    d = A.degree()
    some, d = d > 0, d.maximum(1)
    n = some.sum()
    if method == "draws":
        # The probabilities that one draw has v as an end, and that it is the edge.
        ends = some / n + (_loopless(A, A).div(d, axis=0) / n).sum(axis=1)
        V = A.walk(some.draw(budget, replace=True), 1).unique()
        G = A.induce(V)
        either = G.spread(ends, axis=1).add(ends, axis=0) - _weight(A, G, d) / n
        return _normed(A, V, G, (1 - ends) ** budget, (1 - either).maximum(0) ** budget)
    if method != "independent":
        raise ValueError(f"method: expected 'draws' or 'independent', got {method!r}")
    p = (_weight(A, A, d) / n * budget).minimum(1)
    missed = (1 - p).log().sum(axis=0)
    own = A.number()
    once = A.spread(own, axis=1).sub(own, axis=0) < 0
    # Each edge of p has a random number of its own.
    E = A.where((p.random() < p) & once)
    V = E.row() | E.column()[E.count(axis=0) > 0]
    G = A.induce(V)
    gone = 1 - (_weight(A, G, d) / n * budget).minimum(1)
    # Both ends are missed where all edges at them are, this one but once.
    neither = (G.spread(missed, axis=1).add(missed, axis=0) - gone.log()).exp()
    return _normed(A, V, G, missed.exp(), (gone <= 0).select(0, neither))


@program
def saint_walk(A: GraphMatrix, seeds: NodeList, *, roots: int, length: int) -> Any:
    """GraphSAINT's walk sampler: what walks from uniform roots meet, and the edges among it.

    Parameters
    ----------
    roots : int
        Walks, from nodes with replacement; the paper has 1250 to 6000. The seeds play no part.
    length : int
        Steps of a walk; the paper has 2, and 4 for Reddit.

    Notes
    -----
    Steps go against the edges, along them in a graph that is reversed; in a symmetric graph it is
    one. A walk that finds no edge stays. The chances of nodes and edges are those of the walks,
    of which there is no short formula: ``saint_norms`` estimates them.
    """
    integer(roots, "roots", 0, 2**31 - 1)
    integer(length, "length", 0, 2**31 - 1)
    return A.induce(A.walk(A.roots(roots), length).unique())


def _loopless(A: GraphMatrix, G: Matrix) -> Matrix:
    """The value 1 for each edge that is no loop, 0 for loops."""
    own = A.number()
    apart: Matrix = G.spread(own, axis=1).sub(own, axis=0) != 0
    return apart


def _weight(A: GraphMatrix, G: Matrix, d: Vector) -> Matrix:
    """The weight 1 / d(u) + 1 / d(v) of each edge, 0 of loops."""
    weight: Matrix = _loopless(A, G) * G.spread(1 / d, axis=1).add(1 / d, axis=0)
    return weight


def _normed(A: GraphMatrix, V: NodeList, G: Matrix, missed: Vector, neither: Matrix) -> Any:
    """The subgraph with its chances, from those that a node and that both ends are missed."""
    joint = neither.sub(missed, axis=1).sub(missed, axis=0) + 1
    value = _loopless(A, G).select(joint.div(1 - missed, axis=0), 1)
    return V, value, {"node_norm": (1 - missed)[V]}
