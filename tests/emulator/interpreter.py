"""An interpreter on the emulator that has imported torch: each script runs in a fork of it.

A script is run as by ``python -c`` and ends as there, with the interpreter's own end. Only the
second of importing torch and the package is not spent again by every test. Neither starts a thread
or the engine when it is imported, so a fork lacks nothing.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

# The loop goes on in the first process alone: a fork leaves it, and has the script as its program.
_SERVE = """
import contextlib, json, os, sys
for name in ("numpy", "torch", "pygsampler.torch"):
    with contextlib.suppress(ImportError):
        __import__(name)
print("ready", flush=True)
for line in sys.stdin:
    pid = os.fork()
    if not pid:
        break
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
else:
    sys.exit()
given = json.loads(line)
for number, path in enumerate((os.devnull, given["out"], given["err"])):
    place = os.open(path, os.O_RDWR)
    os.dup2(place, number)
    os.close(place)
os.chdir(given["cwd"])
os.environ.clear()
os.environ.update(given["environment"])


def become(program):
    names = globals()
    own = {name: value for name, value in names.items() if name.startswith("__")}
    names.clear()
    names.update(own)
    exec(program, names)

become(compile(given["code"], "<string>", "exec"))
"""

# What is read when a process starts, or a library is loaded.
_OF_THE_START = ("LD_", "PYTHON", "MALLOC_", "OMP_", "GO", "ASAN_")


class Interpreter:
    """Of the emulator in a folder. It is started by the first script."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[str] | None = None

    def takes(self, variables: dict[str, str]) -> bool:
        """Whether a fork can still be given these variables of the environment."""
        return not any(name.startswith(_OF_THE_START) for name in variables)

    def run(
        self, code: str, scratch: Path, *, timeout: float, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Runs a script. ``scratch`` is a folder for what it writes to its two outputs."""
        process = self._process or self._start()
        environment = {**os.environ, **variables, "LD_LIBRARY_PATH": str(self._folder)}
        out, err = scratch / "out", scratch / "err"
        for file in (out, err):
            file.touch()
        given = {
            "code": code,
            "cwd": os.getcwd(),
            "environment": environment,
            "out": str(out),
            "err": str(err),
        }
        assert process.stdin is not None
        process.stdin.write(json.dumps(given) + "\n")
        process.stdin.flush()
        status = int(self._answer(timeout))
        return subprocess.CompletedProcess("-c", status, out.read_text(), err.read_text())

    def close(self) -> None:
        """Ends it; the next script starts another."""
        process, self._process = self._process, None
        if process is not None:
            process.communicate()

    def _start(self) -> subprocess.Popen[str]:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVE],
            env={**os.environ, "LD_LIBRARY_PATH": str(self._folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # A script that is stopped is stopped with all that it started.
            start_new_session=True,
        )
        assert self._answer(240) == "ready"
        return self._process

    def _answer(self, timeout: float) -> str:
        process = self._process
        assert process is not None and process.stdout is not None
        if not select.select([process.stdout], [], [], timeout)[0]:
            os.killpg(process.pid, signal.SIGKILL)
            self.close()
            raise AssertionError(f"expected the script to end within {timeout} seconds")
        return process.stdout.readline().strip()
