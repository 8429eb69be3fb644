"""A long run of random calls of the whole public API.

    python -m tests.fuzz --calls 1000000 --seed 1       # from the root of the repository
    python -m tests.fuzz --seed 1 --episode 137         # again what failed
    python -m tests.fuzz --seed 1 --episode 137 --trace # with the name of each call

Each call works, and its result is that of the reference or obeys the laws of a batch, or it raises
what the documents say. A crash, a hang, a wrong answer, another exception, or memory, descriptors
or threads that grow end the run with status 1 and the command that repeats it. Ctrl-C ends it with
a summary and status 130.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parents[2]
# A fresh process after so many episodes: its end is a part of what is tried.
EPISODES = 400


class Run:
    """The children of one run, one after the other, and what they have said."""

    def __init__(self, options: argparse.Namespace, bar: Any) -> None:
        self.options = options
        self.bar = bar
        self.calls = 0
        self.holdings: list[dict[str, int]] = []
        self.failure = ""
        self.episode = 0

    def child(self, first: int, last: int) -> bool:
        """Episodes first to last - 1; False where one of them failed."""
        o = self.options
        what = {
            "seed": o.seed,
            "first": first,
            "last": last,
            "device": o.device,
            "trace": o.trace,
            "sabotage": o.sabotage,
            "light": o.light,
        }
        if o.sabotage:
            what |= {"warm": 2, "look": 1}
        process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", "-m", "tests.fuzz.child", json.dumps(what)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        # Threads read, so that a silent child and a talkative one are both seen.
        lines: queue.Queue[str | None] = queue.Queue()
        errors: collections.deque[str] = collections.deque(maxlen=200)
        readers = [
            threading.Thread(target=_pump, args=(process.stdout, lines.put), daemon=True),
            threading.Thread(target=_errors, args=(process.stderr, errors, o.trace), daemon=True),
        ]
        for reader in readers:
            reader.start()
        try:
            failure = self._listen(process, lines)
        except BaseException:
            process.kill()
            raise
        finally:
            process.wait()
            for reader in readers:
                reader.join(5)
        if not failure and process.returncode:
            failure = f"the process ended with status {process.returncode}"
        if not failure and errors and not o.trace:
            failure = "the process wrote to its standard error"
        if failure:
            self.failure = "\n".join([failure, *(line.rstrip() for line in errors)])
        return not failure

    def _listen(self, process: subprocess.Popen[str], lines: queue.Queue[str | None]) -> str:
        failure = ""
        while True:
            try:
                line = lines.get(timeout=self.options.patience)
            except queue.Empty:
                # It says where all of its threads are, and then goes.
                process.send_signal(signal.SIGUSR1)
                time.sleep(1)
                process.kill()
                return f"nothing for {self.options.patience} seconds: it hangs"
            if line is None:
                return failure
            said = json.loads(line)
            self.episode = said.get("episode", self.episode)
            if "calls" in said:
                self.calls += said["calls"]
                self.bar.update(said["calls"])
            if "holdings" in said:
                self.holdings.append(said["holdings"])
                self.bar.set_postfix_str(f"{said['holdings']['resident'] >> 20} MiB", False)
            failure = failure or said.get("failed", "")


def _pump(file: IO[str], put: Any) -> None:
    for line in file:
        put(line)
    put(None)


def _errors(file: IO[str], kept: collections.deque[str], show: bool) -> None:
    for line in file:
        kept.append(line)
        if show:
            sys.stderr.write(line)


class _NoBar:
    """In the place of tqdm's where nobody looks, or tqdm is not there."""

    def update(self, calls: int) -> None: ...

    def set_postfix_str(self, text: str, refresh: bool) -> None: ...

    def close(self) -> None: ...


def bar_of(calls: int, quiet: bool) -> Any:
    try:
        from tqdm import tqdm
    except ImportError:
        return _NoBar()
    return _NoBar() if quiet else tqdm(total=calls, unit="call", unit_scale=True, smoothing=0.05)


def parse(arguments: list[str]) -> argparse.Namespace:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(
        "python -m tests.fuzz",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=time.time_ns() & 0xFFFFFFFF)
    parser.add_argument("--episode", type=int, help="only this one")
    parser.add_argument("--device", default="cpu", help="cuda: some graphs are there")
    parser.add_argument("--trace", action="store_true", help="print the name of each call")
    parser.add_argument("--quiet", action="store_true", help="no bar")
    parser.add_argument("--light", action="store_true", help="without torch and pyarrow")
    parser.add_argument("--patience", type=float, default=120, help="seconds until it hangs")
    parser.add_argument("--sabotage", default="", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    options = parse(sys.argv[1:] if arguments is None else arguments)
    bar = bar_of(options.calls, options.quiet)
    run = Run(options, bar)
    begin, first, status = time.monotonic(), 0, 0
    try:
        if options.episode is not None:
            status = 0 if run.child(options.episode, options.episode + 1) else 1
        while options.episode is None and run.calls < options.calls and not status:
            rest = -(-(options.calls - run.calls) // 250)
            last = first + min(EPISODES, rest)
            status = 0 if run.child(first, last) else 1
            first = last
    except KeyboardInterrupt:
        status = 130
    bar.close()
    seconds = time.monotonic() - begin
    print(
        f"seed {options.seed}: {run.calls:,} calls in {seconds:.0f} s, "
        f"{run.calls / max(seconds, 1e-9):,.0f} a second, on {os.cpu_count()} cores"
    )
    for name in run.holdings[0] if run.holdings else ():
        low, high = min(h[name] for h in run.holdings), max(h[name] for h in run.holdings)
        print(f"  {name}: {low:,} to {high:,}")
    if run.failure:
        device = f" --device {options.device}" if options.device != "cpu" else ""
        print(f"FAILED in episode {run.episode}: {run.failure}")
        print(f"again: python -m tests.fuzz --seed {options.seed} --episode {run.episode}{device}")
    elif status == 0:
        print("all well")
    return status


if __name__ == "__main__":
    sys.exit(main())
