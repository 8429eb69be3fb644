"""The cases of tools/compare_builds.py, and the process that runs them with one build.

compare_builds.py starts it and writes commands to it, a line of JSON each; each is answered by a
line. The cases use the public API alone, so that they run with builds whose private modules have
other names.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

import pygsampler as pgs

SEED = 7
BATCHES = 16
# Seeds of an epoch of a loader, and how many of its batches are compared.
EPOCH, COMPARED = 32 * 1024, 4
FEATURES = 64
# The compared parts of a result: names are followed until they lead to an array. A link batch calls
# the batch inside it "sampled" or "minibatch", by version.
FIELDS = (
    *("blocks", "sampled", "minibatch", "indptr", "indices", "edge_ids", "src_nodes", "nodes"),
    *("x", "y", "edge_label_index"),
)


class Run(NamedTuple):
    """A case that is ready: `call(n)` is timed, `results(n)` is what is compared."""

    call: Callable[[int], object]
    results: Callable[[int], Iterable[Any]]


class Scale(NamedTuple):
    """The size of the graphs."""

    nodes: int
    edges: int


class Data:
    """Graphs and seeds of the cases, the same in every process."""

    def __init__(self, scale: Scale, device: str) -> None:
        self.scale, self.device = scale, device
        self.random = np.random.default_rng(SEED)

    def ends(self, sources: int, targets: int, edges: int) -> tuple[Any, Any]:
        """Ends of edges, with a few sources and targets that many edges have."""
        src, dst = (
            (count * self.random.random(edges) ** 2).astype(np.int64)
            for count in (sources, targets)
        )
        return src, dst

    def graph(self) -> Any:
        nodes, edges = self.scale
        times = self.random.integers(0, 1000, edges)
        ends = self.ends(nodes, nodes, edges)
        graph = pgs.Graph.from_coo(*ends, num_nodes=nodes, edge_data={"t": times})
        return graph.to(self.device)

    def hetero_graph(self) -> Any:
        """A graph with three types of nodes and five of edges."""
        nodes, edges = self.scale
        sizes = {"paper": nodes // 2, "author": nodes // 3, "field": nodes // 6}
        types = (
            *(("author", "writes", "paper"), ("paper", "written", "author")),
            *(("paper", "cites", "paper"), ("field", "holds", "paper"), ("paper", "has", "field")),
        )
        relations = {
            (src, name, dst): self.ends(sizes[src], sizes[dst], edges // 5)
            for src, name, dst in types
        }
        return pgs.Graph.from_coo(relations, num_nodes=sizes).to(self.device)

    def seeds(self, size: int, among: int, batches: int = BATCHES) -> list[Any]:
        """Distinct seeds for each batch, where the graph is."""
        drawn = [self.choice(among, size) for _ in range(batches)]
        return drawn if self.device == "cpu" else [self.tensor(seeds) for seeds in drawn]

    def choice(self, among: int, size: int) -> Any:
        return self.random.choice(among, min(size, among), replace=False)

    def tensor(self, array: Any) -> Any:
        import torch

        return torch.from_numpy(array).to(self.device)


# ---- cases -----------------------------------------------------------------------------------


def _sampling(graph: Any, sampler: Any, seeds: list[Any], options: Mapping[str, Any] = {}) -> Run:
    def call(n: int) -> Any:
        at = n % len(seeds)
        return sampler.sample(graph, seeds[at], epoch=0, batch=at, **options)

    return Run(call, lambda n: [call(n)])


def sample(data: Data, size: int) -> Run:
    seeds = data.seeds(size, data.scale.nodes)
    return _sampling(data.graph(), pgs.PGSampler([10, 10], seed=SEED), seeds)


def types(data: Data) -> Run:
    graph = data.hetero_graph()
    seeds = [{"paper": ids} for ids in data.seeds(1024, data.scale.nodes // 2)]
    return _sampling(graph, pgs.PGSampler([10, 10], seed=SEED), seeds)


def times(data: Data) -> Run:
    when = data.random.integers(500, 1000, 1024)
    options = {"seed_time": when if data.device == "cpu" else data.tensor(when)}
    sampler = pgs.PGSampler([10, 10], seed=SEED, temporal="t")
    return _sampling(data.graph(), sampler, data.seeds(1024, data.scale.nodes), options)


def ladies(data: Data) -> Run:
    sampler = pgs.samplers.ladies(nodes=[512, 512], seed=SEED)
    return _sampling(data.graph(), sampler, data.seeds(512, data.scale.nodes))


def walk(data: Data) -> Run:
    sampler = pgs.RandomWalk(80, seed=SEED)
    return _sampling(data.graph(), sampler, data.seeds(1024, data.scale.nodes))


def sample_many(data: Data) -> Run:
    graph, sampler = data.graph(), pgs.PGSampler([10, 10], seed=SEED)
    seeds = data.seeds(1024, data.scale.nodes, 64)

    def call(n: int) -> Any:
        return sampler.sample_many(graph, seeds, epoch=n % BATCHES, batch=0)

    return Run(call, call)


def _node_options(data: Data) -> dict[str, Any]:
    nodes = data.scale.nodes
    return {
        "batch_size": 1024,
        "shuffle": True,
        "seed": SEED,
        "device": data.device,
        "features": {"x": data.tensor(data.random.random((nodes, FEATURES), dtype=np.float32))},
        "labels": data.tensor(data.random.integers(0, 10, nodes)),
    }


def _epochs(loader: Any) -> Run:
    """Whole epochs, which a loader counts itself: all builds run as many of them."""

    def call(n: int) -> None:
        for _ in loader:
            pass

    return Run(call, lambda n: islice(loader, COMPARED))


def loader(data: Data, **options: Any) -> Run:
    from pygsampler.torch import DataLoader

    seeds = data.choice(data.scale.nodes, EPOCH)
    return _epochs(DataLoader(data.graph(), seeds, [10, 10], **_node_options(data), **options))


def links(data: Data) -> Run:
    from pygsampler.torch import LinkLoader

    graph, options = data.graph(), _node_options(data)
    edges = data.choice(data.scale.edges, EPOCH // 2)
    del options["labels"]
    return _epochs(LinkLoader(graph, edges, [10, 10], **options))


def static(data: Data) -> Run:
    """Captured steps: sampling, features and the means of all blocks."""
    import torch

    from pygsampler.torch import capture

    step_loader, compared = (_static_loader(data) for _ in range(2))
    total = torch.zeros((), device=data.device)

    def step(batch: Any) -> Any:
        h = batch.x
        for block in batch.blocks:
            h = block.mean(h)
        return total.copy_(h.sum())

    steps = capture(step, step_loader)
    return Run(lambda n: steps.run(), lambda n: _trimmed(compared))


def _trimmed(loader: Any) -> list[Any]:
    return [batch.trimmed() for batch in islice(loader, COMPARED)]


def _static_loader(data: Data) -> Any:
    from pygsampler.torch import DataLoader

    data = Data(data.scale, data.device)  # both have the same numbers
    seeds = data.choice(data.scale.nodes, EPOCH)
    options = _node_options(data) | {"drop_last": True}
    return DataLoader(data.graph(), seeds, [10, 10], **options, static=True)


ON_BOTH: dict[str, Callable[[Data], Run]] = {
    "sample 1": partial(sample, size=1),
    "sample 64": partial(sample, size=64),
    "sample 1024": partial(sample, size=1024),
    "sample 1024, 5 types": types,
    "sample 1024, times": times,
    "LADIES 512 x 2": ladies,
    "walk 80": walk,
    "DataLoader": loader,
    "LinkLoader": links,
}
ON_GPU = {
    "sample_many 64": sample_many,
    "static step": static,
    "DataLoader prefetch=8": partial(loader, prefetch=8),
}
NEED_TORCH = {"DataLoader", "LinkLoader"}


def names(device: str) -> list[str]:
    """The cases of a device, without those whose partner is missing."""
    if device != "cpu":
        return [*ON_BOTH, *ON_GPU]
    there = importlib.util.find_spec("torch") is not None
    return [name for name in ON_BOTH if there or name not in NEED_TORCH]


# ---- results ---------------------------------------------------------------------------------


def arrays(value: Any) -> Iterator[np.ndarray]:
    """All arrays of a result that `FIELDS` lead to."""
    if isinstance(value, Mapping):
        for key in sorted(value, key=str):
            yield from arrays(value[key])
    elif isinstance(value, list | tuple):
        for item in value:
            yield from arrays(item)
    elif hasattr(value, "__dlpack__"):
        yield _on_host(value)
    elif value is not None:
        for name in FIELDS:
            if hasattr(value, name):
                yield from arrays(getattr(value, name))


def _on_host(array: Any) -> np.ndarray:
    if isinstance(array, np.ndarray):
        return array
    if array.__dlpack_device__()[0] == 1:
        return np.from_dlpack(array)
    import torch

    return torch.from_dlpack(array).cpu().numpy()


def digest(results: Iterable[Any]) -> dict[str, Any]:
    """A digest of the bytes of all results, and how many arrays and numbers it is of."""
    made, count, size = hashlib.blake2b(digest_size=16), 0, 0
    for result in results:
        for array in arrays(result):
            made.update(f"{array.dtype.str} {array.shape}\n".encode())
            made.update(np.ascontiguousarray(array).tobytes())
            count, size = count + 1, size + array.size
    return {"digest": made.hexdigest(), "arrays": count, "numbers": size}


# ---- the process -----------------------------------------------------------------------------


class Worker:
    """Answers commands: (name, arguments) become a method's call."""

    def __init__(self, machine: str, device: str, scale: Scale) -> None:
        # By its file, which imports nothing: the build may have it under another name.
        spec = importlib.util.spec_from_file_location("machine", machine)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self._load = module.OtherLoad
        self._device, self._scale = device, scale
        self._run: Run | None = None

    def about(self) -> dict[str, Any]:
        return {
            "package": os.path.dirname(pgs.__file__),
            "version": pgs.__version__,
            "python": sys.version.split()[0],
            "cases": names(self._device),
        }

    def prepare(self, name: str) -> dict[str, Any]:
        """Makes a case, and returns the digest of its first results."""
        self._run = None
        self._run = (ON_BOTH | ON_GPU)[name](Data(self._scale, self._device))
        return digest(item for n in range(2) for item in self._run.results(n))

    def run(self, first: int, count: int) -> dict[str, float]:
        """Seconds of `count` calls, and the share of the cores that others took meanwhile."""
        assert self._run is not None
        call = self._run.call
        self._synchronize()
        others, begin = self._load(), time.perf_counter()
        for n in range(first, first + count):
            call(n)
        self._synchronize()
        return {"seconds": time.perf_counter() - begin, "others": others.share()}

    def _synchronize(self) -> None:
        if self._device != "cpu":
            import torch

            torch.cuda.synchronize()


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what others print is no answer
    machine, device, nodes, edges = sys.argv[1:]
    worker = Worker(machine, device, Scale(int(nodes), int(edges)))
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        print(json.dumps(getattr(worker, name)(*arguments)), file=answers)


if __name__ == "__main__":
    main()
