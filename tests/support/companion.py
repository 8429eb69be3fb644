"""A plugin of pytest that runs tests on the emulator, in a companion of the process of pytest.

The emulator is a driver that the dynamic linker finds when a process starts. So a second session of
pytest is started with it by the first test with the parameter ``backend`` = ``emulator``; it
collects the files of such tests, runs those whose node ids it is sent, and sends back their
reports. It ends with its parent. A test that ends it, or that takes longer than ``LIMIT``, fails
with what the companion wrote, and the next test has a new one.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import os
import pickle
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from tests.emulator.build import build, compilers

# Below the limit of pytest-timeout, which ends the companion's parent with it.
LIMIT = 600.0
CHANNEL = "PYGSAMPLER_COMPANION"
# Variables of the parent's session alone.
OF_PARENT = re.compile("PYTEST_(ADDOPTS|CURRENT_TEST|XDIST.*)").fullmatch
Message = dict[str, Any]


def line_of(content: Any) -> bytes:
    return base64.b64encode(pickle.dumps(content)) + b"\n"


def content_of(line: bytes) -> Any:
    return pickle.loads(base64.b64decode(line))


def on_emulator(item: pytest.Item | None) -> bool:
    """True if a test has the emulator as a parameter."""
    callspec = getattr(item, "callspec", None)
    return callspec is not None and callspec.params.get("backend") == "emulator"


def register(config: pytest.Config, limit: float = LIMIT) -> None:
    """Registers the plugin: the half of the companion, where this process is one."""
    channel = os.environ.pop(CHANNEL, None)
    if channel is None:
        config.pluginmanager.register(Companions(config, limit), "companions")
    else:
        config.pluginmanager.register(Served(config, *map(int, channel.split())), "companions")


# ---- in the process of pytest ----------------------------------------------------------------


class Companions:
    """Sends tests on the emulator to a companion, and has their reports for its own."""

    def __init__(self, config: pytest.Config, limit: float) -> None:
        self._config, self._limit = config, limit
        self._companion: Companion | None = None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if compilers() is None:
            for item in filter(on_emulator, items):
                item.add_marker(pytest.mark.skip("needs gcc and g++ (apt-get install g++)"))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> bool | None:
        if not on_emulator(item) or item.get_closest_marker("skip"):
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in self._reports(item, nextitem):
            item.ihook.pytest_runtest_logreport(report=report)
        # Tests that ran in this process may have set up fixtures for the module, which end here.
        call = pytest.CallInfo.from_call(
            lambda: item.session._setupstate.teardown_exact(nextitem), "teardown"
        )
        if call.excinfo is not None:
            report = pytest.TestReport.from_item_and_call(item, call)
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def _reports(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Iterator[pytest.TestReport]:
        after = nextitem.nodeid if nextitem is not None and on_emulator(nextitem) else None
        began = time.time()
        try:
            if self._companion is None:
                files = dict.fromkeys(str(i.path) for i in filter(on_emulator, item.session.items))
                self._companion = Companion(self._config, list(files))
            for message in self._companion.run(item.nodeid, after, self._limit):
                report = self._config.hook.pytest_report_from_serializable(
                    config=self._config, data=message
                )
                if report.failed and (said := self._companion.said()):
                    report.sections.append(("Written by the companion", said))
                yield report
        except EndedError as ended:
            self._close()
            yield pytest.TestReport(
                nodeid=item.nodeid,
                location=item.location,
                keywords={item.name: 1},
                outcome="failed",
                longrepr=str(ended),
                when="call",
                start=began,
                stop=time.time(),
                duration=time.time() - began,
            )
        except BaseException:
            self._close()  # Ctrl-C: nobody waits for the test that it runs.
            raise

    def pytest_sessionfinish(self) -> None:
        self._close()

    def _close(self) -> None:
        companion, self._companion = self._companion, None
        if companion is not None:
            companion.close()


class EndedError(Exception):
    """A companion that is of no use any more, and what it wrote."""


class Companion:
    """A session of pytest with the emulator, which has collected some files."""

    def __init__(self, config: pytest.Config, files: list[str]) -> None:
        self._stack = contextlib.ExitStack()
        temporary = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        folder = Path(self._stack.enter_context(temporary))
        emulator = build(folder / "emulator")
        self._log = self._stack.enter_context((folder / "log").open("w+"))
        requests, self._requests = os.pipe()
        self._answers, answers = os.pipe()
        inherited = {name: value for name, value in os.environ.items() if not OF_PARENT(name)}
        # The output of C is not captured, so that the log has it after a crash.
        options = ["-q", "--capture=sys", "-p", "no:cacheprovider", f"--basetemp={folder / 'tmp'}"]
        options += ["--continue-on-collection-errors", f"--rootdir={config.rootpath}"]
        options += ["-c", str(config.inipath or os.devnull)]
        if config.pluginmanager.has_plugin("xdist"):
            options += ["-p", "no:xdist"]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, *files],
            cwd=config.rootpath,
            env={
                **inherited,
                CHANNEL: f"{os.getpid()} {requests} {answers}",
                "LD_LIBRARY_PATH": str(emulator),
                "PYGSAMPLER_NVRTC": str(emulator / "libnvrtc.so.12"),
                "PYGSAMPLER_REQUIRE": "cuda",
            },
            pass_fds=(requests, answers),
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            # Ctrl-C is for its parent alone, which ends it with all that it started.
            start_new_session=True,
        )
        os.close(requests)
        os.close(answers)
        self._unread = b""
        self._began = False

    def run(self, nodeid: str, after: str | None, limit: float) -> Iterator[Message]:
        """Runs a test, with the next one in view, and yields its reports."""
        self._written = self._log.seek(0, os.SEEK_END)
        try:
            if not self._began:
                yield from self._messages(LIMIT)
                self._began = True
            os.write(self._requests, line_of((nodeid, after)))
            yield from self._messages(limit)
        except (TimeoutError, BrokenPipeError, EOFError) as error:
            status = self._end()
            raise EndedError(
                f"companion: {str(error) or status}; it wrote:\n{self.said()}"
            ) from None

    def said(self) -> str:
        """Its output, and that of the driver, since the test began."""
        self._log.seek(self._written)
        return self._log.read()[-8000:]

    def _messages(self, limit: float) -> Iterator[Message]:
        deadline = time.monotonic() + limit
        while (message := self._message(deadline, limit)) is not None:
            yield message

    def _message(self, deadline: float, limit: float) -> Message | None:
        while b"\n" not in self._unread:
            left = deadline - time.monotonic()
            if left <= 0:
                # Its faulthandler writes where it is.
                self._process.send_signal(signal.SIGABRT)
                raise TimeoutError(f"expected an answer within {limit} seconds")
            if select.select([self._answers], [], [], min(left, 1))[0]:
                part = os.read(self._answers, 1 << 16)
                self._unread += part
                if not part:
                    raise EOFError
            elif self._process.poll() is not None:
                # A child of its own may still hold the other end.
                raise EOFError
        line, _, self._unread = self._unread.partition(b"\n")
        message: Message | None = content_of(line)
        return message

    def _end(self, seconds: float = 2) -> str:
        """Waits for its end, after a while ends it, and says how it ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        return f"ended with status {self._process.wait()}"

    def close(self) -> None:
        """Ends it."""
        os.close(self._requests)
        os.close(self._answers)
        self._end(0 if sys.exc_info()[0] else 10)
        self._stack.close()


# ---- in the companion ------------------------------------------------------------------------


class Served:
    """Runs the tests whose node ids come through a pipe."""

    def __init__(self, config: pytest.Config, parent: int, requests: int, answers: int) -> None:
        self._config = config
        for end in (requests, answers):
            os.set_inheritable(end, False)
        self._requests: IO[bytes] = os.fdopen(requests, "rb")
        self._answers: IO[bytes] = os.fdopen(answers, "wb")
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: also in mid-test
        if os.getppid() != parent:
            os._exit(1)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            os.write(2, report.longreprtext.encode())

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        self._answer(None)
        for line in self._requests:
            first, after = content_of(line)
            self._config.hook.pytest_runtest_protocol(item=items[first], nextitem=items.get(after))
            self._answer(None)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._answer(
            self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        )

    def _answer(self, message: Message | None) -> None:
        self._answers.write(line_of(message))
        self._answers.flush()
