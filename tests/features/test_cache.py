"""Features.cache(): which rows a cache has, and what is read through one, on the emulator.

Torch does not take the emulator for a GPU: tensors on the host stand in for those on the device.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import pygsampler as pgs
from pygsampler._features.cache import CacheOptions
from pygsampler._features.cache_policy import replacements, top_rows
from pygsampler._features.read_counts import neighbor_counts
from tests.gpu import no_driver, run_with_driver

# ---- which rows ----


def best(scores: list[float], count: int) -> list[int]:
    """By sorting all of them."""
    return sorted(sorted(range(len(scores)), key=lambda row: (-scores[row], row))[:count])


@pytest.mark.parametrize("kind", [torch.int32, torch.int64, torch.float32, torch.int8])
def test_hottest_rows_are_those_of_a_sort(kind: torch.dtype) -> None:
    random = torch.Generator().manual_seed(1)
    for rows in (0, 1, 2, 17, 300):
        for most in (1, 2, 5, 100):
            scores = (torch.rand(rows, generator=random) * most - most / 3).to(kind)
            for count in (0, 1, 2, rows // 3, rows - 1, rows, rows + 5):
                got = top_rows(scores, count)
                assert got.dtype == torch.int64
                assert got.tolist() == best(scores.tolist(), max(count, 0))


def reads(counts: list[int], before: set[int], after: set[int]) -> int:
    """Over the link: rows that are brought, and those that are not there."""
    return len(after - before) + sum(n for row, n in enumerate(counts) if row not in after)


def test_exchange_has_the_fewest_reads_over_the_link() -> None:
    random = np.random.default_rng(3)
    for _ in range(150):
        rows, places = int(random.integers(1, 8)), int(random.integers(0, 6))
        counts = random.integers(0, 4, rows)
        held = np.full(places, -1)
        some = random.permutation(rows)[: random.integers(0, min(rows, places) + 1)]
        held[random.permutation(places)[: len(some)]] = some
        coming, to = replacements(torch.from_numpy(counts).int(), torch.from_numpy(held))
        assert (coming.dtype, to.dtype) == (torch.int64, torch.int32)
        assert len(coming) == len(to) == len(set(to.tolist()))
        before, after = set(some.tolist()), held.copy()
        assert not before & set(coming.tolist())
        after[to] = coming
        kept = {int(row) for row in after if row >= 0}
        every = [
            {row for row in range(rows) if mask >> row & 1}
            for mask in range(1 << rows)
            if mask.bit_count() <= places
        ]
        got = reads(counts.tolist(), before, kept)
        assert got == min(reads(counts.tolist(), before, each) for each in every)


def test_filling_an_empty_cache_takes_the_best_rows() -> None:
    counts = torch.tensor([0, 5, 1, 9, 1, 2])
    for places, want in ((2, {1, 3}), (4, {1, 2, 3, 5}), (6, {1, 2, 3, 4, 5})):
        coming, _ = replacements(counts, torch.full((places,), -1))
        assert set(coming.tolist()) == want


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_degrees_are_how_often_a_vertex_is_a_neighbour(dtype: Any) -> None:
    random = np.random.default_rng(5)
    indptr = np.concatenate([[0], random.integers(0, 9, 300).cumsum()])
    indices = random.integers(0, 400, indptr[-1]).astype(dtype)
    graph = pgs.Graph.from_csc(indptr.astype(dtype), indices, num_nodes=450)
    assert neighbor_counts(graph).tolist() == np.bincount(indices, minlength=450).tolist()
    assert neighbor_counts(pgs.Graph.from_csc([0], [], num_nodes=3)).tolist() == [0, 0, 0]


# ---- arguments ----


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({}, ValueError, "rows, bytes: expected one of them, got None and None"),
        ({"rows": 1, "bytes": 5}, ValueError, "rows, bytes: expected one of them, got 1 and 5"),
        ({"rows": 0}, ValueError, "rows: expected an integer >= 1, got 0"),
        ({"rows": 1.5}, TypeError, "rows: expected an integer"),
        ({"bytes": -1}, ValueError, "bytes: expected an integer >= 1, got -1"),
        ({"rows": 1, "policy": "best"}, ValueError, "policy: expected one of .* got 'best'"),
        ({"rows": 1, "policy": 3}, TypeError, "policy: expected one of .* got"),
        ({"rows": 1, "epochs": 2}, ValueError, "epochs: expected None, since 'degree' counts"),
        ({"rows": 1, "policy": "exact", "epochs": 0}, ValueError, "epochs: expected an integer"),
        (
            {"bytes": 1000},
            ValueError,
            "bytes: expected at least 1340, of which .* 10 rows take 1320, got 1000",
        ),
        ({"rows": 1, "device": "cpu"}, ValueError, "device: expected a CUDA device to cache for"),
        ({"rows": 1, "graph": 5}, TypeError, "graph: expected a Graph, got"),
    ],
)
def test_wrong_arguments(given: dict[str, Any], error: type[Exception], text: str) -> None:
    features = pgs.Features.from_tensor(np.zeros((10, 3), np.float32))
    with pytest.raises(error, match=text):
        features.cache(**given)


def test_bytes_are_all_that_a_cache_takes() -> None:
    plan = CacheOptions.checked(None, 5000, "degree", None)
    assert plan.places(300, 12) == (5000 - 4 * 300 - 5 * 256) // (12 + 8)
    plan = CacheOptions.checked(None, 5000, "lru", None)
    assert plan.places(300, 12) == (5000 - 4 * 300 - 5 * 256) // (12 + 16)
    assert CacheOptions.checked(None, 1 << 40, "degree", None).places(100, 12) == 100
    assert CacheOptions.checked(7, None, "degree", None).places(5, 12) == 5


def test_without_a_driver_there_is_no_cache(tmp_path: Path) -> None:
    code = """
