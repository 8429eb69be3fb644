"""Rows of a part of a graph that a GPU draws for all: those of the CPU, byte for byte."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import flight_graphs
import numpy as np
import partitioned_graphs
import pytest

import pygsampler as pgs
from pygsampler._batch import layout as at
from pygsampler.distributed import Exchange, partition
from pygsampler.distributed.device_row_server import (
    DeviceRowServer,
    HeteroDeviceRowServer,
    row_server,
)
from pygsampler.distributed.messages import RowReply, RowRequest
from tests.support.assertions import assert_equal

HOW: tuple[dict[str, Any], ...] = (
    {},
    {"replace": True},
    {"prob": "w"},
    {"mask": "m", "edge_weights": "ht"},
    {"prob": "w", "replace": True, "edge_weights": "ht"},
    {"frontier": "new"},
)


def rows_of(answer: RowReply) -> list[Any]:
    """The arrays of an answer, whose places its words say."""
    assert not answer.error, answer.error
    raw = np.frombuffer(answer.rows, np.uint8)
    words = raw[: 8 * at.num_words(1)].view(np.int64)
    block = words[at.FIRST_BLOCK :]
    assert (words[at.SIGNATURE], words[at.NUM_HOPS]) == (at.MAGIC, 1)
    rows, edges = block[at.NUM_DST], block[at.NUM_EDGES]
    ids, edge_ids = words[at.ID_BITS] // 8, words[at.edge_id_bits_at(1)] // 8
    arrays = [
        (at.INDPTR, rows + 1, f"i{ids}"),
        (at.INDICES, edges, f"i{ids}"),
        (at.EDGE_IDS, edges, f"i{edge_ids}"),
        (at.EDGE_WEIGHTS, edges, "f4"),
    ]
    return [
        (kind, raw[block[word] :][: n * int(kind[1])].view(kind).tolist())
        for word, n, kind in arrays
        if block[word]
    ]


@pytest.mark.parametrize("kind", ["plain", "ids 32"])
def test_rows_of_parts(tmp_path: Path, kind: str) -> None:
    parts = partition(partitioned_graphs.of(kind), tmp_path / "g", 3)
    bits, rng = (32, np.int32) if "32" in kind else (64, np.int64), np.random.default_rng(2)
    for rank in range(3):
        here, there = row_server(parts, rank, -1), row_server(parts, rank, 0)
        assert isinstance(there, DeviceRowServer)
        first, last = parts.bounds[rank : rank + 2]
        some = rng.permutation(np.arange(first, last))[:30].astype(bits[1])
        without = rng.integers(0, parts.num_edges, 300)
        for how in HOW:
            fanouts = [2, 4, 40] if "replace" in how else [2, -1, 4]
            document = pgs.PGSampler(fanouts, **how).plan.document
            for hop, exclude in ((0, b""), (1, without.tobytes()), (2, b"")):
                about = document, 7, hop, 1, 3, bits[0], len(some), some.tobytes(), b"", b""
                want, made = (rows_of(o.reply(RowRequest(*about, exclude))) for o in (here, there))
                assert made == want, (rank, how, hop)
        # No launch has so many hops.
        many = pgs.PGSampler([2] * 17).plan.document, 7, 16, 1, 3, bits[0], len(some)
        question = RowRequest(*many, some.tobytes(), b"", b"", b"")
        assert rows_of(there.reply(question)) == rows_of(here.reply(question))


def test_rows_of_relations(tmp_path: Path) -> None:
    whole, rng = flight_graphs.typed(), np.random.default_rng(4)
    cites, writes, by = whole.edge_types
    parts = partition(whole, tmp_path / "types", 2)
    about: tuple[dict[str, Any], ...] = (
        {"fanouts": [2, 3]},
        {"fanouts": [2, 3], "replace": True},
        {"fanouts": [{cites: 2, by: -1}, {writes: 4}], "default_fanout": 1, "prob": "w"},
        {"fanouts": [3, {cites: 0, by: 40, writes: 2}], "mask": "t", "edge_weights": "ht"},
    )
    for rank in range(2):
        here, there = row_server(parts, rank, -1), row_server(parts, rank, 0)
        assert isinstance(there, HeteroDeviceRowServer)
        for how in about:
            document = pgs.PGSampler(**how)._hetero_sampler()._plan.document
            for place, relation in enumerate(parts.relations):
                own = np.arange(*relation.bounds[rank : rank + 2])
                some = rng.permutation(own[own < whole.num_nodes[parts.edge_types[place][2]]])
                without = rng.integers(0, relation.num_edges, 90)
                for hop, exclude in ((0, without.tobytes()), (1, b"")):
                    ask = document, 7, 3 * hop + place, 1, 3, 64, len(some), some.tobytes()
                    question = RowRequest(*ask, b"", b"", exclude)
                    want, made = (rows_of(each.reply(question)) for each in (here, there))
                    assert made == want, (rank, how, place, hop)


class Alone(Exchange):
    """One process with one part."""

    rank, size = 0, 1

    def ask(self, questions: Sequence[Any], answer: Any, *, leaving: bool = False) -> Any:
        return None if leaving else [b""]

    def close(self) -> None:
        pass


def test_batches_of_a_graph_in_parts(tmp_path: Path) -> None:
    whole, rng = partitioned_graphs.of("ids"), np.random.default_rng(3)
    partition(whole, tmp_path / "g", 1, out_edges=True)
    with pgs.distributed.open_graph(tmp_path / "g", Alone(), device="cuda") as graph:
        assert isinstance(graph._service._owner, DeviceRowServer)
        for how in (*HOW, {"disjoint": True}):
            sampler = pgs.PGSampler([3, -1, 4], seed=5, **{**how, "replace": False})
            seeds, without = (
                rng.integers(0, partitioned_graphs.NODES, 20),
                rng.integers(0, 1700, 200),
            )
            made, want = (
                sampler.sample(g, seeds, epoch=1, batch=2, exclude=without) for g in (graph, whole)
            )
            assert_equal(made, want, how)
        timed = pgs.PGSampler([3, 2], seed=5, temporal="t")
        made, want = (timed.sample(g, [1, 9], seed_time=30, batch=0) for g in (graph, whole))
        assert_equal(made, want)
        walk = pgs.RandomWalk(5, seed=5)
        made, want = (walk.sample(g, [1, 9], batch=0) for g in (graph, whole))
        assert_equal(made, want)
        with pytest.raises(IndexError, match=r"seeds\[0\]: expected an id in \[0, 203\), got 203"):
            timed.sample(graph, [203], seed_time=1)


def test_batches_of_a_graph_with_types_in_parts(tmp_path: Path) -> None:
    whole, rng = flight_graphs.typed(), np.random.default_rng(5)
    partition(whole, tmp_path / "types", 1)
    with pgs.distributed.open_graph(tmp_path / "types", Alone(), device="cuda:0") as graph:
        for how in ({}, {"prob": "w"}, {"disjoint": True}, {"temporal": "t"}):
            sampler = pgs.PGSampler([3, -1], seed=5, **how)
            seeds = {"paper": rng.integers(0, 90, 12), "author": rng.integers(0, 40, 5)}
            when = {"seed_time": 5} if "temporal" in how else {}
            made, want = (
                sampler.sample(g, seeds, epoch=1, batch=2, **when) for g in (graph, whole)
            )
            assert_equal(made, want, how)
        for other in (
            pgs.samplers.HGTSampler([4, 3], seed=5),
            pgs.LaborSampler([3, 2], prob="w", seed=5, edge_weights="ht"),
        ):
            made, want = (other.sample(g, seeds, epoch=1, batch=2) for g in (graph, whole))
            assert_equal(made, want, other)


def test_where_there_is_no_part(tmp_path: Path) -> None:
    partition(partitioned_graphs.of("plain"), tmp_path / "g", 1)

    class Elsewhere(Alone):
        owns = False

    with pytest.raises(ValueError, match="device: expected 'cpu' where this process has no part"):
        pgs.distributed.open_graph(tmp_path / "g", Elsewhere(), device="cuda")
