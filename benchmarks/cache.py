"""Measures the part of a training's rows that a cache has, by policy and size::

    python -m benchmarks.cache --quick
    python -m benchmarks.cache --out results

A loader samples batches on the CPU, and the rows that a cache would have are counted:
no GPU is needed. Policies choose by the functions of ``Features.cache``, and ``lru`` is a
copy in NumPy of ``kernels/features/cache.cu``. Two bounds stand beside them: the best set of rows
for each epoch, and the best for each batch when all are known and rows come and go for nothing
(Belady).

With 20 % of the rows ``exact`` must have 95 % of the hits of the best set, or the status is 1.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from tqdm import tqdm

import pygsampler as pgs
from pygsampler._engine.limits import MAX_EPOCH
from pygsampler._features.cache_policy import replacements, top_rows
from pygsampler._features.read_counts import neighbor_counts
from pygsampler.torch import DataLoader

from . import environment, graphs, report

Int32s = npt.NDArray[np.int32]
Epoch = list[Int32s]


@dataclass(frozen=True)
class Training:
    """An epoch of a graph: the share of vertices that are trained on, and how."""

    graph: str
    share: float
    batch: int
    fanouts: tuple[int, ...]


# The trainings of the papers. A twentieth of a graph has batches of a twentieth, so that a row is
# read as often.
TRAININGS = (
    Training("papers/20", 1_207_179 / 111_059_956, 51, (15, 10, 5)),
    Training("products", 196_615 / 2_449_029, 1024, (15, 10, 5)),
    Training("reddit", 153_431 / 232_965, 1024, (25, 10)),
)
QUICK = Training("quick", 0.3, 32, (5, 5))
SIZES = (1, 2, 5, 10, 20, 40)
# Epochs that are trained on; the policies know others, or these.
EPOCHS = 2
WANTED = 0.95  # of the best set's hits, for `exact`
_NEVER = np.iinfo(np.int32).max
_CHOICES = 8  # cacheChoices in internal/engine/cuda/constants.go


def read(loader: DataLoader, epoch: int) -> Epoch:
    """The rows of each batch of an epoch."""
    loader.set_epoch(epoch)
    progress = tqdm(loader, desc=f"epoch {epoch}", unit="batch", leave=False)
    return [batch.input_nodes.numpy().astype(np.int32) for batch in progress]


def counted(epochs: Sequence[Epoch], rows: int) -> torch.Tensor:
    every = np.concatenate([ids for epoch in epochs for ids in epoch])
    return torch.from_numpy(np.bincount(every, minlength=rows))


def hits_of(rows: torch.Tensor, counts: torch.Tensor) -> int:
    return int(counts[rows].sum())


def exact(counts: Sequence[torch.Tensor], places: int, window: int) -> tuple[int, int]:
    """Hits of a cache that is changed each so many epochs, and rows that were brought."""
    held = torch.full((places,), -1)
    hits = brought = 0
    for first in range(0, len(counts), window):
        part = counts[first : first + window]
        rows, at = replacements(sum(part[1:], part[0]), held)
        held[at.long()] = rows
        brought += len(rows)
        hits += sum(hits_of(held[held >= 0], each) for each in part)
    return hits, brought


def _mixed(z: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """SplitMix64's finaliser."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _below(x: npt.NDArray[np.uint64], n: int) -> npt.NDArray[np.int64]:
    """The high half of x * n, for n below 2^32."""
    low, high, by = x & np.uint64(0xFFFFFFFF), x >> np.uint64(32), np.uint64(n)
    return ((high * by + (low * by >> np.uint64(32))) >> np.uint64(32)).astype(np.int64)


class Lru:
    """The recently read rows that kernels/features/cache.cu caches."""

    def __init__(self, rows: int, places: int) -> None:
        self.slots = np.full(rows, -1, np.int32)
        self.keys = np.full(places, -1, np.int64)
        self.stamps = np.zeros(places, np.int64)
        self.now = 0

    def read(self, ids: Int32s) -> int:
        """Hits of a batch of distinct rows."""
        self.now += 1
        slots = self.slots[ids]
        self.stamps[slots[slots >= 0]] = self.now
        missed = ids[slots < 0].astype(np.int64)
        state = _mixed(missed.astype(np.uint64) ^ np.uint64(self.now << 32))
        best = np.full(len(missed), -1, np.int64)
        most = np.zeros(len(missed), np.int64)
        for choice in range(_CHOICES):
            step = np.uint64((choice + 1) * 0x9E3779B97F4A7C15 & (1 << 64) - 1)
            place = _below(_mixed(state + step), len(self.keys))
            age = np.where(self.keys[place] < 0, 1 << 32, self.now - self.stamps[place])
            older = age > most
            best[older], most[older] = place[older], age[older]
        wanting = np.flatnonzero(best >= 0)
        # The first of those that want a place.
        places, first = np.unique(best[wanting], return_index=True)
        coming, before = missed[wanting[first]], self.keys[places]
        self.slots[before[before >= 0]] = -1
        self.keys[places], self.slots[coming], self.stamps[places] = coming, places, self.now
        return len(ids) - len(missed)


