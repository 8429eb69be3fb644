"""Compares the results of all cases with the digests in digests.json, and adds new ones."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

from .cases import Case, Sampled, sampled
from .frameworks import computed as of_frameworks
from .loaders import Loaded
from .loaders import computed as of_loaders
from .results import ONLY_TORCH, digest

FILE = Path(__file__).with_name("digests.json")


def recorded() -> dict[str, str]:
    """Returns the digests by the names of their cases."""
    result: dict[str, str] = json.loads(FILE.read_text())
    return result


def cases() -> dict[str, Case]:
    """Returns all cases by name."""
    listed = [*sampled(), *of_loaders(), *of_frameworks()]
    twice = [name for name, count in Counter(case.name for case in listed).items() if count > 1]
    assert not twice, f"expected one case of a name, got several of {twice}"
    return {case.name: case for case in listed}


def line_of(case: Case) -> str:
    """Returns the name of the digest that a case has."""
    return getattr(case, "like", None) or case.name


def matches(case: Case, known: str, **place: Any) -> bool:
    """Returns True if the result has this digest.

    ``place`` has the device, the bits of ids and the form of a result that is made otherwise than
    the recorded one, whose arrays are to be the same.
    """
    forms = () if not place.get("form") else ONLY_TORCH
    other = place.get("bits") not in (None, getattr(case, "bits", None))
    return digest(case(**place), len(known), widen=other, leave_out=forms) == known


def to_run(device: str, emulated: bool) -> dict[str, Case]:
    """Returns the cases of a device, or those of the emulator."""
    if device == "cpu":
        return cases()
    kinds = Sampled if emulated else (Sampled, Loaded)
    return {
        name: case
        for name, case in cases().items()
        if isinstance(case, kinds) and not (emulated and (case.needs or not case.emulated))
    }


def check(device: str = "cpu", emulated: bool = False) -> str:
    """Returns how many results are as recorded; SystemExit if one is not."""
    known, chosen = recorded(), to_run(device, emulated)
    unknown = {line_of(case) for case in chosen.values()} - set(known)
    lost = set(known) - set(chosen) if device == "cpu" else set()
    if unknown or lost:
        raise SystemExit(f"golden: expected a case for each digest, got {some(unknown | lost)}")
    place = {} if device == "cpu" else {"device": device}
    lacking = {name: case.lacks() for name, case in chosen.items()}
    wrong = [
        name
        for name, case in chosen.items()
        if not lacking[name] and not matches(case, known[line_of(case)], **place)
    ]
    if wrong:
        raise SystemExit(f"golden: expected all results as recorded, got others: {some(wrong)}")
    missing = sorted({package for packages in lacking.values() for package in packages})
    left = sum(map(bool, lacking.values()))
    without = f"; {left} not run without {', '.join(missing)}" if left else ""
    return f"{len(chosen) - left} results on {device} as recorded{without}"


def some(names: Collection[str]) -> str:
    """Returns the first of the names, and how many there are."""
    first = ", ".join(sorted(names)[:9])
    return first if len(names) < 10 else f"{first} and {len(names) - 9} more"


def write() -> str:
    """Adds the digests of new cases; SystemExit if a recorded one would change."""
    known, chosen = recorded(), cases()
    changed = [
        name
        for name, case in chosen.items()
        if line_of(case) in known and not case.lacks() and not matches(case, known[line_of(case)])
    ]
    if changed:
        raise SystemExit(f"golden: digests never change, got others: {some(changed)}")
    new = {
        name: digest(case())
        for name, case in chosen.items()
        if line_of(case) == name and name not in known and not case.lacks()
    }
    FILE.write_text(json.dumps({**known, **new}, indent=2) + "\n")
    return f"{len(new)} digests added to {len(known)}"
