"""Contexts of fixed length by ``pygsampler.samplers.context``, beside the same rule in NumPy::

    python -m benchmarks.contexts --quick
    python -m benchmarks.contexts
    python -m benchmarks.contexts --device cuda

The graph is that of a shop: customers, articles and orders, with an order's customer and article
as foreign keys, both ways; few customers and articles have most of the orders. Seeds are customers
at times of their own. The rule in NumPy (``benchmarks.numpy_contexts``) goes through all seeds of a
batch side by side; it is timed with several numbers of seeds a call, and the fastest one counts.
All arrays are compared before the clock starts. The ways take turns; a time is the least of the
rounds.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import pygsampler as pgs
from pygsampler._cli.bench.check import CheckError
from pygsampler.samplers import context

from . import environment, report
from .numpy_contexts import Reference

TYPES = ("customer", "article", "order")
RELATIONS = (
    ("order", "by", "customer"),
    ("customer", "rev_by", "order"),
    ("order", "of", "article"),
    ("article", "rev_of", "order"),
)
# Cells of a row of each type.
CELLS = (4, 6, 5)
# Seeds of a call of the rule in NumPy.
CHUNKS = (1, 16, 256)
DAYS = 1000


class Shop(NamedTuple):
    """The graph, the same for the rule in NumPy, and seeds with their times."""

    graph: pgs.Graph
    reference: Reference
    seeds: Any
    times: Any


class Setting(NamedTuple):
    """Options of contexts."""

    budget: int
    by: str
    width: int | None

    @property
    def name(self) -> str:
        """The options as rows of tables have them."""
        width = "all edges" if self.width is None else f"width {self.width}"
        return f"{self.budget} {self.by}s, {width}"


SETTINGS = (Setting(1024, "row", 128), Setting(1024, "cell", 128), Setting(256, "row", 32))


def shop(orders: int, batch: int) -> Shop:
    """A shop with so many orders, and a batch of its customers."""
    random = np.random.default_rng(1)
    sizes = {"customer": max(orders // 40, 10), "article": max(orders // 400, 5), "order": orders}

    def popular(kind: str) -> Any:
        return (random.random(orders) ** 2 * sizes[kind]).astype(np.int64)

    order, customer, article = np.arange(orders), popular("customer"), popular("article")
    days = random.integers(0, DAYS, orders)
    ends = dict(
        zip(
            RELATIONS,
            ((order, customer), (customer, order), (order, article), (article, order)),
            strict=True,
        )
    )
    graph = pgs.Graph.from_coo(ends, num_nodes=sizes, node_data={"order": {"day": days}})
    edges = [
        (
            *(TYPES.index(kind) for kind in (src, dst)),
            *ends[src, name, dst],
            days if src == "order" else None,
        )
        for src, name, dst in RELATIONS
    ]
    # The places of the types are those of the graph.
    assert tuple(graph.node_types) == tuple(sorted(TYPES, key=list(graph.node_types).index))
    seeds = random.integers(0, sizes["customer"], batch)
    return Shop(
        graph,
        Reference([sizes[kind] for kind in TYPES], edges),
        seeds,
        random.integers(DAYS // 2, DAYS, batch),
    )


def of_numpy(shop: Shop, setting: Setting, chunk: int) -> dict[str, Any]:
    """The arrays of all seeds by the rule in NumPy, so many seeds a call."""
    cells = CELLS if setting.by == "cell" else None
    types = np.full(len(shop.seeds), TYPES.index("customer"))
    options: dict[str, Any] = {"budget": setting.budget, "width": setting.width, "cells": cells}
    parts = [
        shop.reference.sample(
            *(x[i : i + chunk] for x in (shop.seeds, types, shop.times)), **options
        )
        for i in range(0, len(shop.seeds), chunk)
    ]
    return {name: _joined([part[name] for part in parts]) for name in parts[0]}


def _joined(parts: list[Any]) -> Any:
    return None if parts[0] is None else np.concatenate(parts)


def ours(shop: Shop, setting: Setting, threads: int) -> Any:
    """The contexts of all seeds, of at most so many threads."""
    cells = dict(zip(TYPES, CELLS, strict=True)) if setting.by == "cell" else None
    sampler = context(
        budget=setting.budget, by=setting.by, width=setting.width, cells=cells, time="day", seed=1
    )
    seeds = {"customer": shop.seeds}
    return partial(sampler.sample, shop.graph, seeds, seed_time=shop.times, threads=threads)


def check(expected: Mapping[str, Any], contexts: Any, types: Sequence[str]) -> None:
    """Raises CheckError unless contexts have the arrays of the rule in NumPy."""
    found = contexts.cpu().numpy()
    for name, array in expected.items():
        other = getattr(found, name)
        if name == "types":
            places = np.array([TYPES.index(kind) for kind in types] + [-1])
            other = places[other]
        if (array is None) != (other is None) or (array is not None and (array != other).any()):
            raise CheckError(f"{name} differ from the rule in NumPy")


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0, or 1 after a failed check."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(given)
    if options.quick:
        options.orders, options.seeds, options.rounds = 4000, 20, 1
    record = environment.describe(given, "benchmarks.contexts", note=options.note)
    print(environment.summary(record), end="\n\n")
    made = shop(options.orders, options.seeds)
    moved = made if options.device == "cpu" else made._replace(graph=made.graph.to(options.device))
    threads = (1, 2) if options.device == "cpu" else (0,)
    record["rows"] = []
    for setting in SETTINGS:
        ways: dict[str, Callable[[], Any]] = {
            f"NumPy, {n} seeds a call": partial(of_numpy, made, setting, n)
            for n in CHUNKS
            if n <= options.seeds
        }
        expected = ways[f"NumPy, {CHUNKS[0]} seeds a call"]()
        for n in threads:
            name = "context" if not n else f"context, {n} thread{'s' if n > 1 else ''}"
            ways[name] = ours(moved, setting, n)
            try:
                check(expected, ways[name](), made.graph.node_types)
            except CheckError as error:
                print(f"refused: {setting.name}: {error}", file=sys.stderr)
                return 1
        least = report.least_times(ways, options.rounds)
        best = min(seconds for name, seconds in least.items() if name.startswith("NumPy"))
        rows = float(expected["lengths"].mean())
        print(f"{setting.name}: {rows:.0f} rows a context")
        for name, seconds in least.items():
            row = {
                "setting": setting.name,
                "way": name,
                "rows": rows,
                "contexts a second": options.seeds / seconds,
                "times NumPy": best / seconds,
            }
            record["rows"].append(row)
            rate, ratio = row["contexts a second"], row["times NumPy"]
            print(f"  {name:28} {rate:12.0f} contexts a second {ratio:8.2f} times NumPy")
    report.keep(record, options.out, "contexts", options.device)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.contexts", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a second instead of a minute")
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default: cpu)")
    parser.add_argument("--orders", type=int, default=2_000_000)
    parser.add_argument("--seeds", type=int, default=512, help="contexts of a batch")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--note", help="as in python -m benchmarks")
    parser.add_argument("--out", type=Path, help="folder for contexts.json, contexts-cuda.json")
    return parser


if __name__ == "__main__":
    sys.exit(main())