import pygsampler as pgs
features = pgs.Features.from_tensor([1.0, 2.0])
try:
    features.cache(rows=1)
except pgs.errors.CudaError as error:
    print("no CUDA driver" in str(error), features.cached, features.miss_rate)
    features[[0]]
    print(features.miss_rate)
"""
    assert run_with_driver(no_driver(tmp_path), code) == "True 0 0.0\n1.0\n"


# ---- on the emulator ----

PRELUDE = """
import gc, logging, pickle, sys
sys.path.append("tests/support")
import numpy as np
import torch
import pygsampler as pgs
from pygsampler._loader import arguments, node_seeds
import torch_cpu
from pygsampler._features.gather import gather_on_device
from pygsampler._arrays.ids import as_ids
from pygsampler._loader import feature_fetcher as loading
from pygsampler.torch import DataLoader

arguments._check = lambda index: None
node_seeds.to_device = lambda order, index: order.clone()
loading.as_ids = lambda ids, where, device=None: as_ids(ids, where)
pgs.Features._empty = lambda self, count, place: torch.empty(
    (count, *self.shape[1:]), dtype=getattr(torch, self.dtype)
)

def read(features, ids):
    ids = torch.as_tensor(ids)
    rows = features._empty(len(ids), 0)
    gather_on_device(0, [features._part(as_ids(ids, "ids"), rows.data_ptr())])
    return rows

random = torch.Generator().manual_seed(7)
NODES = 600
indptr = torch.zeros(NODES + 1, dtype=torch.int64)
indptr[1:] = torch.randint(0, 20, (NODES,), generator=random).cumsum(0)
EDGES = int(indptr[-1])
indices = (torch.rand(EDGES, generator=random) ** 2 * NODES).long()
graph = pgs.Graph.from_csc(indptr, indices)
there = graph.to("cuda")
x = torch.randn(NODES, 5, generator=random)
source = pgs.Features.from_tensor(x)
SEEDS = torch.arange(0, NODES, 3)

def loader_of(features, where=None, **more):
    options = {"batch_size": 32, "shuffle": True, "seed": 1, "features": {"x": features}, **more}
    return DataLoader(there if where is None else where, SEEDS, [4, 3], **options)

