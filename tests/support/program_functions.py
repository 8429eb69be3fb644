"""Programs that tests of several engines and faces share."""

from __future__ import annotations

from typing import Any

import pygsampler as pgs


@pgs.program
def ladies(A: Any, seeds: Any, K: int, hops: int) -> Any:
    out: list[Any] = []
    for _ in range(hops):
        C = A[:, seeds]
        p = (C**2).sum(axis=1)
        B = C.collective_sample(K, p)
        B = B.div(p, axis=1)
        B = B.div(B.sum(axis=0), axis=0)
        out.insert(0, B)
        seeds = seeds | B.row()
    return out


@pgs.program
def dots(A: Any, seeds: Any, *, W: Any, v: Any) -> Any:
    C = A[:, seeds]
    X = A.features("rows")
    D = C.individual_sample(3, (C.dot(X[C.row()] @ W, X[C.column()] @ W) * v[0]).relu())
    # Two products: of rows for all nodes, and of rows for the matrix that D was chosen from.
    E = D.dot(X, X) + D.dot(X[C.row()], X[C.column()]) / v[-1]
    return [D.mul(E.abs().sum(axis=1), axis=1)]


@pgs.program
def around(A: Any, seeds: Any) -> Any:
    """A subgraph whose vertices do not begin with the seeds."""
    V = A[:, seeds].row() | seeds
    return V, A[V, V].edata["t"]


@pgs.program
def beside(A: Any, seeds: Any) -> Any:
    """Blocks whose columns are no seeds."""
    B = A[:, A[:, seeds].row()].individual_sample(3)
    return [A[:, B.row()].individual_sample(2), B]
