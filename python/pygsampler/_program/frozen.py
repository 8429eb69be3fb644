"""Random numbers that a function draws while it is traced: no batch would draw others."""

from __future__ import annotations

import random
import sys

from pygsampler._program.trace import Trace


def states() -> list[object]:
    """Where the generators are that functions draw from without naming one."""
    found: list[object] = [random.getstate()]
    if "numpy" in sys.modules:
        from numpy.random import get_state

        state = get_state(legacy=False)["state"]
        found += [bytes(x) if hasattr(x, "tobytes") else x for x in state.values()]
    if "torch" in sys.modules:
        from torch import get_rng_state

        found.append(bytes(get_rng_state().numpy()))
    return found


def refuse_frozen(trace: Trace, again: Trace) -> None:
    """TypeError where two runs of a function note different lines: it names the first one."""
    pairs = zip(trace.lines, again.lines, trace.places, strict=False)
    place = next((place for one, other, place in pairs if one != other), None)
    if place is None and len(trace.lines) == len(again.lines):
        return
    where = f"program {trace.name}" + (f", {place}" if place else "")
    raise TypeError(
        f"{where}: a random number that is drawn while the program is traced: expected A.random() "
        "or C.random(), since it would be the same in all batches"
    )
