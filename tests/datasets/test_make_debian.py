"""The script that makes the data set, on a small archive of our own."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "make_debian.py"

ARCHIVE = """\
Package: shell
Source: shell-source (1.0)
Version: 1.0-1
Maintainer: Somebody <somebody@example.org>
Pre-Depends: libbase (>= 2.0) | libbase-old
Depends: libbase (>= 2.0), libbase (<< 3), editor [amd64], nowhere
Recommends: shell, shell-doc:all <!nodoc>
Section: shells
Description: Interactive command interpreter
 The long text is not looked at: paragraph.

Package: libbase
Version: 2.1
Maintainer: Somebody <somebody@example.org>
Section: contrib/libs
Description: base command library

Package: shell-doc
Source: shell-source
Version: 1.0-1
Maintainer: Team <team@example.org>
Suggests: editor,
 libbase
Enhances: shell
Section: doc
Description: documentation of the command interpreter

Package: big-editor
Version: 9
Maintainer: Team <team@example.org>
Provides: editor (= 9), libbase
Section: editors

Package: small.editor+1
Version: 1
Maintainer: Team <team@example.org>
Provides: editor
Depends: editor
Section: editors
Description: command command command
"""


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_debian", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def arrays(script: ModuleType) -> dict[str, np.ndarray]:
    return script.build(script.read(ARCHIVE.splitlines(keepends=True)), "five", 3)


def texts(array: np.ndarray) -> list[str]:
    return array.tobytes().decode().split("\n")


def relations(arrays: dict[str, np.ndarray]) -> set[tuple[str, str, str]]:
    names, kinds = texts(arrays["names"]), texts(arrays["kinds"])
    src = np.repeat(np.arange(len(names)), arrays["out_degree"])
    return {
        (names[s], kinds[k], names[d])
        for s, k, d in zip(src, arrays["kind"], arrays["dst"], strict=True)
    }


def test_relations_are_resolved(arrays: dict[str, np.ndarray]) -> None:
    assert relations(arrays) == {
        # An alternative that nothing has is left out; who provides a real package counts too.
        ("shell", "Pre-Depends", "libbase"),
        ("shell", "Pre-Depends", "big-editor"),
        # Two constraints on one package are one edge; `nowhere` is none.
        ("shell", "Depends", "libbase"),
        ("shell", "Depends", "big-editor"),
        ("shell", "Depends", "small.editor+1"),
        # Not itself; architecture and profile are no part of the name.
        ("shell", "Recommends", "shell-doc"),
        # A folded field.
        ("shell-doc", "Suggests", "big-editor"),
        ("shell-doc", "Suggests", "small.editor+1"),
        ("shell-doc", "Suggests", "libbase"),
        ("shell-doc", "Enhances", "shell"),
        # It provides `editor` itself, but is not the only one.
        ("small.editor+1", "Depends", "big-editor"),
    }
    assert len(arrays["dst"]) == 11


def test_nodes_classes_and_numbers(arrays: dict[str, np.ndarray]) -> None:
    assert texts(arrays["names"]) == [
        "big-editor",
        "libbase",
        "shell",
        "shell-doc",
        "small.editor+1",
    ]
    assert texts(arrays["classes"]) == ["doc", "editors", "libs", "shells"]
    assert arrays["labels"].tolist() == [1, 2, 3, 0, 1]
    assert arrays["source"].tolist() == [0, 1, 2, 2, 3]
    assert arrays["maintainer"].tolist() == [0, 1, 1, 0, 0]
    assert texts(arrays["title"]) == ["five"]


def test_words_of_the_first_line_by_packages_that_have_them(arrays: dict[str, np.ndarray]) -> None:
    # `command` is in four packages, `interpreter` in two; `base` comes first of those in one.
    assert texts(arrays["vocabulary"]) == ["base", "command", "interpreter"]
    rows = np.split(arrays["word"], np.cumsum(arrays["word_count"])[:-1])
    assert [row.tolist() for row in rows] == [[], [0, 1], [1, 2], [1, 2], [1]]


def test_nothing_of_maintainers_or_texts_is_kept(
    script: ModuleType, arrays: dict[str, np.ndarray], tmp_path: Path
) -> None:
    kept = b"".join(array.tobytes() for array in arrays.values())
    assert b"@" not in kept
    assert b"paragraph" not in kept
    assert b"somebody" not in kept.lower()


def test_split_has_its_parts(script: ModuleType) -> None:
    part = script.split([f"package-{i}" for i in range(1000)])
    assert np.bincount(part).tolist() == [300, 100, 600]
    assert np.array_equal(part, script.split([f"package-{i}" for i in range(1000)]))


def test_bytes_depend_on_the_metadata_alone(script: ModuleType, tmp_path: Path) -> None:
    stanzas = ARCHIVE.split("\n\n")
    written = []
    for number, order in enumerate((stanzas, stanzas[::-1])):
        text = "\n\n".join(stanza.rstrip("\n") for stanza in order) + "\n"
        arrays = script.build(script.read(text.splitlines(keepends=True)), "five", 3)
        path = tmp_path / f"{number}.npz"
        script.write(path, arrays)
        written.append(path.read_bytes())
    assert written[0] == written[1]


def test_numpy_reads_what_is_written(
    script: ModuleType, arrays: dict[str, np.ndarray], tmp_path: Path
) -> None:
    path = tmp_path / "small.npz"
    script.write(path, arrays)
    assert script.differences(path, arrays) == []
    other = {**arrays, "dst": arrays["dst"][::-1], "kind": arrays["kind"].astype(np.int64)}
    del other["word"]
    assert script.differences(path, other) == ["dst", "kind", "word"]


@pytest.mark.parametrize(
    ("listing", "message"),
    [
        (ARCHIVE + "\n" + ARCHIVE, "shell: expected one version of one architecture"),
        ("Package: a\nMaintainer: b\n", "expected a field Section"),
        ("Section: c\n", "expected a field Package"),
        (
            "Package: a\nMaintainer: b\nSection: c\nDepends: (>= 2)\n",
            r"expected the name of a package, got '\(>= 2\)'",
        ),
    ],
)
def test_odd_listings_are_refused(script: ModuleType, listing: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        script.build(script.read(listing.splitlines(keepends=True)), "")


def test_command_writes_and_checks(tmp_path: Path) -> None:
    listing, out = tmp_path / "packages.txt", tmp_path / "out.npz"
    listing.write_text(ARCHIVE)

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, SCRIPT, listing, "--out", out, *options],
            capture_output=True,
            text=True,
        )

    done = run("--title", "five")
    assert done.returncode == 0, done.stderr
    assert "5 packages, 11 edges" in done.stdout
    same = run("--check")
    assert (same.returncode, same.stdout) == (0, "the same\n")
    listing.write_text(ARCHIVE.replace("Enhances: shell\n", ""))
    other = run("--check")
    assert (other.returncode, other.stdout) == (1, "different: dst, kind, out_degree\n")
