"""``pygsampler run``: what a program sees is what Python shows it, but for our classes."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pygsampler._adapters.installation import FRAMEWORKS
from pygsampler._cli.commands import run as run_command

RUN = ["-m", "pygsampler", "run"]


def program(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=240,
    )


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))


# Names, exit code, and the end by a signal.
PROGRAM = """
    import os
    import signal
    import sys

    import beside

    print(sys.argv, __name__, __file__, __package__, sys.path[0], beside.__file__, sys.warnoptions)
    if sys.argv[1] == "signal":
        sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGTERM)
    if sys.argv[1] == "raise":
        beside.fail()
    sys.exit(int(sys.argv[2]))
    """


@pytest.mark.parametrize(
    "words",
    [
        "script.py exit 7 --lr 0.1 -m -v",
        "script.py signal",
        "script.py raise",
        "-m script exit 0 --framework dgl",
        "-m script raise",
    ],
)
def test_program_runs_as_python_runs_it(tmp_path: Path, words: str) -> None:
    write(tmp_path / "script.py", PROGRAM)
    write(tmp_path / "beside.py", "def fail():\n    raise ValueError('of the script')\n")
    expected = program(tmp_path, "-W", "error::UserWarning", *words.split())
    result = program(tmp_path, "-W", "error::UserWarning", *RUN, *words.split())
    assert result.returncode == expected.returncode
    assert (result.stdout, result.stderr) == (expected.stdout, expected.stderr)
    assert "error::UserWarning" in result.stdout


def test_frameworks_are_those_of_install() -> None:
    assert {key: each.package for key, each in FRAMEWORKS.items()} == run_command.PACKAGES


def test_module_of_a_package_has_relative_imports(tmp_path: Path) -> None:
    write(tmp_path / "pack" / "__init__.py", "")
    write(tmp_path / "pack" / "value.py", "VALUE = 5\n")
    write(tmp_path / "pack" / "__main__.py", "from .value import VALUE\nprint(VALUE)\n")
    assert program(tmp_path, *RUN, "-m", "pack").stdout == "5\n"


def test_a_sitecustomize_of_the_users_runs_too(tmp_path: Path) -> None:
    write(tmp_path / "site" / "sitecustomize.py", "import os\nos.environ['MINE'] = 'ran'\n")
    write(tmp_path / "script.py", "import os, sitecustomize\nprint(os.environ['MINE'])\n")
    paths = os.pathsep.join([str(tmp_path / "site"), *filter(None, [os.environ.get("PYTHONPATH")])])
    result = program(tmp_path, *RUN, "script.py", PYTHONPATH=paths)
    assert result.stdout == "ran\n", result.stderr


def test_nothing_is_imported_before_the_program_does(tmp_path: Path) -> None:
    write(
        tmp_path / "script.py",
        """
        import sys

        packages = ("pygsampler", "torch", "dgl", "torch_geometric")
        print([name for name in packages if name in sys.modules])
        """,
    )
    assert program(tmp_path, *RUN, "script.py").stdout == "[]\n"


# Children of spawn import the script again, and import the frameworks themselves.
SPAWNS = """
    import multiprocessing

    {imports}

    def child():
        print("child", {name}.__module__, flush=True)

    if __name__ == "__main__":
        print("parent", {name}.__module__, flush=True)
        process = multiprocessing.get_context("spawn").Process(target=child)
        process.start()
        process.join()
        raise SystemExit(process.exitcode)
    """


@pytest.mark.parametrize(
    ("package", "imports", "name", "ours"),
    [
        (
            "torch_geometric",
            "from torch_geometric.loader import NeighborLoader",
            "NeighborLoader",
            "pygsampler.pyg",
        ),
        ("dgl", "import dgl", "dgl.dataloading.NeighborSampler", "pygsampler.dgl"),
    ],
)
def test_program_and_its_processes_get_our_classes(
    tmp_path: Path, package: str, imports: str, name: str, ours: str
) -> None:
    pytest.importorskip(package)
    write(tmp_path / "script.py", textwrap.dedent(SPAWNS).format(imports=imports, name=name))
    result = program(tmp_path, *RUN, "script.py")
    assert result.stdout == f"parent {ours}\nchild {ours}\n", result.stderr


def test_framework_that_is_not_named_is_left(tmp_path: Path) -> None:
    pytest.importorskip("dgl")
    write(
        tmp_path / "script.py",
        "import dgl\nprint(dgl.dataloading.NeighborSampler.__module__.partition('.')[0])\n",
    )
    result = program(tmp_path, *RUN, "--framework", "pyg", "script.py")
    assert result.stdout == "dgl\n", result.stderr


def test_version_that_is_not_tested_ends_the_import(tmp_path: Path) -> None:
    write(tmp_path / "dgl" / "__init__.py", "__version__ = '0.9'\n")
    write(tmp_path / "dgl-0.9.dist-info" / "METADATA", "Name: dgl\nVersion: 0.9\n")
    write(
        tmp_path / "script.py",
        "try:\n    import dgl\nexcept ImportError as error:\n    print(error)\n",
    )
    result = program(tmp_path, *RUN, "script.py")
    assert result.stdout.startswith("install: expected DGL 1.1.3, 2.1.0, which are tested, got 0.9")


def test_missing_script_and_misspelled_option_are_refused(
    refused: Callable[..., str], tmp_path: Path
) -> None:
    assert "expected a file, found none at" in refused("run", tmp_path / "none.py", ends_with=2)
    assert "--framework" in refused("run", "--framwork", "pyg", "script.py", ends_with=2)


@pytest.mark.parametrize("flags", [{"ignore_environment": 1}, {"no_site": 1}])
def test_python_without_pythonpath_is_refused(
    refused: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    flags: dict[str, Any],
) -> None:
    write(tmp_path / "script.py", "")
    both = SimpleNamespace(**{"ignore_environment": 0, "no_site": 0} | flags)
    monkeypatch.setattr(run_command, "sys", SimpleNamespace(flags=both))
    message = refused("run", tmp_path / "script.py", ends_with=2)
    assert "expected a Python that reads PYTHONPATH, got one with -E, -I or -S" in message
