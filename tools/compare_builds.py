"""Compares the speed of two builds, and fails if the new one is slower than the gate allows.

    python tools/compare_builds.py OLD NEW
    python tools/compare_builds.py OLD NEW --device cuda --out comparison.json

OLD and NEW are each a wheel, a folder with an unpacked wheel, or a virtual environment. Wheels and
folders run with the interpreter of --python, by PYTHONPATH: nothing is installed and no network is
needed, only NumPy there, and torch for the loaders and for --device cuda.

Each build has one process, and only one of the two works at a time. Every case first compares the
bytes of the results of both. Then a round times both builds twice on the same seeds, old, new, new,
old, and the next round new, old, old, new; the ratio is taken within a round. The gate is the
median ratio of the rounds: at most 1.01 on a CPU and 1.02 on a GPU, and for calls below 20 us at
most 0.2 us more. Status 1 says that the gate failed or that results differ.

A round in which other processes took more than 5 % of the cores is repeated when they rest. If
they never rest, there is no verdict and the status is 2; --force prints the ratios all the same.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
WORKER = Path(__file__).with_name("build_cases.py")
# The class OtherLoad, which benchmarks/ takes from here too. By its file: no build is needed.
MACHINE = ROOT / "python" / "pygsampler" / "_cli" / "bench" / "machine.py"

ROUNDS, SLICE_SECONDS, OTHER_SHARE = 40, 0.12, 0.05
SCALE = 200_000, 3_000_000
RATIO = {"cpu": 1.01, "cuda": 1.02}
SHORT_US, SHORT_MORE_US = 20.0, 0.2
OLD, NEW = 0, 1


class Refused(Exception):
    """No verdict can be given; says why."""


class Different(Exception):
    """The builds do not give the same; says where."""


# ---- figures ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """The figures of a case: microseconds a call, and quartiles of the ratio new to old."""

    case: str
    rounds: int
    disturbed: int
    calls: int
    old_us: float
    new_us: float
    more_us: float
    ratio: float
    q25: float
    q75: float

    @classmethod
    def of(
        cls, case: str, rounds: Sequence[tuple[float, float]], calls: int = 1, disturbed: int = 0
    ) -> Row:
        """From the microseconds a call of both builds in each round."""
        old, new = zip(*rounds, strict=True)
        low, middle, high = statistics.quantiles([b / a for a, b in rounds], n=4)
        return cls(
            case=case,
            rounds=len(rounds),
            disturbed=disturbed,
            calls=calls,
            old_us=statistics.median(old),
            new_us=statistics.median(new),
            more_us=statistics.median(b - a for a, b in rounds),
            ratio=middle,
            q25=low,
            q75=high,
        )

    def fault(self, device: str) -> str | None:
        """Returns why the gate refuses the row, or None if the row passes."""
        if self.old_us < SHORT_US:
            if self.more_us <= SHORT_MORE_US:
                return None
            return f"{self.more_us:.2f} us more, expected at most {SHORT_MORE_US} us"
        if self.ratio <= RATIO[device]:
            return None
        return f"ratio {self.ratio:.3f}, expected at most {RATIO[device]}"


def table(rows: Sequence[Row], device: str | None) -> str:
    """Markdown, a line for each case; without a device nothing is judged."""
    lines = [
        "| case | old us | new us | new / old | quartiles | rounds | gate |",
        "|---|--:|--:|--:|--:|--:|---|",
    ]
    for row in rows:
        cells = (
            row.case,
            f"{row.old_us:.1f}",
            f"{row.new_us:.1f}",
            f"{row.ratio:.3f}",
            f"{row.q25:.3f} to {row.q75:.3f}",
            f"{row.rounds}" + (f", {row.disturbed} disturbed" if row.disturbed else ""),
            (row.fault(device) or "passes") if device else "not judged",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


# ---- builds ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Build:
    """An interpreter, and the folder that it takes the package from, None for its own packages."""

    python: Path
    folder: Path | None

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return kept | ({"PYTHONPATH": str(self.folder)} if self.folder else {})


def build_at(path: Path, python: Path, unpacked: Path) -> Build:
    """The build that a path names; a wheel is unpacked into the folder `unpacked`."""
    path = path.absolute()
    if path.suffix == ".whl" and path.is_file():
        with zipfile.ZipFile(path) as wheel:
            wheel.extractall(unpacked)
        return Build(python, unpacked)
    if (path / "pygsampler" / "__init__.py").exists():
        return Build(python, path)
    if (path / "bin" / "python").exists():
        return Build(path / "bin" / "python", None)
    raise SystemExit(
        f"build: expected a wheel, an unpacked wheel or a virtual environment, got {path}"
    )


class Process:
    """A process of tools/build_cases.py with one build; calls of methods become commands."""

    def __init__(self, build: Build, device: str, scale: tuple[int, int]) -> None:
        command = [build.python, WORKER, MACHINE, device, *scale]
        self._process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=build.environment(),
            cwd=tempfile.gettempdir(),  # a folder pygsampler/ here would be imported
        )
        self.about = self("about")
        if build.folder and not Path(self.about["package"]).is_relative_to(build.folder.resolve()):
            raise SystemExit(f"build: expected {build.folder}, got {self.about['package']}")

    def __call__(self, name: str, *arguments: Any) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps([name, *arguments]) + "\n")
            self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit(f"build: its process ended in {name}{tuple(arguments)}, see above")
        return json.loads(answer)

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@contextlib.contextmanager
def processes(
    builds: Sequence[Build], device: str, scale: tuple[int, int]
) -> Iterator[list[Process]]:
    """A process for each build, ended with the block."""
    with contextlib.ExitStack() as stack:
        made = []
        for build in builds:
            made.append(Process(build, device, scale))
            stack.callback(made[-1].close)
        yield made


# ---- others on the machine -------------------------------------------------------------------


def other_load() -> Any:
    """A fresh OtherLoad, which measures from now on."""
    spec = importlib.util.spec_from_file_location("machine", MACHINE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.OtherLoad()


def refuse_shared_gpu() -> None:
    """Refused if a process has a context on a GPU, as far as the driver tells."""
    query = ["nvidia-smi", "--query-compute-apps=pid", "--format=csv,noheader"]
    users = subprocess.run(query, capture_output=True, text=True).stdout.split()
    if users:
        raise Refused(f"processes have a context on a GPU: {', '.join(users)}")


class Patience:
    """Waits for other processes to rest, `seconds` in all."""

    def __init__(self, seconds: float) -> None:
        self.left = seconds

    def await_rest(self) -> None:
        while self.left > 0:
            load, begin = other_load(), time.perf_counter()
            time.sleep(0.2)
            if load.share() <= OTHER_SHARE:
                break
            self.left -= time.perf_counter() - begin


# ---- measuring -------------------------------------------------------------------------------


def same_results(case: str, both: Sequence[Process]) -> None:
    """Makes a case in both processes; Different if their results are not the same bytes."""
    old, new = (process("prepare", case) for process in both)
    if old != new:
        raise Different(f"{case}: expected the results of the old build {old}, got {new}")
    if not old["numbers"]:
        raise Different(f"{case}: expected results with numbers, got none")


def calls_of_a_slice(both: Sequence[Process]) -> int:
    """Returns the number of calls that take about as long as a slice of a round.

    Both builds run as many, so that their loaders are at the same epoch and both are warm.
    """
    count = 1
    while True:
        seconds, _ = (process("run", 0, count)["seconds"] for process in both)
        if seconds >= SLICE_SECONDS / 4:
            return max(1, round(count * SLICE_SECONDS / seconds))
        count *= 4


def measure(case: str, both: Sequence[Process], rounds: int, wait: float, force: bool) -> Row:
    """The row of a case whose results are the same."""
    same_results(case, both)
    calls = calls_of_a_slice(both)
    patience, disturbed = Patience(wait), 0
    times: list[tuple[float, float]] = []
    turn = 0
    while len(times) < rounds:
        patience.await_rest()
        order = (OLD, NEW, NEW, OLD) if turn % 2 == 0 else (NEW, OLD, OLD, NEW)
        spent, share, begin = [0.0, 0.0], 0.0, time.perf_counter()
        for at in order:
            answer = both[at]("run", turn * calls, calls)
            spent[at] += answer["seconds"]
            share = max(share, answer["others"])
        turn += 1
        if share > OTHER_SHARE:
            patience.left -= time.perf_counter() - begin
            if patience.left > 0:
                continue
            if not force:
                raise Refused(f"{case}: other processes took {share:.0%} of the cores")
            disturbed += 1
        times.append((1e6 * spent[OLD] / (2 * calls), 1e6 * spent[NEW] / (2 * calls)))
    return Row.of(case, times, calls, disturbed)


def verdict(rows: Sequence[Row], device: str) -> tuple[int, str]:
    """The status of the command, and the sentence for it."""
    faults = [f"{row.case}: {fault}" for row in rows if (fault := row.fault(device))]
    if faults:
        return 1, "the gate failed\n" + "\n".join(faults)
    return 0, f"the gate passed: {len(rows)} cases"


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", type=Path, help="wheel, unpacked wheel or virtual environment")
    parser.add_argument("new", type=Path, help="the same")
    parser.add_argument("--device", choices=tuple(RATIO), default="cpu")
    parser.add_argument("--case", action="append", help="only this case; may be repeated")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="(default: %(default)s)")
    parser.add_argument("--python", type=Path, default=Path(sys.executable), help="for wheels")
    parser.add_argument("--wait", type=float, default=60, help="seconds a case for others to rest")
    parser.add_argument("--nodes", type=int, default=SCALE[0], help="(default: %(default)s)")
    parser.add_argument("--edges", type=int, default=SCALE[1], help="(default: %(default)s)")
    parser.add_argument("--force", action="store_true", help="print ratios, give no verdict")
    parser.add_argument("--out", type=Path, help="JSON file for the figures")
    options = parser.parse_args(arguments)
    least = 2 if options.force else ROUNDS
    if options.rounds < least:
        parser.error(f"--rounds: expected at least {least}, got {options.rounds}")
    return options


def compare(options: argparse.Namespace, folder: Path) -> tuple[list[Row], dict[str, Any]]:
    """The rows of all cases, and what ran."""
    if options.device != "cpu" and not options.force:
        refuse_shared_gpu()
    paths = {"old": options.old, "new": options.new}
    python = options.python.absolute()
    builds = [build_at(path, python, folder / name) for name, path in paths.items()]
    rows = []
    with processes(builds, options.device, (options.nodes, options.edges)) as both:
        offered = [name for name in both[OLD].about["cases"] if name in both[NEW].about["cases"]]
        cases = options.case or offered
        if unknown := sorted({*cases} - {*offered}):
            raise SystemExit(f"--case: expected some of {offered}, got {unknown}")
        for case in cases:
            rows.append(measure(case, both, options.rounds, options.wait, options.force))
            row = rows[-1]
            print(f"{case}: {row.ratio:.3f} ({row.q25:.3f} to {row.q75:.3f})", file=sys.stderr)
        about = dict(zip(paths, (process.about for process in both), strict=True))
    return rows, about


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if the gate passed or --force is given, 1 if it failed, 2 if there is no verdict."""
    options = parsed(arguments)
    with tempfile.TemporaryDirectory() as folder:
        try:
            rows, about = compare(options, Path(folder))
        except Refused as reason:
            print(f"no verdict: {reason}", file=sys.stderr)
            return 2
        except Different as reason:
            print(f"refused: {reason}", file=sys.stderr)
            return 1
    print(table(rows, None if options.force else options.device))
    status, sentence = (
        (0, "no verdict: --force") if options.force else verdict(rows, options.device)
    )
    print(sentence)
    if options.out:
        record = {"device": options.device, **about, "rows": [asdict(row) for row in rows]}
        options.out.write_text(json.dumps(record | {"verdict": sentence}, indent=1) + "\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
