"""``figure``: what a record of benchmarks/results makes of a place in a page."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
NONE = "No figures for this version yet; `make bench` measures them on your machine.\n"
NONE_OF_GPU = "No figures of a GPU for this version yet; `make gpu-check` measures them.\n"
SHOWN_PACKAGES = {"dgl": "DGL", "torch": "PyTorch", "numpy": "NumPy"}

Record = dict[str, Any]

# The functions that write the figures of the pages, by name.
FIGURES: dict[str, Callable[[], str]] = {}


def figure(
    name: str, none: str = NONE, *, of: Callable[[Record], bool] = bool
) -> Callable[[Callable[[Record], str]], Callable[[Record], str]]:
    """Registers a function as the figure of its own name: it writes the text from a record.

    The text is ``none`` without a record, or without one that ``of`` accepts.
    """

    def shown(make: Callable[[Record], str]) -> Callable[[Record], str]:
        def text() -> str:
            record = kept(name)
            return none if record is None or not of(record) else make(record)

        FIGURES[make.__name__] = text
        return make

    return shown


def kept(name: str) -> Record | None:
    path = RESULTS / name
    return json.loads(path.read_text()) if path.exists() else None


def kept_rows(name: str) -> list[Record]:
    """Returns the rows of a record that a page cannot do without; FileNotFoundError without it."""
    record = kept(name)
    if record is None:
        raise FileNotFoundError(f"{name}: expected kept results, which a page quotes; found none")
    rows: list[Record] = record["rows"]
    return rows


def peer_rows(name: str) -> list[dict[str, str]]:
    """Returns the lines of a file of other samplers' times on a GPU, which no run writes."""
    with (ROOT / "benchmarks" / "gpu" / name).open() as lines:
        return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def unmeasured(command: str, what: str = "figures of a GPU") -> str:
    """Returns the text for a missing record that `make gpu-check` does not measure."""
    return f"No {what} for this version yet; `{command}` measures them.\n"


def table(head: list[str], rows: list[list[str]], numbers: int) -> str:
    """Markdown; the last `numbers` columns are aligned to the right."""
    marks = ["---"] * (len(head) - numbers) + ["--:"] * numbers
    return "".join(f"| {' | '.join(cells)} |\n" for cells in [head, marks, *rows])


def milliseconds(row: Record) -> str:
    return f"{row['milliseconds']['median']:.2f}"


def source(record: Record) -> str:
    """Returns a paragraph with the machine, versions, commit and command of a record."""
    if "gpu" in record:
        return source_of_gpu(record)
    machine, used = record["hardware"], record["versions"]
    versions = [f"Python {used['python']}"]
    versions += [f"{shown} {used[name]}" for name, shown in SHOWN_PACKAGES.items() if used[name]]
    return (
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gb']:.0f} GB; "
        f"{', '.join(versions)}; {record['date'][:10]}, commit {record['commit'][:7]}; "
        f"`{record['command']}`.\n"
    )


def source_of_gpu(record: Record) -> str:
    """Returns the same paragraph for a record of benchmarks.gpu."""
    gpu, used = record["gpu"], record["versions"]
    return (
        f"{gpu['name']}, {gpu['memory_gb']:.0f} GB, driver {gpu['driver'] or 'unknown'}; "
        f"Python {used['python']}, PyTorch {used['torch']}; {record['date'][:10]}, "
        f"commit {(record['commit'] or 'unknown')[:7]}; `{record['command']}`.\n"
    )


def case(row: Record) -> list[str]:
    """The first cells of a row of benchmarks.gpu."""
    return [row["shape"], f"{row['batch']}x({','.join(map(str, row['fanouts']))})"]


CASE = ["graph", "batch x fanouts"]