def counts_of(loader, epoch):
    plain = DataLoader(graph, SEEDS, [4, 3], batch_size=32, shuffle=True, seed=loader.seed)
    plain.set_epoch(epoch)
    counts = torch.zeros(NODES, dtype=torch.int64)
    for batch in plain:
        counts[batch.input_nodes] += 1
    return counts

def rows_of(features):
    return sorted(features._cache.cached_rows().tolist())

def top(scores, count):
    return sorted(sorted(range(len(scores)), key=lambda r: (-scores[r], r))[:count])
"""


def run(emulator: Path, code: str, **variables: str) -> str:
    return run_with_driver(emulator, PRELUDE + code, **variables)


def test_quantized_rows_are_cached_as_they_are_stored(emulator: Path, tmp_path: Path) -> None:
    """Rows on the device, pinned and of a cache of every policy are those of the CPU."""
    code = """
import os
from pygsampler._features import gather
from pygsampler._features.quantization import stored_width
path = os.environ["QUANTIZED"]
gather._room = lambda size, device: torch.empty(size, dtype=torch.uint8)
wide = torch.randn(NODES, 100, generator=random)
for rows, kind in (
    (x, "int8"), (x, "int4"), (wide, "float8_e4m3"), (wide, "float16"), (wide, "int4")
):
    for per, dtype in (("row", "float32"), ("column", "bfloat16")):
        host = pgs.Features.from_tensor(rows).quantize(kind, per, read_as=dtype)
        places = [host.to("cuda"), host.pin()]
        places += [host.cache(rows=50, policy=policy) for policy in ("lru", "presampled")]
        places += [host.cache(rows=50, graph=graph), host.cache(bytes=4000, graph=graph)]
        places += [pickle.loads(pickle.dumps(each)) for each in places]
        for features in places:
            assert features.stored_dtype == kind and features.nbytes == host.nbytes
            for _ in range(3):
                ids = torch.randint(0, NODES, (70,), generator=random)
                assert torch.equal(read(features, ids), host[ids]), features
        # Rows of a file may have any stride.
        stored = host._open_array().torch()
        exact = stored[:, : stored_width(kind, rows.shape[1])].contiguous()
        odd = torch.nn.functional.pad(exact.view(torch.uint8), (0, 6), value=77)
        for values in (exact, odd.view(stored.dtype)):
            graph.save(path, arrays={**host._file_arrays("x"), "x": values})
            opened = pgs.Features.open(path, "x")
            for features in (opened.to("cuda"), opened.pin(), opened.cache(rows=50, policy="lru")):
                for _ in range(2):
                    assert torch.equal(read(features, ids), host[ids]), features
                assert features._pins is None or features._pins.addresses[0] % 128 == 0
        opened = None
        if per == "row":
            loaders = loader_of(places[4]), loader_of(host, where=graph)
            for here, theirs in zip(*loaders, strict=True):
                assert torch.equal(here.x, theirs.x)
        # Scales on the device go with the features.
        assert len(host._quantization._there) == (kind != "float16")
        loaders = places = features = None
        gc.collect()
        assert len(host._quantization._there) == 0
print("done")
"""
    assert run(emulator, code, QUANTIZED=str(tmp_path / "g.pgs")) == "done\n"


def test_every_policy_reads_what_is_there(emulator: Path) -> None:
    code = """
policies = {
    "degree": {}, "presampled": {"epochs": 2}, "exact": {}, "lru": {},
    "reversed": {},
}
def reversed(graph):
    return -torch.arange(graph.num_nodes)
