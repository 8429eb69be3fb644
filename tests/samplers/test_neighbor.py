from __future__ import annotations

import hypothesis.strategies as st
import pytest
import reference
from graphs import Case, as_lists, cases, circulant
from hypothesis import given, settings

import pygsampler as pgs
from pygsampler._sampling.extensions import MODES as REGISTERED

# The registered modes whose batches are the batches of mode "auto", by code of their own.
MODES = ("auto", *(n for n, mode in REGISTERED.items() if mode.has_cpu_code and mode.equals_auto))
# No other mode goes with these.
TREES = ({"frontier": "new"}, {"disjoint": True}, {"frontier": "new", "disjoint": True})
KINDS = (*({"mode": mode} for mode in MODES), *TREES)
FANOUTS = st.lists(st.integers(-1, 5), min_size=1, max_size=3)
SEEDS = st.integers(0, (1 << 64) - 1)
EPOCHS = st.integers(0, (1 << 24) - 1)
BATCHES = st.integers(0, (1 << 40) - 1)


@settings(max_examples=400)
@given(
    case=cases(),
    fanouts=FANOUTS,
    replace=st.booleans(),
    seed=SEEDS,
    epoch=EPOCHS,
    batch=BATCHES,
    bits=st.sampled_from([32, 64]),
    indptr_bits=st.sampled_from([32, 64]),
    kind=st.sampled_from(KINDS),
    data=st.data(),
)
def test_the_engine_gives_what_the_contract_says(
    case, fanouts, replace, seed, epoch, batch, bits, indptr_bits, kind, data
):
    seeds = data.draw(st.lists(st.integers(0, case.num_nodes - 1), max_size=8), label="seeds")
    exclude = None
    if case.indices and data.draw(st.booleans(), label="exclude some"):
        ids = st.sampled_from(range(len(case.indices)))
        exclude = data.draw(st.lists(ids, max_size=6), label="exclude")
    sampler = pgs.PGSampler(fanouts, replace=replace, seed=seed, **kind)
    got = sampler.sample(
        case.graph(bits, indptr_bits), seeds, epoch=epoch, batch=batch, exclude=exclude
    )
    expected = reference.sample(
        case.indptr,
        case.indices,
        seeds,
        fanouts,
        edge_ids=case.edge_ids,
        replace=replace,
        seed=seed,
        epoch=epoch,
        batch=batch,
        exclude=exclude,
        **{name: value for name, value in kind.items() if name != "mode"},
    )
    assert as_lists(got) == expected
    assert got.input_nodes.dtype == got.blocks[0].indices.dtype == f"int{bits}"


@given(
    case=cases(),
    fanouts=FANOUTS,
    replace=st.booleans(),
    seed=SEEDS,
    mode=st.sampled_from(MODES),
    data=st.data(),
)
def test_blocks_keep_their_invariants(case, fanouts, replace, seed, mode, data):
    seeds = data.draw(st.lists(st.integers(0, case.num_nodes - 1), max_size=8), label="seeds")
    batch = pgs.PGSampler(fanouts, replace=replace, seed=seed, mode=mode).sample(
        case.graph(), seeds
    )
    assert len(batch.blocks) == len(fanouts)
    assert batch.output_nodes.tolist() == seeds
    last = batch.blocks[-1].dst_nodes.tolist()
    assert last == list(dict.fromkeys(seeds))
    assert [last[i] for i in batch.output_index] == seeds
    assert batch.input_nodes.tolist() == batch.blocks[0].src_nodes.tolist()
    inner = [*batch.blocks[1:], None]
    for block, following, fanout in zip(batch.blocks, inner, fanouts, strict=True):
        check_block(case, block, fanout, replace)
        if following is not None:
            assert block.dst_nodes.tolist() == following.src_nodes.tolist()


