"""Graphs in NumPy arrays, the values of a batch wherever it is, and whether two batches are one."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import pygsampler as pgs
from pygsampler._sampling.extensions import MODES as REGISTERED
from pygsampler.samplers.neighbor_plan import NEIGHBOR
from tests.support.assertions import assert_equal

Values = npt.NDArray[Any]
# Modes of research whose batches are those of "auto"; none where the package has no research.
RESEARCH_MODES = tuple(name for name, mode in REGISTERED.items() if mode.equals_auto)
MODES = (*NEIGHBOR, *RESEARCH_MODES)
# The options of mode "reservoir" that change its times, and nothing else.
SWITCHES: dict[str, dict[str, Any]] = {
    "usual": {},
    "all off": {"memory": "global", "schedule": False},
    "schedule": {"memory": "global"},
    "shared": {"memory": "shared", "schedule": False},
    "shared, schedule": {"memory": "shared", "block_threshold": 0},
    "parts": {"degree_threshold": 30, "schedule": False},
    "derived": {"degree_threshold": "auto"},
    "snake": {"degree_threshold": 20, "block_threshold": (1 << 31) - 1},
    "two streams": {"degree_threshold": 40, "block_threshold": 2, "streams": 2},
}
WIDTH = {32: np.dtype(np.int32), 64: np.dtype(np.int64)}


def emulated() -> bool:
    """True if device 0 is the emulator's, which does a millionth of a GPU's work per second."""
    return pgs.cuda.device_name(0).startswith("Emulated")


def scaled(on_gpu: int, on_emulator: int) -> int:
    """A size: the first on a GPU, the second where the emulator plays one."""
    return on_emulator if emulated() else on_gpu


@dataclass(frozen=True)
class Csc:
    """A graph as lists of in-neighbours; the dtypes are chosen when a `pgs.Graph` is made."""

    indptr: Values
    indices: Values
    num_nodes: int
    edge_ids: Values | None = None

    def graph(
        self, ids: int = 64, offsets: int = 64, edge_ids: int = 0, *, to_pin: bool = False
    ) -> pgs.Graph:
        """On the CPU. ``edge_ids``: their width, 0 for none; they are a permutation."""
        keep = on_own_pages if to_pin else np.asarray
        numbers = None
        if edge_ids:
            order = np.random.default_rng(5).permutation(len(self.indices))
            numbers = keep(order.astype(WIDTH[edge_ids]))
        return pgs.Graph.from_csc(
            keep(self.indptr.astype(WIDTH[offsets])),
            keep(self.indices.astype(WIDTH[ids])),
            edge_ids=numbers,
            num_nodes=self.num_nodes,
        )


def on_own_pages(values: Values) -> Values:
    """A copy that shares no page of memory with anything else.

    Pinning pins pages, and the driver copies nothing to or from memory that is pinned in part.
    """
    pages = mmap.mmap(-1, max(values.nbytes, 1))
    own = np.frombuffer(pages, values.dtype, len(values))
    own[:] = values
    return own


def of_rows(rows: Sequence[Iterable[int]], num_nodes: int) -> Csc:
    lists = [list(row) for row in rows]
    indptr = np.cumsum([0, *map(len, lists)], dtype=np.int64)
    return Csc(indptr, np.array([u for row in lists for u in row], np.int64), num_nodes)


def with_degrees(degrees: Sequence[int], num_nodes: int, seed: int = 1) -> Csc:
    """Row v has ``degrees[v]`` in-neighbours, drawn from all vertices."""
    indptr = np.cumsum([0, *degrees], dtype=np.int64)
    random = np.random.default_rng(seed)
    return Csc(indptr, random.integers(0, num_nodes, int(indptr[-1])), num_nodes)


def random_graph(num_nodes: int, seed: int, most: int = 80) -> Csc:
    """In-degrees from 0 to ``most``, small ones more often; parallel edges and loops occur."""
    random = np.random.default_rng(seed)
    degrees = (random.random(num_nodes) ** 3 * (most + 1)).astype(np.int64)
    return with_degrees(degrees.tolist(), num_nodes, seed)


def awkward() -> dict[str, Csc]:
    """The shapes that have broken samplers."""
    n = 300
    return {
        "star": of_rows([range(1, n), *([0] for _ in range(1, n))], n),
        "path": of_rows([[], *([v] for v in range(n - 1))], n),
        "self_loops": of_rows([[v] * (v % 9) for v in range(n)], n),
        "parallel_edges": of_rows([[(v + 1) % n] * 7 + [(v + 2) % n] * 6 for v in range(n)], n),
        "isolated": of_rows([[] if v % 3 else [v - 1, v, v + 2] for v in range(1, n - 1)], n),
        "trailing": of_rows([[n - 1, n - 2, n - 3], [n - 1] * 20], n),
        "one_vertex": of_rows([[0, 0, 0]], 1),
        "no_edges": of_rows([[]] * 5, 5),
        "two_cliques": of_rows([[u for u in range(n) if u % 2 == v % 2] for v in range(60)], n),
    }


def values(batch: pgs.MiniBatch) -> list[Values]:
    """Every array of a batch, on the CPU, by one copy."""
    here = batch.cpu()
    arrays = [here.input_nodes, here.output_nodes, here.output_index]
    for block in here.blocks:
        arrays += [block.indptr, block.indices, block.edge_ids, block.src_nodes, block.dst_nodes]
        if block.edge_weights is not None:
            arrays.append(block.edge_weights)
    return [array.numpy() for array in arrays]


def compare(
    cpu: pgs.Graph,
    there: pgs.Graph,
    seeds: Any,
    fanouts: Sequence[int],
    *,
    modes: Iterable[str] = MODES,
    change: Callable[[Any], Any] = lambda seeds: seeds,
    exclude: Any = None,
    batch: int = 3,
    epoch: int = 1,
    **options: Any,
) -> None:
    """The batch of each mode on a device against the CPU's; ``change`` makes its seeds."""
    numbers = {"epoch": epoch, "batch": batch, "exclude": exclude}
    want = pgs.PGSampler(fanouts, seed=77, **options).sample(cpu, seeds, **numbers)
    for mode in modes:
        sampler = pgs.PGSampler(fanouts, seed=77, mode=mode, **options)
        got = sampler.sample(there, change(seeds), **numbers)
        assert_equal(got, want, f"mode {mode}, fanouts {list(fanouts)}")


