"""Nothing that is read is executed: no pickle, no eval, in what the package does with files."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import pygsampler as pgs

pytestmark = pytest.mark.once

PACKAGE = Path(pgs.__file__ or "").parent
SOURCES = sorted(PACKAGE.rglob("*.py"))

# Calls that run what they are given, or what they read.
NEVER = {"eval", "exec", "compile", "__import__", "execfile"}
READERS = {
    ("pickle", "load"),
    ("pickle", "loads"),
    ("pickle", "Unpickler"),
    ("marshal", "load"),
    ("marshal", "loads"),
    ("shelve", "open"),
    ("joblib", "load"),
    ("yaml", "load"),
    ("os", "system"),
    ("os", "popen"),
    ("scipy.io", "loadmat"),
}


def faults(source: str) -> list[str]:
    """What a module does that it must not, with the line."""
    tree = ast.parse(source)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in ("pickle", "marshal", "shelve"):
            # PickleBuffer offers memory to a caller's pickle; it reads nothing.
            wrong = {name.name for name in node.names} - {"PickleBuffer"}
            found += [f"{node.lineno}: from {node.module} import {name}" for name in wrong]
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        keywords = {word.arg: word.value for word in node.keywords}
        if isinstance(function, ast.Name) and function.id in NEVER:
            found.append(f"{node.lineno}: {function.id}")
        elif isinstance(function, ast.Attribute):
            owner = ast.unparse(function.value)
            name = function.attr
            if (owner, name) in READERS:
                found.append(f"{node.lineno}: {owner}.{name}")
            if owner in ("np", "numpy") and name in ("load", "fromregex"):
                allowed = keywords.get("allow_pickle")
                if not (isinstance(allowed, ast.Constant) and allowed.value is False):
                    found.append(f"{node.lineno}: {owner}.load without allow_pickle=False")
            if owner == "torch" and name == "load":
                only = keywords.get("weights_only")
                if not (isinstance(only, ast.Constant) and only.value is True):
                    found.append(f"{node.lineno}: torch.load without weights_only=True")
            shell = keywords.get("shell")
            if shell is not None and not (isinstance(shell, ast.Constant) and shell.value is False):
                found.append(f"{node.lineno}: {owner}.{name} with shell")
        if (
            isinstance(keywords.get("allow_pickle"), ast.Constant)
            and keywords["allow_pickle"].value
        ):  # type: ignore[attr-defined]
            found.append(f"{node.lineno}: allow_pickle=True")
    return found


def test_no_module_runs_what_it_reads() -> None:
    assert len(SOURCES) > 30
    found = {
        str(path.relative_to(PACKAGE)): faults(path.read_text(encoding="utf-8")) for path in SOURCES
    }
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "source",
    [
        "eval('1')",
        "exec(text)",
        "import pickle\npickle.loads(data)",
        "from pickle import loads",
        "numpy.load(path)",
        "np.load(path, allow_pickle=True)",
        "numpy.load(path, allow_pickle=flag)",
        "torch.load(path)",
        "subprocess.run(text, shell=True)",
        "os.system('true')",
    ],
)
def test_what_is_looked_for_is_found(source: str) -> None:
    assert faults(source)


def test_what_is_harmless_is_let_through() -> None:
    harmless = (
        "from pickle import PickleBuffer\nnumpy.load(path, allow_pickle=False)\nre.compile(x)"
    )
    assert not faults(harmless)
