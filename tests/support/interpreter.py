"""An interpreter that has imported torch, on the emulator or not: scripts run in forks of it.

A script runs as by ``python -c`` and ends with the interpreter's own end, but tests do not spend
the second that importing torch and the package takes. Neither import starts a thread or the engine,
so a fork lacks nothing. PyG imports PyArrow, whose allocator starts its one thread again in a fork.
Imported objects are left out of all garbage collections, as in the process of the tests.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

TORCH = ("numpy", "torch", "pygsampler.torch")
# PyG imports torch._dynamo anyway, which takes seconds, and which every optimizer imports.
PYG = ("torch_geometric.nn", "torch._dynamo", "pygsampler.pyg")
# The loop goes on in the first process alone: a fork leaves it, and has the script as its program.
_SERVE = """
import contextlib, gc, json, os, sys, warnings
gc.disable()
for name in sys.argv[1:]:
    with contextlib.suppress(ImportError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        __import__(name)
gc.freeze()
gc.enable()
print("ready", flush=True)
for line in sys.stdin:
    children = []
    for given in json.loads(line):
        pid = os.fork()
        if not pid:
            break
        children.append(pid)
    else:
        ends = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
        print(*ends, flush=True)
        continue
    break
else:
    sys.exit()
for number, path in enumerate((os.devnull, given["out"], given["err"])):
    place = os.open(path, os.O_RDWR)
    os.dup2(place, number)
    os.close(place)
os.chdir(given["cwd"])
os.environ.clear()
os.environ.update(given["environment"])
sys.argv[1:] = given["arguments"]


def become(program):
    names = globals()
    own = {name: value for name, value in names.items() if name.startswith("__")}
    names.clear()
    names.update(own)
    exec(program, names)

become(compile(given["code"], "<string>", "exec"))
"""

# A script in a file, with its folder and its arguments as Python itself gives them to it.
_FILE = """
import os, runpy, sys
del sys.argv[0]
sys.path[0] = os.path.dirname(sys.argv[0])
runpy.run_path(sys.argv[0], run_name="__main__")
"""

# The prefixes of variables that are read when a process starts, or a library is loaded.
_OF_THE_START = ("LD_", "PYTHON", "MALLOC_", "OMP_", "GO", "ASAN_")


class Interpreter:
    """With the driver in a folder, if there is one, and with some modules, if they are there.

    It is started by the first script. It has ``variables`` in its environment, and all scripts have
    them: some are read when torch is loaded, before there is a fork.
    """

    def __init__(
        self, folder: Path | None = None, imports: Sequence[str] = TORCH, **variables: str
    ) -> None:
        self._imports = imports
        self._own = variables | ({} if folder is None else {"LD_LIBRARY_PATH": str(folder)})
        self._process: subprocess.Popen[str] | None = None

    def takes(self, variables: dict[str, str]) -> bool:
        """True if these variables of the environment still have an effect in a fork."""
        return not any(name.startswith(_OF_THE_START) for name in variables)

    def run(
        self, code: str, scratch: Path, *, timeout: float, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Runs a script. ``scratch`` is a folder for what it writes to its two outputs."""
        (done,) = self.run_together(code, scratch, [()], [variables], timeout=timeout)
        return done

    def run_file(
        self, path: Path, *arguments: str, scratch: Path, timeout: float
    ) -> subprocess.CompletedProcess[str]:
        """Runs a script in a file, as ``python PATH ARGUMENTS`` does, in the current folder."""
        words = [str(path), *arguments]
        (done,) = self.run_together(_FILE, scratch, [words], [{}], timeout=timeout)
        return done

    def run_together(
        self,
        code: str,
        scratch: Path,
        arguments: Sequence[Sequence[str]],
        variables: Sequence[Mapping[str, str]],
        *,
        timeout: float,
    ) -> list[subprocess.CompletedProcess[str]]:
        """Runs a script in several processes at once, each with its own of the arguments."""
        process = self._process or self._start()
        given = []
        for number, (words, own) in enumerate(zip(arguments, variables, strict=True)):
            out, err = scratch / f"out{number}", scratch / f"err{number}"
            for file in (out, err):
                file.write_text("")
            given.append(
                {
                    "code": code,
                    "arguments": [*words],
                    "cwd": os.getcwd(),
                    "environment": {**os.environ, **own, **self._own},
                    "out": str(out),
                    "err": str(err),
                }
            )
        assert process.stdin is not None
        process.stdin.write(json.dumps(given) + "\n")
        process.stdin.flush()
        ends = map(int, self._answer(timeout).split())
        return [
            subprocess.CompletedProcess(
                "-c", end, Path(each["out"]).read_text(), Path(each["err"]).read_text()
            )
            for end, each in zip(ends, given, strict=True)
        ]

    def close(self) -> None:
        """Ends it; the next script starts another."""
        process, self._process = self._process, None
        if process is not None:
            process.communicate()

    def _start(self) -> subprocess.Popen[str]:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVE, *self._imports],
            env={**os.environ, **self._own},
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


def imports_of(script: str) -> Sequence[str]:
    """Returns what ``prepared`` imports for a script: PYG if the script uses PyG or trains."""
    return PYG if re.search(r"torch_geometric|pygsampler[. ].*\bpyg\b|\boptim\.", script) else ()


@functools.cache
def prepared(*modules: str) -> Interpreter:
    """Returns the interpreter with torch, and more modules, whose forks all tests share.

    It ends with this process. PyTorch's threads would spin at barriers, which costs much where
    other tests run at the same time: it has one.
    """
    interpreter = Interpreter(imports=(*TORCH, *modules), OMP_NUM_THREADS="1")
    atexit.register(interpreter.close)
    return interpreter
