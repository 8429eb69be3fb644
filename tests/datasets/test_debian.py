"""The packed data set: its counts, its ranges, and that the arrays fit together."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import numpy as np
import pytest

from pygsampler.datasets import Debian, debian


@pytest.fixture(scope="module")
def data() -> Debian:
    return debian()


def test_counts_are_those_of_the_documentation(data: Debian) -> None:
    assert data.num_nodes == 63_666
    assert data.num_edges == 351_419
    assert data.num_classes == 58
    assert data.num_features == 512
    assert dict(zip(data.kinds, np.bincount(data.kind).tolist(), strict=True)) == {
        "Depends": 279_046,
        "Recommends": 36_278,
        "Suggests": 32_068,
        "Enhances": 2_994,
        "Pre-Depends": 1_033,
    }
    assert "Debian 12" in data.title


def test_names_are_those_of_packages(data: Debian) -> None:
    assert list(data.names) == sorted(set(data.names))
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9+.-]+", name) for name in data.names)
    assert {"libc6", "python3", "git"} <= set(data.names)


def test_edges_are_distinct_ordered_and_in_range(data: Debian) -> None:
    for ids in (data.src, data.dst):
        assert ids.dtype == np.int64
        assert ids.min() >= 0
        assert ids.max() < data.num_nodes
    assert (data.src != data.dst).all()
    order = (data.src * len(data.kinds) + data.kind) * data.num_nodes + data.dst
    assert (np.diff(order) > 0).all()


def test_the_hub_is_libc6(data: Debian) -> None:
    in_degree = np.bincount(data.dst, minlength=data.num_nodes)
    assert data.names[int(in_degree.argmax())] == "libc6"
    assert in_degree.max() == 21_843


def test_labels_use_every_class(data: Debian) -> None:
    assert np.bincount(data.labels).min() > 0
    assert data.labels.max() == data.num_classes - 1
    assert list(data.classes) == sorted(data.classes)
    assert data.classes[data.labels[data.names.index("libc6")]] == "libs"
    assert data.classes[data.labels[data.names.index("git")]] == "vcs"


def test_split_holds_each_package_once(data: Debian) -> None:
    parts = [data.train, data.val, data.test]
    assert [len(part) for part in parts] == [19_099, 6_367, 38_200]
    together = np.concatenate(parts)
    assert np.array_equal(np.sort(together), np.arange(data.num_nodes))
    assert all((np.diff(part) > 0).all() for part in parts)
    # By the hash of the name: whatever is in training has smaller ones than the rest.
    largest = max(hashlib.sha256(data.names[i].encode()).digest() for i in data.train)
    assert all(hashlib.sha256(data.names[i].encode()).digest() > largest for i in data.test)


def test_words_are_the_same_in_all_three_forms(data: Debian) -> None:
    assert data.word_indptr[0] == 0
    assert data.word_indptr[-1] == len(data.word_indices) == 201_220
    dense = data.features()
    assert dense.shape == (data.num_nodes, 512)
    assert dense.dtype == np.float32
    assert set(np.unique(dense)) == {0, 1}
    table = data.words()
    for node in (0, 1000, data.names.index("git"), data.num_nodes - 1):
        row = data.word_indices[data.word_indptr[node] : data.word_indptr[node + 1]]
        assert np.array_equal(np.flatnonzero(dense[node]), row)
        assert table[node].tolist() == [*row, *[512] * (table.shape[1] - len(row))]
    assert (table < 512).sum() == dense.sum() == len(data.word_indices)
    assert data.features("uint8").dtype == np.uint8


def test_words_are_indicators_without_text(data: Debian) -> None:
    assert list(data.vocabulary) == sorted(set(data.vocabulary))
    assert all(re.fullmatch("[a-z]{4,}", word) for word in data.vocabulary)
    # A word of a few packages could be a name, or say what the package is.
    assert np.bincount(data.word_indices, minlength=512).min() >= 94


def test_no_address_is_shipped(data: Debian) -> None:
    assert not any("@" in text for text in (*data.names, *data.classes, *data.vocabulary))
    assert data.source.max() + 1 == 34_172
    assert data.maintainer.max() + 1 == 2_249
    for numbers in (data.source, data.maintainer):
        first = np.unique(numbers, return_index=True)[1]
        assert (np.diff(first) > 0).all()  # Numbered by first appearance.


def test_file_is_small() -> None:
    import pygsampler.datasets as package

    assert (Path(package.__file__).parent / "debian.npz").stat().st_size < 1_300_000


def test_graph_has_each_relation_in_both_directions(data: Debian) -> None:
    graph = data.graph()
    assert (graph.num_nodes, graph.num_edges) == (data.num_nodes, 2 * data.num_edges)
    indptr, indices, edge_ids = (
        np.asarray(array) for array in (graph.indptr, graph.indices, graph.edge_ids)
    )
    dst = np.repeat(np.arange(graph.num_nodes), np.diff(indptr))
    forward = edge_ids < data.num_edges
    assert np.array_equal(data.src[edge_ids[forward]], indices[forward])
    assert np.array_equal(data.dst[edge_ids[forward]], dst[forward])
    back = edge_ids[~forward] - data.num_edges
    assert np.array_equal(data.dst[back], indices[~forward])
    assert np.array_equal(data.src[back], dst[~forward])
    assert len(np.unique(edge_ids)) == graph.num_edges


def test_directed_graph_has_the_relations_alone(data: Debian) -> None:
    graph = data.graph(directed=True)
    assert graph.num_edges == data.num_edges
    assert np.array_equal(
        np.diff(np.asarray(graph.indptr)), np.bincount(data.dst, minlength=data.num_nodes)
    )


def test_typed_graph_has_the_same_relations(data: Debian) -> None:
    graph = debian(hetero=True)
    assert graph.node_types == ("package", "source", "maintainer")
    assert len(graph.edge_types) == 14
    assert sum(graph.num_edges.values()) == 2 * (data.num_edges + 2 * data.num_nodes)
    assert graph.num_nodes == {"package": 63_666, "source": 34_172, "maintainer": 2_249}
    assert np.array_equal(np.asarray(graph.ndata["package"]["label"]), data.labels)
    for number, name in enumerate(data.kinds):
        for kind, end, other in (
            (("package", name, "package"), data.dst, data.src),
            (("package", f"rev_{name}", "package"), data.src, data.dst),
        ):
            relation, of = graph[kind], np.asarray(graph.edata[kind]["relation"])
            assert np.array_equal(of, np.flatnonzero(data.kind == number))
            edges = of[np.asarray(relation.edge_ids)]
            rows = np.repeat(np.arange(data.num_nodes), np.diff(np.asarray(relation.indptr)))
            assert np.array_equal(end[edges], rows)
            assert np.array_equal(other[edges], np.asarray(relation.indices))
    builds = graph["source", "builds", "package"]
    assert np.array_equal(np.asarray(builds.indices), data.source)
    back = graph["package", "rev_maintains", "maintainer"]
    degrees = np.diff(np.asarray(back.indptr))[: data.maintainer.max() + 1]
    assert np.array_equal(degrees, np.bincount(data.maintainer))
    assert len(data.hetero_graph(directed=True).edge_types) == 7


def test_each_call_gives_arrays_of_its_own(data: Debian) -> None:
    other = debian()
    other.labels[:] = 0
    assert data.labels.max() > 0


def test_without_numpy_the_error_says_what_to_install(run_python) -> None:
    said = run_python(
        """
        import sys
        sys.modules["numpy"] = None
        try:
            from pygsampler.datasets import debian
        except ModuleNotFoundError as error:
            print(error)
        """
    )
    assert said.strip() == "pygsampler.datasets needs NumPy: pip install numpy"