def compare_reservoirs(
    cpu: pgs.Graph,
    there: pgs.Graph,
    seeds: Any,
    fanouts: Sequence[int],
    switches: Iterable[Mapping[str, Any]],
    **numbers: Any,
) -> None:
    """Compares the batches of mode "reservoir", which are its own, with each of ``switches``."""
    numbers = {"epoch": 1, "batch": 3, **numbers}
    want = pgs.PGSampler(fanouts, seed=77, mode="reservoir").sample(cpu, seeds, **numbers)
    for options in switches:
        sampler = pgs.PGSampler(fanouts, seed=77, mode="reservoir", mode_options=options)
        assert_equal(sampler.sample(there, seeds, **numbers), want, sampler)


def edges_of(batch: pgs.MiniBatch) -> list[tuple[bytes, int]]:
    """For each block its edges as (source, destination, edge id) in original ids, sorted: what
    is left of a batch when its numbering is taken away."""
    here = batch.cpu()
    found = []
    for block in here.blocks:
        nodes = block.src_nodes.numpy()
        rows = np.repeat(block.dst_nodes.numpy(), np.diff(block.indptr.numpy()))
        columns = (block.edge_ids.numpy(), rows, nodes[block.indices.numpy()])
        table = np.stack([column.astype(np.int64) for column in columns])
        found.append((table[:, np.lexsort(table)].tobytes(), table.shape[1]))
    return found
