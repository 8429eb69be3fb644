"""Sampling by weight and around a mask on a GPU: the CPU's batches, byte for byte."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

import pygsampler as pgs
from tests.support.assertions import assert_equal
from tests.support.parity import Csc, Values, awkward, compare, random_graph, scaled, with_degrees

MODES = ("auto", "persistent")
KINDS = {
    "even": lambda draw, n: draw.uniform(1, 5, n).astype(np.float32),
    "pareto": lambda draw, n: draw.pareto(1.2, n) + 1,
    "zeros": lambda draw, n: draw.integers(0, 3, n),
    "wide": lambda draw, n: draw.choice([0.0, 5e-324, 1e-300, 1.0, 1e300], n),
    "heavy": lambda draw, n: np.where(draw.random(n) < 0.05, 1e9, draw.random(n) + 1e-9),
    "equal": lambda draw, n: np.ones(n, np.int8),
}


def weights(kind: str, count: int) -> Values:
    found: Values = KINDS[kind](np.random.default_rng(3), count)
    return found


def both(csc: Csc, kind: str, *, ids: int = 32, edge_ids: int = 0) -> tuple[pgs.Graph, pgs.Graph]:
    """The graph with weights and a mask, here and on the device."""
    w = weights(kind, len(csc.indices))
    cpu = csc.graph(ids, edge_ids=edge_ids).with_data(
        edge_data={"w": w, "m": w > w.sum() / (2 * len(w) + 1)}
    )
    return cpu, cpu.to("cuda")


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_degree_and_fanout(kind: str) -> None:
    csc = with_degrees(range(71), scaled(4000, 150))
    cpu, there = both(csc, kind)
    fanouts = list(range(1, 41))[:: scaled(1, 5)]
    for fanout in fanouts:
        for replace in (False, True):
            compare(
                cpu, there, np.arange(71), [3, fanout], modes=["auto"], replace=replace, prob="w"
            )


@pytest.mark.parametrize("kind", ["even", "heavy", "zeros"])
@pytest.mark.parametrize(("ids", "edge_ids"), [(32, 0), (64, 32)])
def test_every_option(kind: str, ids: int, edge_ids: int) -> None:
    csc = random_graph(scaled(20000, 400), 2)
    cpu, there = both(csc, kind, ids=ids, edge_ids=edge_ids)
    seeds = np.random.default_rng(1).integers(0, csc.num_nodes, scaled(700, 40))
    exclude = np.arange(0, len(csc.indices), 3)
    for fanouts in ([5, 4, 3], [-1, 2], [33, 64], [1000])[:: scaled(1, 3)]:
        for name in ("prob", "mask"):
            named = {name: "w" if name == "prob" else "m"}
            for options in (
                {"replace": True},
                {"frontier": "new"},
                {"disjoint": True},
                {"exclude": exclude},
                {"exclude": exclude, "replace": True, "disjoint": True},
            ):
                compare(cpu, there, seeds, fanouts, modes=MODES[: scaled(2, 1)], **named, **options)


@pytest.mark.parametrize("name", sorted(awkward()))
def test_awkward_graphs(name: str) -> None:
    csc = awkward()[name]
    cpu, there = both(csc, "heavy")
    for fanouts in ([2, 2], [20], [64, 3], [-1]):
        compare(cpu, there, np.arange(min(csc.num_nodes, 50)), fanouts, modes=["auto"], prob="w")


def test_a_large_hub() -> None:
    """Drawn from evenly, and by weights of which one is more than all others together."""
    degree = scaled(10_000_000, 20_000)
    csc = with_degrees([degree, 3, degree // 2], 5000)
    for kind in ("even", "heavy"):
        cpu, there = both(csc, kind)
        for fanout in (10, 33, 1000):
            compare(cpu, there, [0, 1, 2], [fanout], modes=["auto"], prob="w")


def test_several_batches_a_launch_and_pinned_graphs() -> None:
    csc = random_graph(scaled(20000, 400), 4)
    cpu, there = both(csc, "pareto")
    sampler = pgs.PGSampler([5, 5], seed=1, prob="w")
    sets = [np.arange(i, i + 30) for i in range(20)]
    want = sampler.sample_many(cpu, sets, epoch=0, batch=0)
    for graph in (there, cpu.pin()):
        got = sampler.sample_many(graph, sets, epoch=0, batch=0)
        for mine, theirs in zip(got, want, strict=True):
            assert_equal(mine, theirs)


def test_tables_of_arrays_on_the_device() -> None:
    """A graph of the device's arrays has its tables made on the CPU, and its arrays used."""
    csc = random_graph(scaled(20000, 400), 4)
    cpu, there = both(csc, "even")
    own = pgs.Graph.from_csc(
        there.indptr, there.indices, num_nodes=csc.num_nodes, edge_data={"w": cpu.edata["w"]}
    )
    assert own.device == "cuda:0"
    compare(cpu, own, np.arange(50), [5, 5], modes=["auto"], prob="w")
    own.close()
    compare(cpu, there, np.arange(50), [5, 5], modes=["auto"], prob="w")


@pytest.mark.parametrize("how", ["to", "pin"])
def test_tables_of_a_file(tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    csc = random_graph(scaled(20000, 400), 4)
    for kind in ("even", "zeros"):
        cpu, _ = both(csc, kind)
        want = pgs.PGSampler([5, 5], seed=1, prob="w").sample(cpu, np.arange(50), batch=0)
        cpu.save(tmp_path / kind, tables=["w"])
        with monkeypatch.context() as patch:
            patch.delattr("pygsampler._graph.relation.weight_tables")
            opened = pgs.Graph.open(tmp_path / kind)
            for there in (getattr(opened, how)("cuda"), getattr(opened, how)("cuda")):
                got = pgs.PGSampler([5, 5], seed=1, prob="w").sample(there, np.arange(50), batch=0)
                assert_equal(got, want)
            sent = pickle.loads(pickle.dumps(there))
            assert_equal(
                pgs.PGSampler([5, 5], seed=1, prob="w").sample(sent, np.arange(50), batch=0), want
            )


@pytest.mark.parametrize("how", ["to", "pin"])
def test_damaged_tables_are_found_before_a_kernel_reads_them(tmp_path: Path, how: str) -> None:
    path = tmp_path / "graph"
    cpu, _ = both(random_graph(300, 61), "even")
    cpu.save(path, tables=["w"])
    alias = pgs.Graph.open(path)._source._sampled_edges("prob", "w")._open().alias
    assert alias is not None
    data = bytearray(path.read_bytes())
    at = data.index(bytes(memoryview(alias.numpy()).cast("B"))) + 8 * (len(alias) // 2)
    data[at + 4 : at + 8] = b"\xff\xff\xff\x7f"
    path.write_bytes(data)
    damaged = getattr(pgs.Graph.open(path), how)("cuda")
    with pytest.raises(ValueError, match=r"tables\[\d+\]: expected an alias within its row"):
        pgs.PGSampler([5, 5], seed=1, prob="w").sample(damaged, [0])
