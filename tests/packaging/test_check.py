"""Tests of tools/check.py, which chooses the tests of a change, and of its limit of time."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.packaging.scripts import ROOT, tool

pytestmark = pytest.mark.once

check = tool("check")

TREE = {
    "python/pygsampler/__init__.py": "from pygsampler.walks import RandomWalk\n",
    "python/pygsampler/walks.py": (
        "from pygsampler._core.steps import StepPlan\nclass RandomWalk: ..."
    ),
    "python/pygsampler/_core/steps.py": "class StepPlan: ...\ndef _hidden_one(): ...",
    "python/pygsampler/_core/lone.py": "def lone_function(): ...",
    "tests/test_walks.py": "from pygsampler import RandomWalk",
    "tests/test_loader.py": "import pygsampler\nRandomWalk, RandomWalk, RandomWalk",
    "tests/test_steps.py": "from pygsampler._core.steps import StepPlan",
    "tests/test_nothing.py": "import reference\n",
    "tests/cuda/test_walks.py": "RandomWalk",
    "tests/soak/test_soak.py": 'soak = tool("soak")',
    "tests/style/test_words.py": "",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in TREE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def covering(tree: Path, *changed: str) -> list[str]:
    tests, too_many = check.chosen_tests(changed, tree)
    assert not too_many
    assert list(tests)[: len(check.CORE) + 1] == [*check.CORE, "tests/style/test_words.py"]
    return [test for test in tests if tests[test] != "core"]


@pytest.mark.parametrize(
    "changed, tests",
    [
        # Tests with the file's name come before those that name it more often.
        ("python/pygsampler/walks.py", ["tests/test_walks.py", "tests/test_loader.py"]),
        (
            "python/pygsampler/_core/steps.py",
            ["tests/test_steps.py", "tests/test_loader.py", "tests/test_walks.py"],
        ),
        ("python/pygsampler/_core/lone.py", []),
        ("tests/test_nothing.py", ["tests/test_nothing.py"]),
        ("tests/cuda/test_walks.py", ["tests/cuda/test_walks.py"]),
        ("tests/support/reference.py", ["tests/test_nothing.py"]),
        ("tools/soak.py", ["tests/soak/test_soak.py"]),
        ("kernels/walk.cu", ["tests/test_walks.py"]),
        ("docs/guide/walks.md", []),
    ],
)
def test_tests_of_a_changed_file_come_nearest_first(
    tree: Path, changed: str, tests: list[str]
) -> None:
    assert covering(tree, changed) == tests


def test_changed_tests_come_first(tree: Path) -> None:
    tests = covering(tree, "python/pygsampler/_core/steps.py", "tests/test_loader.py")
    assert tests == ["tests/test_loader.py", "tests/test_steps.py", "tests/test_walks.py"]


def test_tests_that_are_too_many_are_named(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "MOST_FILES", 1)
    tests, too_many = check.chosen_tests(["python/pygsampler/walks.py"], tree)
    assert "tests/test_walks.py" in tests
    assert too_many == ["tests/test_loader.py"]


def test_the_core_exists() -> None:
    for test in check.CORE:
        file, _, function = test.partition("::")
        assert f"def {function}" in (ROOT / file).read_text()


def test_go_packages_are_those_that_changed_and_their_importers() -> None:
    def package(path: str, folder: str, *needs: str) -> Any:
        return check.GoPackage(path, folder, frozenset(needs))

    packages = [
        package("m/cuda", "go/cuda", "m/rng", "m/kernels", "m/cpu"),
        package("m/cpu", "go/cpu", "m/rng"),
        package("m/rng", "go/rng"),
        package("m/kernels", "kernels"),
    ]
    assert check.go_choice(["go/rng/philox.go"], packages) == (["m/rng"], ["m/cpu", "m/cuda"])
    assert check.go_choice(["kernels/hops/one.cuh"], packages) == (["m/kernels"], ["m/cuda"])
    assert check.go_choice(["go/cpu/testdata/x"], packages) == (["m/cpu"], ["m/cuda"])
    assert check.go_choice(["go/cpu/README.md", "setup.py", "Makefile"], packages) == ([], [])


def test_commands_that_fail_are_kept_with_their_output() -> None:
    commands = check.Commands([], time.monotonic() + 2)
    assert commands.command("sh", "-c", "echo right") == "right\n"
    assert commands.command("sh", "-c", "echo wrong; exit 3") == "wrong\n"
    # Those that the end of the time ends fail by what they have said.
    assert commands.command("sh", "-c", "echo ok; echo 'FAIL one'; sleep 99", stop=True)
    assert commands.command("sleep", "99", stop=True) == ""
    assert [output.splitlines()[1:] for output in commands.failed] == [
        ["wrong"],
        ["ok", "FAIL one"],
    ]


def test_no_test_begins_when_the_time_is_over(tmp_path: Path) -> None:
    (tmp_path / "test_slow.py").write_text(
        "import time\n\n"
        "def test_first():\n    time.sleep(0.2)\n\n"
        "def test_second():\n    raise AssertionError\n"
    )
    (tmp_path / "test_page.py").write_text(
        "import pytest\n\n"
        "@pytest.mark.parametrize('page', ['a.md', 'b.md'])\n"
        "def test_python_runs(page):\n    assert page == 'b.md'\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "tools.pytest_budget", "--rootdir", tmp_path]
    options = ["-c", "/dev/null", "-p", "no:cacheprovider", "--page=b.md"]
    done = subprocess.run(
        [*command, *options, "--budget=0.4", tmp_path / "test_page.py", tmp_path / "test_slow.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed, 1 skipped, 1 deselected" in done.stdout
    assert "left out, no time: 1 tests of test_slow.py" in done.stdout
