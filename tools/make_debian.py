#!/usr/bin/env python3
"""Make pygsampler's Debian data set from the text that ``apt-cache dumpavail`` prints.

    apt-cache dumpavail > packages.txt
    python tools/make_debian.py packages.txt --title "Debian 12 (bookworm), main, amd64"

The result depends on the text alone, not on the order of its stanzas: the same metadata gives the
same arrays, and with the same zlib the same bytes. docs/guide/debian.md explains every field.
``--check`` compares with the file in the package instead of writing.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import re
import sys
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

PACKED = Path(__file__).parents[1] / "python" / "pygsampler" / "datasets" / "debian.npz"

Stanza = dict[str, str]
Arrays = dict[str, np.ndarray]

# The order is part of the file: ``kind`` holds positions in this tuple.
KINDS = ("Depends", "Recommends", "Suggests", "Enhances", "Pre-Depends")
FIELDS = frozenset(
    ("Package", "Source", "Maintainer", "Section", "Description", "Provides", *KINDS)
)

# Four letters leave out nearly all words without a meaning, and need no list of them.
WORD = re.compile(r"[a-z]{4,}")

# A relation is ``name:arch (>= version) [arch] <profile>``; only the name says which edge it is.
RELATION_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]*")


def stanzas(lines: Iterable[str]) -> Iterator[Stanza]:
    """The packages of an apt listing, each as its fields that the data set needs."""
    stanza: Stanza = {}
    field = ""
    for line in lines:
        if not line.strip():
            if stanza:
                yield stanza
            stanza, field = {}, ""
        elif line[0] in " \t":  # Continues the field above; ours fold only in relations.
            if field in KINDS or field == "Provides":
                stanza[field] += " " + line.strip()
        else:
            field, _, value = line.partition(":")
            if field in FIELDS:
                stanza[field] = value.strip()
    if stanza:
        yield stanza


def read(lines: Iterable[str]) -> list[Stanza]:
    """All packages by name. ValueError where a name comes twice or a needed field is missing."""
    packages: dict[str, Stanza] = {}
    for stanza in stanzas(lines):
        for field in ("Package", "Section", "Maintainer"):
            if field not in stanza:
                raise ValueError(f"expected a field {field}, got {stanza}")
        name = stanza["Package"]
        if name in packages:
            raise ValueError(
                f"{name}: expected one version of one architecture, got the package twice"
            )
        packages[name] = stanza
    return [packages[name] for name in sorted(packages)]


def names_in(relations: str) -> list[str]:
    """Every name in a relation field: clauses (``,``) and alternatives (``|``) without versions."""
    found = []
    for relation in re.split(r"[,|]", relations):
        if relation.strip():
            match = RELATION_NAME.match(relation.strip())
            if match is None:
                raise ValueError(f"expected the name of a package, got {relation.strip()!r}")
            found.append(match.group())
    return found


def edges(packages: list[Stanza]) -> set[tuple[int, int, int]]:
    """All (package, kind, target). A name stands for the package of that name, if there is one,
    and for every package that provides it, as in apt; a package needs no edge to itself."""
    targets: dict[str, set[int]] = {}
    for node, package in enumerate(packages):
        targets.setdefault(package["Package"], set()).add(node)
        for name in names_in(package.get("Provides", "")):
            targets.setdefault(name, set()).add(node)
    return {
        (node, kind, target)
        for node, package in enumerate(packages)
        for kind, field in enumerate(KINDS)
        for name in names_in(package.get(field, ""))
        for target in targets.get(name, ())
        if target != node
    }


def words(packages: list[Stanza], size: int) -> tuple[list[str], list[list[int]]]:
    """The vocabulary in alphabetical order and each package's positions in it, ascending."""
    said = [set(WORD.findall(p.get("Description", "").lower())) for p in packages]
    count = Counter(word for one in said for word in one)
    vocabulary = sorted(sorted(count, key=lambda word: (-count[word], word))[:size])
    position = {word: i for i, word in enumerate(vocabulary)}
    return vocabulary, [sorted(position[word] for word in one if word in position) for one in said]


