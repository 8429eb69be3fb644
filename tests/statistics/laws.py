"""P-values of choices whose probabilities are known exactly.

A choice is a row of an array [rows, fanout]: the positions in [0, degree) that one vertex took of
its neighbours, in the order in which they were drawn. Each function returns the probability that a
sampler without any bias gives counts at least as far from their expectation: Pearson's statistic,
with the covariance that the counts have, against the chi-square distribution. Over many seeds these
are uniform on [0, 1] where there is no bias.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import stats

Positions: TypeAlias = npt.NDArray[np.int64]


def chi_square(statistic: float, freedom: int) -> float:
    return float(stats.chi2.sf(statistic, freedom))


def classes(choices: Positions, probabilities: npt.NDArray[np.float64]) -> float:
    """Of counts of classes 0, 1, ... with given probabilities."""
    counts = np.bincount(choices, minlength=len(probabilities))
    expected = probabilities * len(choices)
    assert counts[expected == 0].sum() == 0, "an outcome that cannot be"
    kept = expected > 0
    excess = counts[kept] - expected[kept]
    return chi_square(float((excess**2 / expected[kept]).sum()), int(kept.sum()) - 1)


def several(parts: Iterable[tuple[Positions, npt.NDArray[np.float64]]]) -> float:
    """Of choices of several kinds at once, each with probabilities of its own.

    0 where there is an outcome that cannot be.
    """
    statistic, freedom = 0.0, 0
    for choices, probabilities in parts:
        counts = np.bincount(choices, minlength=len(probabilities))
        kept = probabilities > 0
        expected = probabilities[kept] * len(choices)
        if len(counts) > len(probabilities) or counts[~kept].any():
            return 0.0
        statistic += float(((counts[kept] - expected) ** 2 / expected).sum())
        freedom += int(kept.sum()) - 1
    return chi_square(statistic, freedom)


# ---- one row ---------------------------------------------------------------------------------


def singles(rows: Positions, degree: int) -> float:
    """Each neighbour is in a row's sample with probability fanout / degree.

    Without replacement. Counts of positions are not multinomial, since a row takes each at most
    once: their covariance is a multiple of the projection off the constant, p(1-p) degree /
    (degree-1).
    """
    p = rows.shape[1] / degree
    counts = np.bincount(rows.ravel(), minlength=degree)
    scale = len(rows) * p * (1 - p) * degree / (degree - 1)
    return chi_square(float(((counts - len(rows) * p) ** 2).sum()) / scale, degree - 1)


def pairs(rows: Positions, degree: int) -> float:
    """Each pair of neighbours, with probability n(n-1) / (d(d-1)) for n of d.

    The covariance of the pairs of a uniform subset acts on two spaces (of the Johnson scheme): what
    follows from the counts of single neighbors, which ``singles`` tests, and the rest, of
    dimension d(d-3)/2, which is tested here with its eigenvalue.
    """
    n, d, trials = rows.shape[1], degree, len(rows)
    taken = np.zeros((trials, d))
    np.put_along_axis(taken, rows, 1.0, axis=1)
    excess = taken.T @ taken
    p1 = n / d
    p2 = p1 * (n - 1) / (d - 1)
    p3 = p2 * (n - 2) / (d - 2)
    p4 = p3 * (n - 3) / (d - 3)
    eigenvalue = p2 * (1 - p2) - 2 * (p3 - p2**2) + (p4 - p2**2)
    assert eigenvalue > 1e-9, "pairs that follow from single neighbors"
    excess -= trials * p2
    np.fill_diagonal(excess, 0)
    sums = excess.sum(axis=1)
    above = np.triu_indices(d, 1)
    rest = excess[above] - (sums[above[0]] + sums[above[1]]) / (d - 2)
    return chi_square(float((rest**2).sum()) / (trials * eigenvalue), d * (d - 3) // 2)


def subset_of(rows: Positions, degree: int) -> Positions:
    """The number of each row's subset among all that have as many members."""
    sets = itertools.combinations(range(degree), rows.shape[1])
    number = np.full(1 << degree, -1)
    for i, members in enumerate(sets):
        number[sum(1 << member for member in members)] = i
    found = number[np.bitwise_or.reduce(1 << rows, axis=1)]
    assert (found >= 0).all(), "a neighbour twice"
    return found


