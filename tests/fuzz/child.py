"""The process that makes the calls: a crash or a hang ends it, and not the one that counts.

It writes one JSON object a line: which episode it starts, how many calls it has made, what it
holds, and what failed.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
import time
import warnings
from random import Random
from typing import Any

# Between two looks at what the process holds, in episodes, and those before the first.
LOOK, WARM = 40, 60

_kept: list[Any] = []


def sabotage(how: str) -> Any:
    """What the tests of this program do to it, to see that it is noticed."""

    def crash(world: Any, random: Random) -> None:
        os.kill(os.getpid(), signal.SIGSEGV)

    def hang(world: Any, random: Random) -> None:
        time.sleep(3600)

    def wrong(world: Any, random: Random) -> None:
        raise AssertionError("sabotage")

    def leak(world: Any, random: Random) -> None:
        # In a world of its own, where no other thread closes a graph under it.
        _kept.extend((type(world)().some("batches", random), open(os.devnull)))  # noqa: SIM115

    return {"crash": crash, "hang": hang, "wrong": wrong, "leak": leak, "": None}[how]


def main(arguments: list[str]) -> int:
    options = json.loads(arguments[0])
    # Where a hang is, when the parent asks.
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True, chain=False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Copies of arrays that are not contiguous are warned of: they are wanted here.
    warnings.simplefilter("ignore")
    if options["light"]:
        # Importing them takes longer than some thousand calls.
        sys.modules.update(dict.fromkeys(("torch", "pyarrow", "scipy.sparse")))  # type: ignore
    from tests.fuzz.episodes import Episode, Failure, holdings, run

    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def say(**what: Any) -> None:
        print(json.dumps(what), file=out)

    trace = (lambda text: print(text, file=sys.stderr, flush=True)) if options["trace"] else None
    first, last = options["first"], options["last"]
    before, harm = None, sabotage(options["sabotage"])
    warm, look = options.get("warm", WARM), options.get("look", LOOK)
    for number in range(first, last):
        say(episode=number)
        try:
            calls = run(Episode(options["seed"], number, options["device"]), trace, harm)
        except Failure as failure:
            say(failed=str(failure), episode=number)
            return 1
        say(calls=calls)
        done = number - first + 1
        if done >= warm and (done % look == 0 or number == last - 1):
            now = holdings()
            before = before or now
            say(holdings=now.__dict__)
            leaks = list(now.leaks(before))
            if leaks:
                say(failed="grows: " + "; ".join(leaks), episode=number, from_episode=first)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