def by_first_use(values: Iterable[str]) -> list[int]:
    """Numbers equal values alike, in order of appearance, so that the values need not ship."""
    number: dict[str, int] = {}
    return [number.setdefault(value, len(number)) for value in values]


def split(names: list[str]) -> np.ndarray:
    """0 train (30 %), 1 validation (10 %), 2 test: by a hash of the name, so that it depends on
    no library's random numbers."""
    order = sorted(range(len(names)), key=lambda i: hashlib.sha256(names[i].encode()).digest())
    part = np.full(len(names), 2, dtype=np.uint8)
    part[order[: len(names) * 3 // 10]] = 0
    part[order[len(names) * 3 // 10 : len(names) * 4 // 10]] = 1
    return part


def text(values: list[str]) -> np.ndarray:
    return np.frombuffer("\n".join(values).encode(), dtype=np.uint8)


def build(packages: list[Stanza], title: str, vocabulary_size: int = 512) -> Arrays:
    """The arrays of the data set."""
    names = [p["Package"] for p in packages]
    # ``contrib/net`` and ``net`` are the same subject.
    sections = [p["Section"].rpartition("/")[2] for p in packages]
    classes = sorted(set(sections))
    label = {name: i for i, name in enumerate(classes)}
    vocabulary, said = words(packages, vocabulary_size)
    triples = np.array(sorted(edges(packages)), dtype=np.int32).reshape(-1, 3)
    return {
        "title": text([title]),
        "names": text(names),
        "classes": text(classes),
        "kinds": text(list(KINDS)),
        "vocabulary": text(vocabulary),
        "labels": np.array([label[s] for s in sections], dtype=np.uint8),
        "out_degree": np.bincount(triples[:, 0], minlength=len(names)).astype(np.uint16),
        "kind": triples[:, 1].astype(np.uint8),
        "dst": triples[:, 2],
        "word_count": np.array([len(one) for one in said], dtype=np.uint8),
        "word": np.array([word for one in said for word in one], dtype=np.uint16),
        # ``Source: name (version)``; without the field the source has the package's name.
        "source": np.array(
            by_first_use(p.get("Source", p["Package"]).split()[0] for p in packages), np.uint16
        ),
        "maintainer": np.array(by_first_use(p["Maintainer"] for p in packages), np.uint16),
        "split": split(names),
    }


def write(path: Path, arrays: Arrays) -> None:
    """An .npz like NumPy's, but with fixed times and rights, so that equal arrays give equal
    bytes."""
    with zipfile.ZipFile(path, "w") as archive:
        for name in sorted(arrays):
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3
            entry.external_attr = 0o644 << 16
            file = io.BytesIO()
            np.lib.format.write_array(file, np.ascontiguousarray(arrays[name]), version=(1, 0))
            archive.writestr(entry, file.getvalue(), compresslevel=9)


def differences(path: Path, arrays: Arrays) -> list[str]:
    """The names of the arrays that the file holds otherwise."""
    with np.load(path, allow_pickle=False) as packed:
        return [
            name
            for name in sorted(arrays.keys() | set(packed.files))
            if name not in arrays
            or name not in packed.files
            or packed[name].dtype != arrays[name].dtype
            or not np.array_equal(packed[name], arrays[name])
        ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("listing", type=Path, help="what apt-cache dumpavail printed")
    parser.add_argument("--title", default="", help="which metadata it is, kept in the file")
    parser.add_argument("--out", type=Path, default=PACKED, help="default: %(default)s")
    parser.add_argument("--check", action="store_true", help="compare with --out, write nothing")
    options = parser.parse_args()
    with options.listing.open(encoding="utf-8") as lines:
        arrays = build(read(lines), options.title)
    if options.check:
        arrays.pop("title")
        different = [name for name in differences(options.out, arrays) if name != "title"]
        print(f"different: {', '.join(different)}" if different else "the same")
        return 1 if different else 0
    write(options.out, arrays)
    print(
        f"{options.out}: {len(arrays['labels']):,} packages, {len(arrays['dst']):,} edges, "
        f"{options.out.stat().st_size:,} bytes"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