class TrueLru:
    """The rows that were read last; of the oldest batch that has some there, that share of them."""

    def __init__(self, rows: int, places: int) -> None:
        self.last = np.full(rows, -1, np.int64)  # the batch
        self.of_batch: list[int] = []  # how many rows were read last in it
        self.places = places

    def read(self, ids: Int32s) -> int:
        last = self.last[ids]
        room, oldest = self.places, len(self.of_batch)
        while oldest > 0 and self.of_batch[oldest - 1] <= room:
            oldest -= 1
            room -= self.of_batch[oldest]
        hits = int((last >= oldest).sum())
        if oldest > 0:
            hits += int((last == oldest - 1).sum()) * room // self.of_batch[oldest - 1]
        gone = np.bincount(last[last >= 0], minlength=len(self.of_batch))
        self.of_batch = [left - int(some) for left, some in zip(self.of_batch, gone, strict=True)]
        self.last[ids] = len(self.of_batch)
        self.of_batch.append(len(ids))
        return hits


def belady(following: Sequence[Int32s], first: Int32s, size: int) -> int:
    """Hits of a cache that always has the rows that are read next, also at first.

    ``following`` says for each row of each batch which batch reads it next, ``first`` which one
    reads each row first. Rows that are read next by the same batch are alike, so they are counted.
    """
    ends = len(following)
    there = np.zeros(ends, np.int64)  # rows in the cache, by the batch that reads them next
    hits = 0

    def keep(coming: Int32s) -> None:
        there[:] += np.bincount(coming[coming < ends], minlength=ends)
        held, last = int(there.sum()), ends - 1
        while held > size:
            gone = min(held - size, int(there[last]))
            there[last] -= gone
            held -= gone
            last -= 1

    keep(first)
    for number, after in enumerate(following):
        hits += int(there[number])
        there[number] = 0
        keep(after)
    return hits


def next_reads(batches: Sequence[Int32s], rows: int) -> tuple[list[Int32s], Int32s]:
    """For each row of each batch the next batch that has it, and for each row the first."""
    upcoming = np.full(rows, _NEVER, np.int32)
    following = []
    for number in range(len(batches) - 1, -1, -1):
        following.append(upcoming[batches[number]])
        upcoming[batches[number]] = number
    return following[::-1], upcoming


def rates(training: Training, sizes: Sequence[int]) -> Iterator[dict[str, Any]]:
    """A record for each size: the share of rows by policy that a cache has."""
    made = graphs.load(training.graph, np.int32)
    rows = made.num_nodes
    graph = pgs.Graph.from_csc(made.indptr, made.indices, num_nodes=rows)
    seeds = np.random.default_rng(1).permutation(rows)[: round(training.share * rows)]
    loader = DataLoader(
        graph, seeds, training.fanouts, batch_size=training.batch, shuffle=True, seed=1
    )
    start = time.perf_counter()
    other = read(loader, MAX_EPOCH)
    seconds = time.perf_counter() - start
    coming = [read(loader, epoch) for epoch in range(EPOCHS)]
    counts = [counted([epoch], rows) for epoch in coming]
    whole = counts[0] + sum(counts[1:])
    degrees, presampled = neighbor_counts(graph), counted([other], rows)
    batches = [ids for epoch in coming for ids in epoch]
    following, first = next_reads(batches, rows)
    reads = int(whole.sum())
    for size in tqdm(sizes, desc=training.graph, unit="size", leave=False):
        places = rows * size // 100
        chance = torch.from_numpy(np.random.default_rng(2).permutation(rows)[:places])
        one, brought = exact(counts, places, 1)
        all_at_once, brought_once = exact(counts, places, EPOCHS)
        hits = {
            "random": hits_of(chance, whole),
            "degree": hits_of(top_rows(degrees, places), whole),
            "presampled": hits_of(top_rows(presampled, places), whole),
            "exact": one,
            f"exact, {EPOCHS} epochs at once": all_at_once,
            "best set": sum(hits_of(top_rows(each, places), each) for each in counts),
            "belady": belady(following, first, places),
        }
        for name, kind in (("lru", Lru), ("lru, true", TrueLru)):
            cache = kind(rows, places)
            for ids in other:
                cache.read(ids)
            hits[name] = sum(cache.read(ids) for ids in batches)
        yield {
            "graph": training.graph,
            "nodes": rows,
            "edges": made.num_edges,
            "batch": training.batch,
            "fanouts": list(training.fanouts),
            "batches": len(loader),
            "epochs": EPOCHS,
            "reads_of_a_row": reads / rows / EPOCHS,
            "epoch_seconds": seconds,
            "size_percent": size,
            "hit_rate": {name: found / reads for name, found in hits.items()},
            # Rows that fill a cache, as a share of those that are read.
            "brought": {"exact": brought / reads, "at once": brought_once / reads},
        }


