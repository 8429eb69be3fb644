"""Numbers that a function makes anew whenever it is traced: no batch would have others."""

from __future__ import annotations

from itertools import zip_longest

from pygsampler._program.trace import Trace


def refuse_frozen(trace: Trace, again: Trace) -> None:
    """TypeError where two runs of a function note different lines: it names the first one.

    Generators and clocks are many, and two runs show all of them, wherever they are asked.
    """
    if trace.lines == again.lines:
        return
    longer = max(trace, again, key=lambda run: len(run.lines))
    pairs = zip_longest(trace.lines, again.lines)
    first = next(i for i, (one, other) in enumerate(pairs) if one != other)
    raise TypeError(
        f"program {trace.name}, {longer.places[first]}: a random number that is drawn while the "
        "program is traced, or a time: expected A.random() or C.random(), since it would be the "
        "same in all batches"
    )