for policy, more in policies.items():
    cached = source.cache(rows=100, policy=reversed if policy == "reversed" else policy, **more)
    assert cached.device == "cuda:0" and cached.cached == 100 and cached.pinned
    assert repr(cached) == (
        f"Features(shape=(600, 5), dtype=float32, device=cuda:0, cached=100, policy='{policy}')"
    )
    seen = 0
    loader = loader_of(cached)
    for _ in range(2):
        epoch = loader.epoch
        for batch in loader:
            assert torch.equal(batch.x, x[batch.input_nodes])
            seen += len(batch.input_nodes)
        if policy == "presampled":
            last = counts_of(loader, 2**24 - 1) + counts_of(loader, 2**24 - 2)
            assert rows_of(cached) == top(last.tolist(), 100)
        elif policy == "exact":
            exact = counts_of(loader, epoch)
            held = exact[rows_of(cached)].sum()
            # What it costs to bring a row is one read of it.
            assert held >= exact[top(exact.tolist(), 100)].sum() - 100
    if policy == "degree":
        assert rows_of(cached) == top(np.bincount(indices, minlength=NODES).tolist(), 100)
    if policy == "reversed":
        assert rows_of(cached) == list(range(100))
    stats = cached.stats()
    assert stats["rows"] == seen and stats["reads"] == 14
    assert 0 < stats["hits"] < seen
    near, far = stats["hits"] * 20, (seen - stats["hits"]) * 20
    assert stats["bytes"] == {"cuda:0": near, "pinned": far}
    assert cached.miss_rate == 1 - stats["hits"] / seen
print("good")
"""
    assert run(emulator, code) == "good\n"


def test_hits_are_those_of_the_rows_that_are_there(emulator: Path) -> None:
    code = """
for where in (graph, there, graph.pin("cuda")):
    cached = source.cache(rows=50, graph=where)
    rows = set(rows_of(cached))
    assert sorted(rows) == top(np.bincount(indices, minlength=NODES).tolist(), 50)
    hits = 0
    for count in (0, 1, 500):
        ids = torch.randint(0, NODES, (count,), generator=random)
        for given in (ids, ids.int()):
            assert torch.equal(read(cached, given), x[ids])
            hits += sum(id in rows for id in ids.tolist())
    assert cached.stats()["hits"] == hits > 0
whole = source.cache(rows=10**6, graph=graph)
read(whole, torch.arange(NODES))
print(whole.cached, whole.stats()["hits"], whole.miss_rate)
"""
    assert run(emulator, code) == "600 600 0.0\n"


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "float16", "bfloat16", "int8", "uint8", "int64", "bool"]
)
def test_rows_of_every_dtype_and_width(emulator: Path, dtype: str) -> None:
    code = f"""
for shape in ((), (1,), (3,), (33,), (2, 7), (0,)):
    values = (torch.randn(NODES, *shape, generator=random) * 3).to(torch.{dtype})
    ids = torch.randint(0, NODES, (300,), generator=random)
    for policy in ("degree", "lru"):
        given = {{"graph": graph}} if policy == "degree" else {{}}
        cached = pgs.Features.from_tensor(values).cache(rows=70, policy=policy, **given)
        for _ in range(3):
            if values.shape[-1]:
                assert torch.equal(read(cached, ids), values[ids])
        assert bool(cached.stats()["hits"]) == bool(values[0].nbytes)
print("good")
"""
    assert run(emulator, code) == "good\n"


def test_batches_are_the_same_with_and_without(emulator: Path) -> None:
    """Features, labels and features of edges, with caches of their own."""
    code = """
y, e = torch.randint(0, 9, (NODES,), generator=random), torch.randn(EDGES, 2, generator=random)
for prefetch in (0, 1, 4, 8):
    cached = {
        "features": {"x": source.cache(rows=60), "z": source.cache(rows=30, policy="lru")},
        "labels": pgs.Features.from_tensor(y).cache(rows=20, policy="exact"),
        "edge_features": {"e": pgs.Features.from_tensor(e).cache(rows=90, policy="presampled")},
    }
    about = {"batch_size": 50, "seed": 4, "prefetch": prefetch}
    plain = {"features": {"x": x, "z": x}, "labels": y, "edge_features": {"e": e}}
    got = DataLoader(there, SEEDS, [4, 3], **about, **cached)
    want = DataLoader(graph, SEEDS, [4, 3], **about, **plain)
    for _ in range(2):
        for mine, theirs in zip(got, want, strict=True):
            assert torch.equal(mine.x, theirs.x) and torch.equal(mine.z, theirs.x)
            assert torch.equal(mine.y, theirs.y)
            for block, other in zip(mine.blocks, theirs.blocks, strict=True):
                assert torch.equal(block.e, other.e)
    assert all(f.stats()["hits"] for f in got._fetcher._nodes.values())
    assert got._fetcher._edges["e"].stats()["hits"] and got._fetcher._labels["y"].stats()["hits"]
