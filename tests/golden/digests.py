"""Compares the results of all cases with the digests in digests.json, and adds new ones."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from .cases import RESEARCH, Case, Sampled, sampled
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


def matches(case: Case, line: str, **place: Any) -> bool:
    """Returns True if the result has this digest.

    ``place`` may have another device, form or number of bits than the recorded result had, which
    change no array.
    """
    result = case(**place)
    if isinstance(case, Sampled):
        widen = place.get("bits", case.bits) != case.bits
        leave_out = ONLY_TORCH if place.get("form") else ()
        return digest(result, len(line), leave_out, widen) == line
    return digest(result, len(line)) == line


def to_run(device: str = "cpu", emulated: bool = False) -> dict[str, Case]:
    """Returns the cases of a device, or those of the emulator, by name."""
    if device == "cpu":
        return cases()
    kinds = Sampled if emulated else (Sampled, Loaded)
    return {
        name: case
        for name, case in cases().items()
        if isinstance(case, kinds)
        and not (emulated and (case.lacks() or {*case.needs} - {*RESEARCH} or not case.emulated))
    }


def differing(chosen: Iterable[Case], **place: Any) -> list[str]:
    """Returns the names of those cases whose results are not as recorded."""
    lines = recorded()
    return [case.name for case in chosen if not matches(case, lines[line_of(case)], **place)]


def loaded(**fields: bool) -> list[Loaded]:
    """Returns the cases of loaders whose fields have these values, and whose packages are there."""
    return [
        case
        for case in cases().values()
        if isinstance(case, Loaded)
        and all(getattr(case, name) == fields[name] for name in fields)
        and not case.lacks()
    ]


def check(device: str = "cpu", emulated: bool = False) -> str:
    """Returns how many results are as recorded; SystemExit if one is not."""
    lines, chosen = set(recorded()), to_run(device, emulated)
    others = {line_of(case) for case in chosen.values()} - lines
    others |= lines - set(chosen) if device == "cpu" else set()
    if others:
        raise SystemExit(f"golden: expected a case for each digest, got {some(others)}")
    lacking = {name: case.lacks() for name, case in chosen.items()}
    ready = [case for name, case in chosen.items() if not lacking[name]]
    wrong = differing(ready, **({} if device == "cpu" else {"device": device}))
    if device != "cpu" and not emulated:
        fixed = loaded(static=True)
        wrong += [f"{name} (static)" for name in differing(fixed, device=device, form="static")]
    if wrong:
        raise SystemExit(f"golden: expected all results as recorded, got others: {some(wrong)}")
    missing = sorted({package for packages in lacking.values() for package in packages})
    left = len(chosen) - len(ready)
    without = f"; {left} not run without {', '.join(missing)}" if left else ""
    return f"{len(ready)} results on {device} as recorded{without}"


def some(names: Collection[str]) -> str:
    """Returns the first of the names, and how many there are."""
    first = ", ".join(sorted(names)[:9])
    return first if len(names) < 10 else f"{first} and {len(names) - 9} more"


def write() -> str:
    """Adds the digests of new cases; SystemExit if a recorded one would change."""
    lines, chosen = recorded(), cases()
    changed = differing(
        case for case in chosen.values() if line_of(case) in lines and not case.lacks()
    )
    if changed:
        raise SystemExit(f"golden: digests never change, got others: {some(changed)}")
    new = {
        name: digest(case())
        for name, case in chosen.items()
        if line_of(case) == name and name not in lines and not case.lacks()
    }
    FILE.write_text(json.dumps({**lines, **new}, indent=2) + "\n")
    return f"{len(new)} digests added to {len(lines)}"