def plot(found: Sequence[dict[str, Any]], path: Path, title: str) -> None:
    """Hit rates by the size of the cache, a panel for each graph."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(row["graph"] for row in found))
    figure = Figure(figsize=(4 * len(names) + 1, 4.4), layout="constrained")
    panels = figure.subplots(1, len(names), squeeze=False, sharey=True)[0]
    styles = {"best set": "k--", "belady": "k:", "random": "0.7"}
    policies = ["belady", "best set", "exact", "presampled", "degree", "lru", "random"]
    for panel, name in zip(panels, names, strict=True):
        own = [row for row in found if row["graph"] == name]
        for policy in policies:
            values = [100 * row["hit_rate"][policy] for row in own]
            how = {"color": styles[policy]} if policy == "random" else {}
            line = styles.get(policy, "-") if policy != "random" else "-"
            marker = "" if policy in styles else "o"
            sizes = [row["size_percent"] for row in own]
            panel.plot(sizes, values, line, marker=marker, ms=3, label=policy, **how)
        panel.set_xscale("log")
        panel.set_xticks([row["size_percent"] for row in own])
        panel.set_xticklabels([str(row["size_percent"]) for row in own])
        panel.minorticks_off()
        panel.set_title(f"{name}, {own[0]['batch']} x {own[0]['fanouts']}", fontsize=9)
        panel.set_xlabel("rows in the cache, %")
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("rows that are there when they are read, %")
    figure.suptitle(title, fontsize=7, wrap=True)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def missed(found: Sequence[dict[str, Any]]) -> list[str]:
    """Returns a sentence for each share of hits below the required one."""
    texts = []
    for row in found:
        got, best = row["hit_rate"]["exact"], row["hit_rate"]["best set"]
        if row["size_percent"] == 20 and got < WANTED * best:
            texts.append(f"{row['graph']}: exact has {got:.3f}, expected {WANTED} of {best:.3f}")
    return texts


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0, or 1 where a policy has less than it must."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(given)
    chosen = [t for t in TRAININGS if t.graph in (options.graph or [t.graph])]
    record = environment.describe(given, "benchmarks.cache", note=options.note)
    print(environment.summary(record), end="\n\n")
    record["rows"] = []
    for training in [QUICK] if options.quick else chosen:
        for row in rates(training, SIZES):
            record["rows"].append(row)
            told = ", ".join(f"{name} {100 * rate:.1f}" for name, rate in row["hit_rate"].items())
            print(f"{row['graph']} {row['size_percent']} %: {told}", flush=True)
    texts = missed(record["rows"])
    for text in texts:
        print(f"missed: {text}", file=sys.stderr)
    if options.out:
        report.write_json(options.out / "cache.json", record)
        plot(record["rows"], options.out / "cache.png", environment.summary(record))
        print(f"\nwritten: {options.out / 'cache.json'}, {options.out / 'cache.png'}")
    return 1 if texts else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cache", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes")
    parser.add_argument("--graph", action="append", choices=[t.graph for t in TRAININGS])
    parser.add_argument("--note", help="as in python -m benchmarks")
    parser.add_argument("--out", type=Path, help="folder for cache.json and cache.png")
    return parser


if __name__ == "__main__":
    sys.exit(main())