try:
    DataLoader(there, SEEDS, [4], batch_size=8, edge_features={
        "e": pgs.Features.from_tensor(e).cache(rows=9)})
except ValueError as error:
    print(error)
try:
    DataLoader(graph, SEEDS, [4], batch_size=8, features={"x": source.cache(rows=9)})
except ValueError as error:
    print(error)
"""
    edges, host = run(emulator, code).splitlines()
    assert edges.startswith("edge_features['e']: expected a cache of edges by another policy than")
    assert host.startswith("features['x']: expected them on cpu, where the batches are")


def test_exact_counts_each_window_once(emulator: Path) -> None:
    code = """
counted = []
from pygsampler._loader import pipeline
real = pipeline._submitted
def submitted(run, *others):
    counted.append(run.epoch)
    return real(run, *others)
pipeline._submitted = submitted

cached = source.cache(rows=80, policy="exact", epochs=2)
loader = loader_of(cached)
def epochs(count):
    counted.clear()
    for _ in range(count):
        for batch in loader:
            assert torch.equal(batch.x, x[batch.input_nodes])
    return list(counted)
# Those that are to be counted, and the epoch itself.
print(epochs(4))
loader.set_epoch(3)
print(epochs(1))
loader.set_epoch(9)
print(epochs(2))
loader.set_seed(5)
print(epochs(1))
# Another loader reads it, and leaves the rows to the first.
rows = rows_of(cached)
other = loader_of(cached, batch_size=64)
counted.clear()
for batch in other:
    assert torch.equal(batch.x, x[batch.input_nodes])
print(counted, rows_of(cached) == rows)
del loader, batch
gc.collect()
counted.clear()
list(other)
print(counted)
# The last epoch that there is.
other.set_epoch(2**24 - 1)
counted.clear()
list(other)
print(counted)
"""
    assert run(emulator, code).splitlines() == [
        "[0, 1, 0, 1, 2, 3, 2, 3]",
        "[3]",
        "[9, 10, 9, 10]",
        "[0, 1, 0]",
        "[0] True",
        "[1, 2, 1]",
        "[16777215, 16777215]",
    ]


def test_an_update_reaches_every_copy(emulator: Path) -> None:
    code = """
values = x.clone()
features = pgs.Features.from_tensor(values)
pinned = features.pin("cuda")
few, more = features.cache(rows=40, graph=graph), features.cache(rows=90, policy="lru")
everything = [pinned, few, more, few.cache(rows=600, graph=graph)]
every = torch.arange(NODES)
for one in everything:
    assert torch.equal(read(one, every), values)
want = values.clone()
for number, writer in enumerate((features, *everything)):
    ids = torch.randint(0, NODES, (50,), generator=random).unique()
    new = torch.full((len(ids), 5), float(number))
    writer.update(new, ids if number % 2 else ids.int().numpy())
    want[ids] = new
    writer.update(-1.0, [number])
    want[number] = -1.0
    assert torch.equal(values, want)
    for one in everything:
        assert torch.equal(read(one, every), want)
for wrong in ([NODES], [-1]):
    try:
        few.update(0.0, wrong)
    except IndexError as error:
        print(error)
for one in everything:
    assert torch.equal(read(one, every), want)
few.close()
features.update(7.0, [1])
print(read(more, [1]).tolist())
half = pgs.Features.from_tensor(values.bfloat16()).cache(rows=600, graph=graph)
half.update(3.0, [2, 5])
print(read(half, [2, 5, 2]).float().sum().item())
"""
    assert run(emulator, code).splitlines() == [
        "ids[0]: expected an integer in [0, 600), got 600",
        "ids[0]: expected an integer in [0, 600), got -1",
        "[[7.0, 7.0, 7.0, 7.0, 7.0]]",
        "45.0",
    ]


def test_a_cache_without_memory_shrinks_and_says_so(emulator: Path) -> None:
    """And one for which there is no memory at all reads everything over the link."""
    code = """
