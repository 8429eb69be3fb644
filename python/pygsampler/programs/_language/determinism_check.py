"""Numbers that a function makes anew whenever it is traced: no batch would have others."""

from __future__ import annotations

from itertools import zip_longest

from pygsampler.programs._language.trace import ProgramTrace


def check_deterministic(
    trace: ProgramTrace, last: str, again: ProgramTrace, other_last: str
) -> None:
    """TypeError where two runs of a function note different lines, or return something else: it
    names the first place.

    Generators and clocks are many, and two runs show all of them, wherever they are asked.
    """
    if trace.lines == again.lines and last == other_last:
        return
    where = trace.where()
    if trace.lines != again.lines:
        longer = max(trace, again, key=lambda run: len(run.lines))
        pairs = zip_longest(trace.lines, again.lines)
        first = next(i for i, (one, other) in enumerate(pairs) if one != other)
        where = f"program {trace.name}, {longer.places[first]}"
    raise TypeError(
        f"{where}: a random number that is drawn while the program is traced, or a time: expected "
        "A.random() or C.random(), since it would be the same in all batches"
    )
