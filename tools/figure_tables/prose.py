"""Figures inside sentences: the range of a kept column, written between inline marks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from figure_tables.cpu import BASELINE
from figure_tables.record import FIGURES, kept_rows
from figure_tables.walks import BARE

# Seeds of the batches that the README's opening claim is about.
MOST_SEEDS = 4096


def span(values: Iterable[float], digits: int = 0) -> str:
    """Returns "least to most" of the values, rounded to ``digits`` places."""
    values = list(values)
    least, most = f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"
    return least if least == most else f"{least} to {most}"


def sample_us() -> str:
    """Microseconds of ``PGSampler.sample`` of 1024 seeds and fanouts (10,10)."""
    return span(row["us"]["sample"]["median"] for row in kept_rows("gpu/calls.json"))


def small_batch_ratio() -> str:
    """Ratio to the better peer of batches of up to 4096 seeds."""
    rows = kept_rows("gpu/latency.json")
    return span((row["ratio"] for row in rows if row["batch"] <= MOST_SEEDS), 1)


def large_batch_ratio() -> str:
    """Ratio to the better peer of larger batches."""
    rows = kept_rows("gpu/latency.json")
    return span((row["ratio"] for row in rows if row["batch"] > MOST_SEEDS), 1)


def programs_ratio() -> str:
    """Ratio of programs on a GPU to eager torch in the same run."""
    return span((row["ratio"] for row in kept_rows("gpu/programs.json")), 1)


def all_batches_ratio() -> str:
    """Ratio to the better peer of all batches of the latency benchmark."""
    return span((row["ratio"] for row in kept_rows("gpu/latency.json")), 1)


def cpu_ratio() -> str:
    """Ratio to DGL's sampler on the CPU, of every way to call ours."""
    rows = kept_rows("sampling.json")
    return span((row["ratio"]["median"] for row in rows if row["contender"] != BASELINE), 1)


def mag_us() -> str:
    """Microseconds of a batch of a heterogeneous graph like ogbn-mag on a GPU."""
    rows = kept_rows("gpu/typed.json")
    return span(row["us"]["gpu"]["median"] for row in rows if row["kind"] == "mag")


def _walks(kind: str) -> list[dict[str, Any]]:
    return [row for row in kept_rows("gpu/walks.json") if row["walk"] == kind]


def walk_gsteps() -> str:
    """Steps a second, in G, of uniform walks from every node."""
    return span(row["gsteps"] for row in _walks("uniform"))


def node2vec_gsteps() -> str:
    """Steps a second, in G, of node2vec's walks with p and q of 1."""
    return span(row["gsteps"] for row in _walks("node2vec"))


def walk_share() -> str:
    """Percent of a bare kernel's steps that uniform and weighted walks make."""
    bare = {row["shape"]: row["bare"] for row in _walks("bare")}
    return span(
        100 * row["gsteps"] / bare[row["shape"]][BARE[kind]]["gsteps"]
        for kind in ("uniform", "weighted")
        for row in _walks(kind)
        if BARE[kind] in bare[row["shape"]]
    )


def few_walks_us() -> str:
    """Microseconds of 1024 uniform walks, of the engine."""
    return span(row["engine_us"]["median"] for row in _walks("uniform"))


for _function in (
    *(sample_us, small_batch_ratio, large_batch_ratio, all_batches_ratio, cpu_ratio),
    *(programs_ratio, mag_us, walk_gsteps, node2vec_gsteps, walk_share, few_walks_us),
):
    FIGURES[_function.__name__] = _function
