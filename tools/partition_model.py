#!/usr/bin/env python3
"""Models the cost of a batch of a partitioned graph on many machines, from measured constants.

    python tools/partition_model.py --picture docs/assets/parts.png

``benchmarks/results/parts.json`` has the measured rows and edges of each hop of a batch, the time
to draw and number them on one machine, and the time of a round without the network; the network is
assumed. Nodes are spread evenly, so that a share of 1 - 1/machines of the rows is on other
machines: a graph that was cut well has less.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
MACHINES = tuple(2**power for power in range(1, 11))
# Words that say what is asked, and what is answered, beside the ids.
_QUESTION, _ANSWER = 12 * 8 + 160, (16 + 8 + 2) * 8


@dataclass(frozen=True)
class Network:
    """The bandwidth of a machine in each direction, and the time of a message."""

    gigabits: float = 100.0
    microseconds: float = 20.0


def batch(record: dict[str, Any], machines: int, network: Network) -> dict[str, float]:
    """Bytes and messages that a machine sends for its batch and those of others, and seconds."""
    share = 1 - 1 / machines
    width = record["id_bytes"]
    asked = sum(hop["rows"] * width for hop in record["hops"]) * share
    answered = sum((hop["rows"] + 1) * width + 2 * hop["edges"] * width for hop in record["hops"])
    answered *= share
    hops = len(record["hops"])
    heads = hops * (machines - 1) * (_QUESTION + _ANSWER)
    size = asked + answered + heads
    # Sizes and bytes, there and back.
    messages = 4 * hops * (machines - 1)
    rows = {row["processes"]: row for row in record["rows"]}
    # In one part: rows are drawn, copied and numbered one after the other, as in several.
    alone = rows[1]["ahead"]["median"] / 1e3
    turn = rows[1]["round"]["median"] / 1e3
    # An exchange with all others is as many steps as its number has binary digits, at the least.
    steps = max(1, (machines - 1).bit_length())
    rounds = hops * (turn + 4 * steps * network.microseconds / 1e6)
    return {
        "machines": machines,
        "bytes": size,
        "messages": messages,
        # A machine sends as much as it receives, both at the same time.
        "network": size * 8 / (network.gigabits * 1e9),
        "rounds": rounds,
        "sampling": alone,
        "seconds": alone + rounds + size * 8 / (network.gigabits * 1e9),
    }


def modelled(record: dict[str, Any], network: Network | None = None) -> list[dict[str, float]]:
    """A row for each number of machines."""
    return [batch(record, machines, network or Network()) for machines in MACHINES]


def draw(record: dict[str, Any], path: Path) -> None:
    """Milliseconds a batch over machines, for networks of several speeds."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    for gigabits in (10.0, 25.0, 100.0, 400.0):
        rows = modelled(record, Network(gigabits=gigabits))
        axes.plot(
            [row["machines"] for row in rows],
            [1e3 * row["seconds"] for row in rows],
            marker="o",
            markersize=3,
            label=f"{gigabits:.0f} Gb/s",
        )
    whole = 1e3 * batch(record, 2, Network())["sampling"]
    axes.axhline(whole, color="grey", linestyle=":", label="one part")
    axes.set(xscale="log", xlabel="machines, each with a batch on its way", ylabel="ms a batch")
    axes.set_xscale("log", base=2)
    axes.set_ylim(0)
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks/results/parts.json")
    parser.add_argument("--picture", type=Path, help="where to draw it")
    options = parser.parse_args()
    record = json.loads(options.results.read_text())
    for row in modelled(record):
        print(
            f"{row['machines']:5.0f} machines: {row['bytes'] / 1e6:6.2f} MB in "
            f"{row['messages']:6.0f} messages, {1e3 * row['seconds']:6.2f} ms a batch"
        )
    if options.picture:
        draw(record, options.picture)


if __name__ == "__main__":
    main()