def subsets(rows: Positions, degree: int) -> float:
    """Each subset is as likely as any other: all there is to know without replacement."""
    count = math.comb(degree, rows.shape[1])
    return classes(subset_of(rows, degree), np.full(count, 1 / count))


def sequence_of(rows: Positions, degree: int) -> Positions:
    """The number of each row's sequence of positions."""
    return rows @ degree ** np.arange(rows.shape[1])


def sequences(rows: Positions, degree: int, replace: bool) -> float:
    """Each sequence of positions, as it stands in the block.

    With replacement all are alike. Without, they are not: Floyd's algorithm, of which the documents
    speak, puts a position that gives way to a later one there. Its draws are alike, so going
    through all of them gives each sequence's probability exactly.
    """
    fanout = rows.shape[1]
    last = [degree - 1 if replace else degree - fanout + j for j in range(fanout)]
    draws = np.array(list(itertools.product(*(range(end + 1) for end in last))))
    outcomes = draws if replace else floyd(draws, degree)
    probabilities = np.bincount(sequence_of(outcomes, degree), minlength=degree**fanout)
    return classes(sequence_of(rows, degree), probabilities / len(draws))


def floyd(draws: Positions, degree: int) -> Positions:
    """Distinct positions out of draw j in [0, degree - fanout + j], by Robert Floyd's rule."""
    chosen = draws.copy()
    fanout = draws.shape[1]
    for j in range(1, fanout):
        again = (chosen[:, :j] == chosen[:, j : j + 1]).any(axis=1)
        chosen[again, j] = degree - fanout + j
    return chosen


# ---- two rows --------------------------------------------------------------------------------


def independent(first: Positions, second: Positions, degree: int, replace: bool) -> float:
    """The joint counts of two rows' choices, against the product of their exact probabilities."""
    if replace:
        count, of = degree ** first.shape[1], sequence_of
    else:
        count, of = math.comb(degree, first.shape[1]), subset_of
    joint = of(first, degree) * count + of(second, degree)
    return classes(joint, np.full(count**2, count**-2.0))


# ---- orders ----------------------------------------------------------------------------------


def permutations(orders: Iterable[Iterable[int]], length: int) -> float:
    """Each order of 0, 1, ..., length-1 is as likely as any other."""
    number = {order: i for i, order in enumerate(itertools.permutations(range(length)))}
    found = np.array([number[tuple(order)] for order in orders])
    return classes(found, np.full(len(number), 1 / len(number)))


def unrelated(first: Any, second: Any) -> float:
    """Two ways to put the same things into groups of given sizes, one of them at random.

    With both margins fixed the mean of Pearson's statistic is the degrees of freedom times
    n / (n-1).
    """
    table = np.zeros((int(np.max(first)) + 1, int(np.max(second)) + 1))
    np.add.at(table, (first, second), 1)
    total = table.sum()
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / total
    statistic = float(((table - expected) ** 2 / expected).sum()) * (total - 1) / total
    return chi_square(statistic, (table.shape[0] - 1) * (table.shape[1] - 1))


# ---- many p-values ---------------------------------------------------------------------------


def uniform(values: Iterable[float]) -> float:
    """Kolmogorov and Smirnov's p-value of p-values, which are uniform where there is no bias."""
    return float(stats.kstest(list(values), "uniform").pvalue)


def extreme(values: Iterable[float]) -> float:
    """The most surprising of them, in either direction: counts that fit too well are no sample.

    Bonferroni's bound: the probability that any of as many comes out as surprising.
    """
    listed = np.asarray(list(values))
    return float(min(1.0, 2 * len(listed) * np.minimum(listed, 1 - listed).min()))
