"""The experiments: each gives one p-value for one seed, from a source of choices."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from tests.statistics import laws
from tests.statistics.laws import Positions
from tests.statistics.sources import At, Shape, Source

# Two of four: six subsets, so a joint table has 36 cells; three with replacement of three.
SUBSET = Shape(3600, 4, 2)
SEQUENCE = Shape(4050, 3, 2, replace=True)
JOINT = (SUBSET, SEQUENCE)


class Case(NamedTuple):
    """An experiment, by the name of the page's table: ``run(source, seed, scale)``.

    ``scale`` multiplies the rows.
    """

    name: str
    run: Callable[[Source, int, int], float]


def _scaled(shape: Shape, scale: int) -> Shape:
    return shape._replace(rows=shape.rows * scale)


# ---- one row ---------------------------------------------------------------------------------


def _single(shape: Shape, source: Source, seed: int, scale: int) -> float:
    (rows,) = source.hops(At(seed), _scaled(shape, scale), 1)
    return laws.singles(rows, shape.degree)


def _pair(shape: Shape, source: Source, seed: int, scale: int) -> float:
    (rows,) = source.hops(At(seed), _scaled(shape, scale), 1)
    return laws.pairs(rows, shape.degree)


def _subset(shape: Shape, source: Source, seed: int, scale: int) -> float:
    (rows,) = source.hops(At(seed), _scaled(shape, scale), 1)
    return laws.subsets(rows, shape.degree)


def _sequence(shape: Shape, source: Source, seed: int, scale: int) -> float:
    (rows,) = source.hops(At(seed), _scaled(shape, scale), 1)
    return laws.sequences(rows, shape.degree, shape.replace)


def _place(shape: Shape, place: int, source: Source, seed: int, scale: int) -> float:
    """Of one draw with replacement."""
    (rows,) = source.hops(At(seed), _scaled(shape, scale), 1)
    return laws.sequences(rows[:, place : place + 1], shape.degree, replace=True)


# ---- two rows --------------------------------------------------------------------------------


def _vertices(shape: Shape, far: bool, source: Source, seed: int, scale: int) -> float:
    (rows,) = source.hops(At(seed), _scaled(shape, 2 * scale), 1)
    half = len(rows) // 2
    first, second = (rows[:half], rows[half:]) if far else (rows[::2], rows[1::2])
    return laws.independent(first, second, shape.degree, shape.replace)


def _hops(shape: Shape, apart: int, source: Source, seed: int, scale: int) -> float:
    found = source.hops(At(seed), _scaled(shape, scale), apart + 1)
    return laws.independent(found[0], found[apart], shape.degree, shape.replace)


def _others(
    shape: Shape, other: Callable[[At], At], source: Source, seed: int, scale: int
) -> float:
    """Of the same vertices in another batch."""
    at = At(seed, epoch=3, batch=8)
    first: Positions
    (first,) = source.hops(at, _scaled(shape, scale), 1)
    (second,) = source.hops(other(at), _scaled(shape, scale), 1)
    return laws.independent(first, second, shape.degree, shape.replace)


def _trees(shape: Shape, source: Source, seed: int, scale: int) -> float:
    first, second = source.trees(At(seed), _scaled(shape, scale))
    return laws.independent(first, second, shape.degree, shape.replace)


OTHERS: dict[str, Callable[[At], At]] = {
    "the next batch": lambda at: at._replace(batch=at.batch + 1),
    "batch + 2^32": lambda at: at._replace(batch=at.batch + (1 << 32)),
    "the next epoch": lambda at: at._replace(epoch=at.epoch + 1),
    "epoch + 2^16": lambda at: at._replace(epoch=at.epoch + (1 << 16)),
    "batch and epoch swapped": lambda at: at._replace(batch=at.epoch, epoch=at.batch),
    "seed + 2^20": lambda at: at._replace(seed=at.seed + (1 << 20)),
    "seed + 2^32": lambda at: at._replace(seed=at.seed + (1 << 32)),
}


def _cases() -> list[Case]:
    found = [
        Case(f"single neighbors, {fanout} of {degree}", partial(_single, Shape(n, degree, fanout)))
        for n, degree, fanout in ((2000, 5, 2), (2000, 12, 10), (2000, 64, 20), (4000, 400, 5))
    ]
    found += [
        Case(f"pairs of neighbors, {fanout} of {degree}", partial(_pair, Shape(n, degree, fanout)))
        for n, degree, fanout in ((2000, 7, 3), (4000, 30, 10), (4000, 64, 33))
    ]
    found += [
        Case(f"subsets, {fanout} of {degree}", partial(_subset, Shape(n, degree, fanout)))
        for n, degree, fanout in ((2000, 6, 3), (3000, 8, 2), (3000, 9, 8))
    ]
    found += [
        Case("places in the block, 3 of 5", partial(_sequence, Shape(4000, 5, 3))),
        Case("sequences with replacement, 3 of 5", partial(_sequence, Shape(8000, 5, 3, True))),
        Case("first draw with replacement, of 97", partial(_place, Shape(6000, 97, 10, True), 0)),
        Case("tenth draw with replacement, of 97", partial(_place, Shape(6000, 97, 10, True), 9)),
    ]
    for shape in JOINT:
        how = ", replace" if shape.replace else ""
        found += [
            Case(f"consecutive nodes{how}", partial(_vertices, shape, False)),
            Case(f"nodes far apart{how}", partial(_vertices, shape, True)),
            Case(f"hops 0 and 1{how}", partial(_hops, shape, 1)),
            Case(f"hops 0 and 2{how}", partial(_hops, shape, 2)),
            Case(f"two trees{how}", partial(_trees, shape)),
        ]
        found += [Case(f"{name}{how}", partial(_others, shape, f)) for name, f in OTHERS.items()]
    return found


CASES = _cases()
