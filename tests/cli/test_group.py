"""How every command ends: exit codes, one line for an error, nothing loaded that is not needed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from pygsampler.__main__ import main
from pygsampler._cli import group

MODULE = [sys.executable, "-m", "pygsampler"]


def test_help_names_every_command(run: Callable[..., Any]) -> None:
    for arguments in ((), ("--help",)):
        shown = run(*arguments).stdout
        assert [line.split()[0] for line in shown.partition("Commands:\n")[2].splitlines()] == list(
            group.COMMANDS
        )
    for command in group.COMMANDS:
        assert f"main {command} " in run(command, "--help").stdout


def test_help_loads_click_alone(run_python: Callable[..., str]) -> None:
    run_python(
        """
        import sys
        from pathlib import Path
        from pygsampler.__main__ import main
        for command in ("", "bench", "convert", "doctor", "info", "quickstart", "sample"):
            try:
                main([*command.split(), "--help"])
            except SystemExit as end:
                assert end.code == 0
        late = {"rich", "numpy", "torch", "dgl", "pyarrow", "matplotlib", "tqdm"}
        assert not late & set(sys.modules), late & set(sys.modules)
        assert "_bridge" not in Path("/proc/self/maps").read_text()
        """
    )


@pytest.mark.parametrize("missing", ["click", "rich"])
@pytest.mark.parametrize("how", ["run_module", "load"])
def test_without_its_packages_it_says_how_to_get_them(
    run_python: Callable[..., str], missing: str, how: str
) -> None:
    name = "python -m pygsampler" if how == "run_module" else "pygsampler"
    said = run_python(
        f"""
        import sys
        sys.modules[{missing!r}] = None
        import pygsampler as pgs
        assert pgs.PGSampler([1], seed=0).sample(pgs.Graph.from_csc([0, 1], [0]), [0])
        sys.stderr, sys.argv = sys.stdout, ["pygsampler", "doctor"]
        if {how!r} == "load":
            from pygsampler.__main__ import main
            sys.exit(main())
        import runpy
        runpy.run_module("pygsampler", run_name="__main__")
        """,
        ends_with=2,
    )
    assert said == f"Error: {name} needs click and rich: pip install click rich\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["inf"], "No such command 'inf'. Did you mean 'info'? (main --help says more)"),
        (["Convrt"], "No such command 'Convrt'. Did you mean 'convert'? (main"),
        (["zzz"], "No such command 'zzz'. (main --help says more)"),
        (["info"], "Missing argument 'FILE'. (main info --help says more)"),
        (["info", "x", "--chek"], "No such option"),
        (["sample", "x", "--seeds", "1", "--fanouts", "ten"], "expected numbers from -1 up like"),
        (["sample", "x", "--seeds", "1", "--fanouts", "10,-2"], "expected numbers from -1 up like"),
        (
            ["sample", "debian", "--seeds", "none.txt"],
            'expected "all", ids like 1,2,3 or a file of ids',
        ),
        (["sample", "x", "--seeds", "1", "--out", "x.csv"], "expected a suffix of .arrow,"),
        (["sample", "x", "--seeds", "1", "--out", "none/x.arrow"], "no such folder"),
        (["sample", "x", "--seeds", "1", "--batch-size", "0"], "0 is not in the range"),
        (["info", "x", "--plot", "x.txt"], "expected a suffix of"),
        (["bench", "x", "--seconds", "-1"], "-1.0 is not in the range"),
        (["convert", "debian", "x.pgs", "--format", "csv"], "expected a file of edges"),
    ],
)
def test_mistakes_on_the_command_line(
    refused: Callable[..., str],
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert words in refused(*arguments, ends_with=2)
    assert list(tmp_path.iterdir()) == []


def fails_with(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """The command ``doctor`` does nothing but raise."""

    @click.command("doctor")
    def command() -> None:
        raise error

    monkeypatch.setattr("pygsampler._cli.commands.doctor.command", command)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("seeds[3]: expected\n  one, got two"), "seeds[3]: expected one, got two"),
        (FileNotFoundError(2, "No such file or directory", "x"), "x: No such file or directory"),
        (MemoryError(), "MemoryError"),
        (
            ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow.parquet"),
            "doctor needs pyarrow: pip install pyarrow",
        ),
    ],
)
def test_failures_are_one_line(
    refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch, error: Exception, line: str
) -> None:
    fails_with(monkeypatch, error)
    assert refused("doctor") == line


def test_mistakes_of_ours_and_traceback_show_where(monkeypatch: pytest.MonkeyPatch) -> None:
    fails_with(monkeypatch, ValueError("told"))
    told = CliRunner().invoke(main, ["--traceback", "doctor"])
    assert isinstance(told.exception, ValueError)
    fails_with(monkeypatch, KeyError("ours"))
    assert isinstance(CliRunner().invoke(main, ["doctor"]).exception, KeyError)


def test_ctrl_c_is_130(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    fails_with(monkeypatch, KeyboardInterrupt())
    assert run("doctor", ends_with=130).stderr.split() == ["Aborted!"]


def test_a_reader_that_leaves_ends_it_quietly(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*MODULE, "doctor"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=240) == 1
    assert said == b""


def test_doctor_in_a_pipe_is_plain_text(run: Callable[..., Any]) -> None:
    from pygsampler._cli.doctor import examine

    shown = run("doctor").stdout
    free = shown.partition(" of them free")
    known = examine().text().partition(" of them free")
    assert free[0].rpartition(",")[0] == known[0].rpartition(",")[0]
    assert free[2] == known[2] + "\n"
    assert "\x1b" not in shown