def check_block(case: Case, block: pgs.Block, fanout: int, replace: bool) -> None:
    src, dst = block.src_nodes.tolist(), block.dst_nodes.tolist()
    indptr, indices, ids = block.indptr.tolist(), block.indices.tolist(), block.edge_ids.tolist()
    assert len(set(src)) == len(src) == block.num_src_nodes
    assert src[: len(dst)] == dst
    assert indptr[0] == 0
    assert indptr[-1] == len(indices) == len(ids) == block.num_edges
    assert set(range(len(dst), len(src))) <= set(indices)
    position = {e: p for p, e in enumerate(case.edge_ids or range(len(case.indices)))}
    for row, v in enumerate(dst):
        start, end = (case.indptr[v], case.indptr[v + 1]) if v + 1 < len(case.indptr) else (0, 0)
        degree, taken = end - start, indptr[row + 1] - indptr[row]
        if fanout < 0:
            assert taken == degree
        elif replace:
            assert taken == (fanout if degree else 0)
        else:
            assert taken == min(degree, fanout)
        edges = ids[indptr[row] : indptr[row + 1]]
        if not replace:
            assert len(set(edges)) == len(edges)
        for e, u in zip(edges, indices[indptr[row] : indptr[row + 1]], strict=True):
            assert start <= position[e] < end
            assert case.indices[position[e]] == src[u]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("threads", [1, 0])
def test_larger_batches_agree_too(mode, bits, threads):
    num_nodes, degree = 20_000, 13
    graph = circulant(num_nodes, degree, bits)
    seeds = list(range(0, num_nodes, 17))
    got = pgs.PGSampler([4, -1, 3], seed=9, mode=mode).sample(
        graph, seeds, epoch=3, batch=5, threads=threads
    )
    indptr, indices = graph.indptr.tolist(), graph.indices.tolist()
    expected = reference.sample(indptr, indices, seeds, [4, -1, 3], seed=9, epoch=3, batch=5)
    assert as_lists(got) == expected


@pytest.mark.parametrize("map_bytes", [1, 1 << 10, 1 << 30, None])
def test_the_way_vertices_are_numbered_does_not_show(map_bytes):
    graph = circulant(5_000, 11)
    seeds = list(range(0, 5_000, 7))
    sampler = pgs.PGSampler([5, 5], seed=1, map_bytes=map_bytes)
    first = as_lists(pgs.PGSampler([5, 5], seed=1).sample(graph, seeds, batch=0))
    assert as_lists(sampler.sample(graph, seeds, batch=0)) == first


def test_every_part_of_the_identity_matters():
    graph = circulant(1000, 50)
    seeds = range(0, 1000, 10)

    def edges(*, seed=0, epoch=0, batch=0, **options):
        sampler = pgs.PGSampler([5], seed=seed, **options)
        return sampler.sample(graph, seeds, epoch=epoch, batch=batch).blocks[0].edge_ids.tolist()

    base = edges()
    assert edges() == base
    others = [
        edges(seed=1),
        edges(seed=1 << 32),
        edges(epoch=1),
        edges(epoch=1 << 16),
        edges(batch=1),
        edges(batch=1 << 32),
        edges(replace=True),
    ]
    assert all(other != base for other in others)
    assert len({tuple(other) for other in others}) == len(others)


def test_seed_is_taken_modulo_64_bits():
    assert pgs.PGSampler([1], seed=-1).seed == (1 << 64) - 1
    assert pgs.PGSampler([1], seed=(1 << 64) - 1).seed == (1 << 64) - 1
    assert pgs.PGSampler([1], seed=-(1 << 63)).seed == 1 << 63


def test_calls_without_a_number_never_repeat():
    graph = circulant(1000, 50)
    sampler = pgs.PGSampler([5], seed=3)
    batches = [sampler.sample(graph, range(100)) for _ in range(4)]
    assert [batch.batch for batch in batches] == [0, 1, 2, 3]
    assert len({tuple(batch.blocks[0].edge_ids) for batch in batches}) == 4
    # A number that is given does not move the counter.
    assert sampler.sample(graph, range(100), batch=77).batch == 77
    assert sampler.sample(graph, range(100)).batch == 4