messages = []
class Notes(logging.Handler):
    def emit(self, record):
        messages.append(record.getMessage())
logging.getLogger("pygsampler").addHandler(Notes())
big = torch.randn(20_000, 256, generator=random)
features = pgs.Features.from_tensor(big)
ids = torch.randint(0, 20_000, (3000,), generator=random)
def order(graph):
    return -torch.arange(20_000)
cached = features.cache(rows=20_000, policy=order, graph=graph)
print(cached.cached, messages)
assert torch.equal(read(cached, ids), big[ids])
assert cached.stats()["hits"] == int((ids < cached.cached).sum())
messages.clear()
del cached
wide = pgs.Features.from_tensor(torch.zeros(8_000_000, 1, dtype=torch.int8))
none = wide.cache(rows=5, policy="lru")
print(none.cached, messages)
assert not read(none, ids).any()
print(none.stats()["hits"], none.miss_rate)
assert not read(wide.cache(rows=7, policy="exact"), ids).any()
"""
    memory = str(20_650_000)
    first, second, third = run(emulator, code, FAKE_CUDA_MEMORY=memory).splitlines()
    text = (
        "features: no memory on cuda:0 for a cache of 20000 rows of 1024 bytes; it holds 10000 now"
    )
    assert first == f"10000 ['{text}']"
    text = "features: no memory on cuda:0 for a cache of 5 rows of 1 bytes; it holds 0 now"
    assert second == f"0 ['{text}']"
    assert third == "0 1.0"


def test_without_memory_for_counting_the_rows_stay(emulator: Path) -> None:
    code = """
from pygsampler._features import read_counts as counts
messages = []
class Notes(logging.Handler):
    def emit(self, record):
        messages.append(record.getMessage())
logging.getLogger("pygsampler").addHandler(Notes())
cached = source.cache(rows=50, policy="exact")
loader = loader_of(cached)
list(loader)
rows, real = rows_of(cached), counts.filled_memory
counts.filled_memory = lambda *about: None
for batch in loader:
    assert torch.equal(batch.x, x[batch.input_nodes])
assert rows_of(cached) == rows
print(messages)
counts.filled_memory = real
list(loader)
print(rows_of(cached) != rows)
"""
    warning, changed = run(emulator, code).splitlines()
    assert "no memory on cuda:0 to count the reads of 600 rows" in warning
    assert warning.endswith("caches keep what they have']") and changed == "True"


def test_pickled_moved_and_closed(emulator: Path) -> None:
    code = """
every = torch.arange(NODES)
def order(graph):
    return torch.arange(graph.num_nodes)
for policy in ("degree", "lru", "presampled", order):
    cached = source.cache(rows=50, policy=policy)
    list(loader_of(cached))
    rows = rows_of(cached)
    again = pickle.loads(pickle.dumps(cached))
    assert repr(again) == repr(cached) and rows_of(again) == rows
    assert torch.equal(read(again, every), x)
    assert again.stats()["hits"] == len(rows)
    loader = pickle.loads(pickle.dumps(loader_of(cached)))
    for batch in loader:
        assert torch.equal(batch.x, x[batch.input_nodes])
waiting = pickle.loads(pickle.dumps(source.cache(rows=50, policy="exact", epochs=3)))
assert waiting._cache.plan.epochs == 3 and waiting._cache.cached_rows() is None
loader = loader_of(waiting)
list(loader)
exact = pickle.loads(pickle.dumps(waiting))
read(exact, every)
print(exact.stats()["hits"])
assert torch.equal(cached.to("cpu")[every], x)
assert cached.pin("cuda").cached == 0
used = pgs.cuda.memory_stats()["used"]
cached.close()
print(repr(cached), pgs.cuda.memory_stats()["used"] < used)
for use in (lambda: cached.stats(), lambda: cached.cached, lambda: cached.miss_rate,
            lambda: read(cached, [1])):
    try:
        use()
    except pgs.errors.ClosedError as error:
        print(error)