def test_set_epoch_starts_the_count_again():
    graph = circulant(1000, 50)
    sampler = pgs.PGSampler([5], seed=3)
    first = [as_lists(sampler.sample(graph, range(100))) for _ in range(2)]
    sampler.set_epoch(1)
    assert sampler.epoch == 1
    second = sampler.sample(graph, range(100))
    assert (second.epoch, second.batch) == (1, 0)
    assert as_lists(second) not in first
    sampler.set_epoch(0)
    assert [as_lists(sampler.sample(graph, range(100))) for _ in range(2)] == first
    assert sampler.sample(graph, range(100), epoch=5).epoch == 5


def test_default_seed_is_torchs_where_torch_is_loaded():
    import torch

    torch.manual_seed(1234)
    assert pgs.PGSampler([1]).seed == 1234
    torch.manual_seed(-5)
    assert pgs.PGSampler([1]).seed == torch.initial_seed() & ((1 << 64) - 1)


def test_default_seed_differs_without_torch(run_python):
    script = """
        import sys
        import pygsampler as pgs
        seeds = {pgs.PGSampler([1]).seed for _ in range(8)}
        assert "torch" not in sys.modules
        print(len(seeds))
    """
    assert run_python(script) == "8\n"


class Drawing:
    """A data set whose items are the automatic batch numbers that workers draw."""

    def __init__(self) -> None:
        self.graph = circulant(100, 10)
        self.sampler = pgs.PGSampler([2], seed=0)

    def __len__(self) -> int:
        return 8

    def __getitem__(self, item: int) -> int:
        return self.sampler.sample(self.graph, [item]).batch


def drawn_by_workers(method: str) -> list[int]:
    import torch

    loader = torch.utils.data.DataLoader(
        Drawing(), batch_size=None, num_workers=2, multiprocessing_context=method
    )
    return [int(number) for number in loader]


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_forked_workers_of_torch_draw_numbers_of_their_own():
    import torch

    torch.manual_seed(7)
    first, second = drawn_by_workers("fork"), drawn_by_workers("fork")
    assert len({*first, *second}) == 16
    torch.manual_seed(7)
    assert drawn_by_workers("fork") == first


def test_spawned_workers_of_torch_draw_numbers_of_their_own():
    assert len(set(drawn_by_workers("spawn"))) == 8


def test_options_show():
    sampler = pgs.PGSampler([3, -1], seed=5, replace=True, mode="persistent", map_bytes=100)
    assert sampler.fanouts == (3, -1)
    assert (sampler.replace, sampler.mode, sampler.map_bytes) == (True, "persistent", 100)
    assert repr(sampler) == (
        "PGSampler([3, -1], replace=True, mode='persistent', map_bytes=100, seed=5)"
    )
    assert repr(pgs.PGSampler((2,), seed=0)) == "PGSampler([2], seed=0)"


def test_excluded_edges_make_room_for_others():
    graph = pgs.Graph.from_csc([0, 5], [0, 0, 0, 0, 0], edge_ids=[10, 11, 12, 13, 14])
    batch = pgs.PGSampler([3], seed=0).sample(graph, [0], exclude=[11, 13])
    assert sorted(batch.blocks[0].edge_ids) == [10, 12, 14]
    assert pgs.PGSampler([3], seed=0).sample(graph, [0], exclude=[]).num_edges == 3


def test_a_hub_costs_no_more_than_its_fanout():
    import numpy

    degree = 3_000_000
    graph = pgs.Graph.from_csc([0, degree], numpy.zeros(degree, dtype="int32"))
    batch = pgs.PGSampler([10], seed=0).sample(graph, [0])
    assert len(set(batch.blocks[0].edge_ids)) == 10
    assert max(batch.blocks[0].edge_ids) < degree