"""
    closed = "features: expected open ones, got ones that were closed"
    assert run(emulator, code).splitlines() == ["50", "Features(closed) True", *[closed] * 4]


def test_scores_that_are_none(emulator: Path) -> None:
    code = """
for policy in (
    lambda g: torch.zeros(5), lambda g: torch.full((NODES,), float("nan")), lambda g: object(),
    lambda g: torch.zeros(NODES, dtype=torch.complex64),
):
    try:
        source.cache(rows=5, policy=policy, graph=graph)
    except (TypeError, ValueError) as error:
        print(type(error).__name__, str(error)[:59])
for scores in (np.arange(NODES), [float(i) for i in range(NODES)], torch.arange(NODES) > 594):
    cached = source.cache(rows=5, policy=lambda g: scores, graph=graph)
    assert rows_of(cached) == list(range(595, 600))
small = pgs.Features.from_tensor(x[:10])
for features, given in ((small, {}), (source, {"policy": "lru"}), (source, {"policy": "exact"})):
    try:
        features.cache(rows=5, graph=graph, **given)
    except ValueError as error:
        print(str(error)[:60])
try:
    source.to("cuda").cache(rows=5)
except ValueError as error:
    print(error)
"""
    start = "policy: expected a function that gives "
    assert run(emulator, code).splitlines() == [
        f"ValueError {start}a number for each of"[:70],
        f"ValueError {start}numbers, got a NaN"[:70],
        f"TypeError {start}an array, got object"[:69],
        f"ValueError {start}a number for each of"[:70],
        "graph: expected one of at most 10 nodes, which have rows, go",
        "graph: expected None for 'lru', got Graph(num_nodes=600, num",
        "graph: expected None for 'exact', got Graph(num_nodes=600, n",
        "features: expected ones on the CPU to cache, got ones on cuda:0",
    ]


def test_ctrl_c_at_every_moment_of_counting(emulator: Path) -> None:
    """The rows are those of before or after, what is read is right, and nothing is left."""
    code = """
from contextlib import contextmanager
from interrupts import at_every_moment
cached = source.cache(rows=60, policy="exact")
loader = DataLoader(
    there, SEEDS[:40], [2], batch_size=20, seed=1, prefetch=4, features={"x": cached}
)
every = torch.arange(NODES)

# A bar of tqdm's loses Ctrl-C in its destructor.
@contextmanager
def counting(*about):
    yield lambda size: None
loading.progress_counter = counting

def work():
    cached._cache._window = None
    loader.set_epoch(0)
    for _ in loader:
        pass

def held():
    stats = pgs.cuda.memory_stats()
    return stats["flights"], stats["used"], pgs.engine.memory_stats()["live"]

work()
work()
gc.collect()
before = held()
for moment in at_every_moment(work):
    assert torch.equal(read(cached, every), x)
    if held() != before:
        gc.collect()
    assert held() == before, (moment, held(), before)
print(moment > 50)
"""
    assert run(emulator, code) == "True\n"


def test_streams_take_turns(emulator: Path) -> None:
    """A stream waits for what another one has changed, and a change for those that read."""
    code = """
from pygsampler._arrays import devices
from pygsampler._features import cache_table as table
from pygsampler._engine import library
asked = []
real = library.call
def call(name, *args, **how):
    if name == "DeviceAfter":
        asked.append(args[1:])
        return 0
    return real(name, *args, **how)
library.call = call

one = table.CacheTable(0, 100, 4, 10, False)
one.enter(0)
one._seen[5] = 0
asked.clear()
one.change(0)
print(asked)
asked.clear()
one.enter(5)
one.enter(5)
one.enter(0)
print(asked)
one.change(5)
asked.clear()
one.change(5)
print(asked)
"""
    assert run(emulator, code).splitlines() == [
        "[(0, 5)]",
        "[(5, 0)]",
        "[(5, 0)]",
    ]
