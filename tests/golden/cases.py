"""The table of the samplers whose results have digests.

A case is sampled twice, for two batches of two epochs, so that both numbers count.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

import pygsampler as pgs
from pygsampler import samplers
from pygsampler.samplers import Temporal, layer_wise

from .graphs import EDGES, HOMOGENEOUS, NODES, ONE_TYPE, RELATIONS, feature_rows, graph, integers
from .results import OverRelations

SEEDS = np.arange(0, NODES, 37)
SEEDS_BY_TYPE = {"item": integers(60, 0, 1500, 271), "user": integers(20, 0, 900, 97)}
BATCHES = ((0, 0), (3, 11))
# Methods of batches. Tables of walks have no gaps, so they have digests of their own.
FORMS = ("torch", "numpy", "arrow")
HETERO_FORMS = ("torch",)
TABLES = ("torch", "numpy")
# What cases need that name a mode, a sampler or a form of program of papers' experiments.
RESEARCH = ("pygsampler.research",)


@dataclass(frozen=True)
class Case:
    """A result that has a digest. ``make`` returns it, and needs some packages."""

    name: str
    make: Callable[..., Any]
    needs: tuple[str, ...] = ()

    def lacks(self) -> list[str]:
        """Returns the packages that are not installed."""
        return [name for name in self.needs if importlib.util.find_spec(name) is None]

    def __call__(self) -> Any:
        """Returns the result."""
        return self.make()


@dataclass(frozen=True)
class Sampled(Case):
    """Two batches of the sampler that ``make`` returns.

    They are the same on every device, with ids of 32 and of 64 bits, and in the arrays of every
    library that ``forms`` names. ``like`` is the case that has the same digest, if there is one.
    ``emulated`` is False for what the emulator does not run: most programs, whose kernels take
    g++ a second each, and samplers that use torch on a GPU.
    """

    graph: str = "homogeneous"
    seeds: Any = field(default_factory=lambda: SEEDS)
    options: Mapping[str, Any] = field(default_factory=dict)
    bits: int = 64
    like: str | None = None
    forms: tuple[str, ...] | None = None
    emulated: bool = True

    def all_forms(self) -> tuple[str, ...]:
        """Returns the methods of a batch that give the same arrays, in those of a library."""
        if self.forms is not None:
            return self.forms
        return FORMS if self.graph in HOMOGENEOUS else HETERO_FORMS

    def __call__(self, bits: int | None = None, device: str = "cpu", form: str = "") -> list[Any]:
        """Returns the batches, with ids of so many bits, on a device, in one of their forms."""
        source, sampler = graph(self.graph, bits or self.bits, device), self.make()
        batches = [
            sampler.sample(source, self.seeds, epoch=epoch, batch=batch, **self.options)
            for epoch, batch in BATCHES
        ]
        return [getattr(batch, form)() if form else batch for batch in batches]


@dataclass(frozen=True)
class SampledOverRelations(Sampled):
    """The same of a program over relations, whose digests have only the types that it names."""

    forms: tuple[str, ...] | None = FORMS
    emulated: bool = False

    def __call__(self, bits: int | None = None, device: str = "cpu", form: str = "") -> list[Any]:
        relations = self.make().relations
        return [OverRelations(batch, relations) for batch in super().__call__(bits, device, form)]


# ---- neighbors -------------------------------------------------------------------------------

OPTIONS: dict[str, dict[str, Any]] = {
    "replace": {"replace": True},
    "weighted": {"prob": "w"},
    "mask": {"mask": "mask"},
    "factors": {"edge_weights": "ht"},
    "disjoint": {"disjoint": True},
    "new": {"frontier": "new"},
}
# Pairs that the sampler refuses.
REFUSED = {("weighted", "mask")}
# How names of cases begin, and their graph, fanouts, seed and seeds.
NEIGHBORS = (
    ("neighbors", "homogeneous", [5, 4, 3], 1, SEEDS),
    ("one type", "one type", [4, 3], 4, {"paper": SEEDS}),
    ("heterogeneous", "several types", [4, 3], 4, SEEDS_BY_TYPE),
)
TIMES: dict[str, dict[str, Any]] = {
    "": {},
    "last": {"temporal": Temporal("t", "last")},
    "before": {"temporal": Temporal("t", inclusive=False)},
    "window": {"temporal": Temporal("t", window=300)},
    "carried": {"temporal": Temporal("t", carry="edge")},
    "last window": {"temporal": Temporal("t", "last", window=300)},
    "last replace": {"temporal": Temporal("t", "last"), "replace": True},
    "before carried": {"temporal": Temporal("t", inclusive=False, carry="edge")},
    "of nodes": {"temporal": "time"},
    "of nodes carried": {"temporal": Temporal("time", carry="edge")},
}
MODES = {"persistent": (), **dict.fromkeys(("fused", "bsp", "queue"), RESEARCH)}


def neighbors() -> Iterator[Case]:
    plain = partial(pgs.PGSampler, seed=1)
    yield Sampled("neighbors int32", partial(plain, [5, 4, 3]), bits=32)
    yield Sampled("neighbors all", partial(plain, [-1, 2, -1]))
    yield Sampled("neighbors many", partial(plain, [70, 33]))
    yield Sampled("neighbors none", partial(plain, [3, 0, 4]))
    yield Sampled("neighbors one hop", partial(plain, [9]))
    yield Sampled("neighbors weighted float64", partial(plain, [5, 4, 3], prob="w64", replace=True))
    yield Sampled("neighbors weighted float64 once", partial(plain, [5, 4, 3], prob="w64"))
    yield Sampled("neighbors weighted all", partial(plain, [-1, 4, 3], prob="w"))
    yield Sampled("neighbors mask by integers", partial(plain, [5, 4, 3], mask="kind"))
    for mode in ("reservoir", "queue"):
        yield Sampled(f"neighbors {mode}", partial(plain, [5, 4, 3], mode=mode), RESEARCH)
    for mode, needs in MODES.items():
        for option in ({}, {"replace": True}):
            name, of_mode = " ".join(["neighbors", *option]), partial(plain, [5, 4, 3], mode=mode)
            yield Sampled(f"{name} by {mode}", partial(of_mode, **option), needs, like=name)
    tables = partial(plain, [5, 4, 3], map_bytes=1)
    yield Sampled("neighbors by tables", tables, like="neighbors")
    for what, name, fanouts, seed, seeds in NEIGHBORS:
        for added in _option_sets():
            options = {key: value for one in added for key, value in OPTIONS[one].items()}
            yield Sampled(
                " ".join((what, *added)),
                partial(pgs.PGSampler, fanouts, seed=seed, **options),
                graph=name,
                seeds=seeds,
            )
    repeated = np.concatenate([SEEDS[:40], SEEDS[:20], SEEDS[5:6].repeat(3)])
    yield Sampled("neighbors of repeated seeds", partial(plain, [5, 4]), seeds=repeated)
    few = partial(plain, [5, 4], disjoint=True)
    yield Sampled("neighbors disjoint of repeated seeds", few, seeds=repeated)
    excluded = {"exclude": np.arange(0, EDGES, 3)}
    for added in ((), *((one,) for one in OPTIONS)):
        options = {key: value for one in added for key, value in OPTIONS[one].items()}
        yield Sampled(
            " ".join(("neighbors exclude", *added)),
            partial(plain, [5, 4], **options),
            options=excluded,
        )


def _option_sets() -> list[tuple[str, ...]]:
    pairs = [pair for pair in combinations(OPTIONS, 2) if pair not in REFUSED]
    return [(), *((one,) for one in OPTIONS), *pairs]


def temporal() -> Iterator[Case]:
    for what, name, _, seed, seeds in NEIGHBORS:
        if isinstance(seeds, dict):
            times: Any = {kind: integers(len(ids), 0, 1000) for kind, ids in seeds.items()}
        else:
            times = integers(len(seeds), 0, 1000)
        fanouts = [5, 4] if name == "homogeneous" else [4, 3]
        more = {one: OPTIONS[one] for one in ("replace", "weighted", "mask", "factors", "new")}
        for added, options in {**TIMES, **more}.items():
            yield Sampled(
                f"{what} temporal {added}".strip(),
                partial(pgs.PGSampler, fanouts, seed=seed, **{"temporal": "t", **options}),
                graph=name,
                seeds=seeds,
                options={"seed_time": times},
            )


def hgt() -> Iterator[Case]:
    by_type = {"user": [9, 4], "item": [20, 10], "tag": [3, 2]}
    typed = partial(Sampled, graph="several types", seeds=SEEDS_BY_TYPE)
    one = partial(Sampled, graph="one type", seeds={"paper": SEEDS})
    yield typed("hgt", partial(pgs.samplers.HGTSampler, [20, 10], seed=4))
    yield typed("hgt by type", partial(pgs.samplers.HGTSampler, by_type, seed=4))
    yield typed(
        "hgt all neighbors", partial(pgs.samplers.HGTSampler, [20, 10], max_neighbors=None, seed=4)
    )
    yield typed("hgt int32", partial(pgs.samplers.HGTSampler, [20, 10], seed=4), bits=32)
    yield one("hgt one type", partial(pgs.samplers.HGTSampler, [40, 20], seed=4))
    few = partial(pgs.samplers.HGTSampler, [40, 20], max_neighbors=3, seed=4)
    yield one("hgt one type few neighbors", few)


# ---- LABOR -----------------------------------------------------------------------------------

LABOR: dict[str, dict[str, Any]] = {
    "": {},
    "exact": {"exact": True},
    "importance": {"importance": 2},
    "layers": {"layer_dependency": True},
    "batches": {"batch_dependency": 4},
    "exact layers": {"exact": True, "layer_dependency": True},
    "importance layers": {"importance": 1, "layer_dependency": True},
}


def labor() -> Iterator[Case]:
    make = partial(layer_wise.labor, fanouts=[4, 3], seed=5)
    for added, options in LABOR.items():
        for how, weight in (("labor", {}), ("labor weighted", {"weight": "w"})):
            name = f"{how} {added}".strip()
            yield Sampled(
                name,
                partial(make, **weight, **options),
                graph="scored",
                emulated=name in EMULATED,
            )
    yield Sampled("labor without factors", partial(make, weights=False), emulated=False)
    hetero: dict[str, dict[str, Any]] = {
        **LABOR,
        "weighted": {"prob": "w"},
        "mask": {"mask": "mask"},
        "new": {"frontier": "new"},
        "without factors": {"edge_weights": None},
    }
    for what, name, fanouts, seed, seeds in NEIGHBORS[1:]:
        for added, options in hetero.items():
            yield Sampled(
                f"{what} labor {added}".strip(),
                partial(pgs.LaborSampler, fanouts, seed=seed, **{"edge_weights": "ht", **options}),
                graph=name,
                seeds=seeds,
            )


# ---- contexts --------------------------------------------------------------------------------


def contexts() -> Iterator[Case]:
    for what, name, _, seed, seeds in NEIGHBORS:
        of = partial(Sampled, graph=name, seeds=seeds, forms=TABLES)
        plain = partial(samplers.context, budget=50, seed=seed)
        yield of(f"{what} contexts", plain)
        yield of(f"{what} contexts by cells", partial(plain, by="cell", cells=3, width=None))
        if isinstance(seeds, dict):
            times: Any = {kind: integers(len(ids), 0, 1000) for kind, ids in seeds.items()}
        else:
            times = integers(len(seeds), 0, 1000)
        timed = partial(of, options={"seed_time": times})
        yield timed(f"{what} contexts by time", partial(plain, time="t", width=7))
        of_nodes = Temporal("time", inclusive=False, window=600)
        yield timed(f"{what} contexts by times of nodes", partial(plain, time=of_nodes))


# ---- walks, visits, steps --------------------------------------------------------------------


def walks() -> Iterator[Case]:
    walk = partial(pgs.RandomWalk, seed=3)
    makers: dict[str, Callable[[], Any]] = {
        "walk": partial(walk, 20, edge_ids=True),
        "walk weighted": partial(walk, 20, prob="w"),
        "walk weighted float64": partial(walk, 20, prob="w64"),
        "walk in": partial(walk, 9, direction="in"),
        "walk in weighted": partial(walk, 9, direction="in", prob="w"),
        "walk stop": partial(walk, 20, stop=0.2),
        "walk restart": partial(walk, 12, restart=0.3, walks_per_seed=2),
        "walk restart jumps": partial(walk, 12, restart=0.3, count_jumps=True),
        "walk relations": partial(walk, 8, metapath=[0, 1, 2], edge_types="kind"),
        "walk relations weighted": partial(
            walk, 8, metapath=[0, 1, 2], edge_types="kind", prob="w"
        ),
        "walk second order stop": partial(walk, 9, p=0.5, q=2.0, stop=0.1, direction="in"),
        "deepwalk": partial(pgs.walks.DeepWalk, 10, seed=3),
        "deepwalk weighted": partial(pgs.walks.DeepWalk, 10, walks_per_seed=3, prob="w", seed=3),
        "node2vec": partial(pgs.walks.Node2Vec, 12, p=0.25, q=4.0, seed=3),
        "node2vec weighted": partial(pgs.walks.Node2Vec, 6, p=2.0, q=0.5, prob="w", seed=3),
        "pagerank": partial(pgs.walks.PersonalizedPageRank, 0.15, seed=3),
        "pagerank weighted": partial(pgs.walks.PersonalizedPageRank, 0.3, prob="w", seed=3),
        "multi-dimensional": partial(pgs.walks.MultiRW, 5, 30, seed=3),
        "multi-dimensional in": partial(pgs.walks.MultiRW, 8, 20, direction="in", seed=3),
        "pinsage": partial(pgs.walks.PinSAGE, 3, 0.4, 9, 5, seed=3),
        "pinsage weighted": partial(pgs.walks.PinSAGE, 2, 0.5, 9, 4, prob="w", seed=3),
        "pinsage in": partial(pgs.walks.PinSAGE, 2, 0.5, 9, 4, direction="in", seed=3),
        "pinsage relations": partial(
            pgs.walks.PinSAGE, 2, 0.5, 9, 4, metapath=[0, 1], edge_types="kind", seed=3
        ),
    }
    of_80 = partial(Sampled, seeds=SEEDS[:80])
    for name, sampler in makers.items():
        yield of_80(name, sampler, forms=() if "pinsage" in name else TABLES)
    for name in ("walk weighted", "node2vec", "multi-dimensional"):
        yield of_80(f"{name} int32", makers[name], bits=32, forms=TABLES)
    for execution, needs in (("sample", ()), ("transit", RESEARCH)):
        same = partial(walk, 20, edge_ids=True, mode_options={"execution": execution})
        yield of_80(f"walk by {execution}", same, needs, like="walk", forms=TABLES)
    for layout in ("packed", "csr"):
        same = partial(walk, 20, edge_ids=True, mode_options={"layout": layout})
        yield of_80(f"walk {layout}", same, like="walk", forms=TABLES)
    yield of_80("pinsage int32", makers["pinsage"], bits=32, forms=())
    path = [("user", "buys", "item"), ("item", "bought", "user")]
    typed: dict[str, Callable[[], Any]] = {
        "metapath": partial(pgs.walks.MetaPathWalk, path, 6, seed=4),
        "metapath edges": partial(pgs.walks.MetaPathWalk, path, 6, edge_ids=True, seed=4),
        "metapath weighted": partial(pgs.walks.MetaPathWalk, path, 6, prob="w", seed=4),
        "metapath once": partial(pgs.walks.MetaPathWalk, [path[0], RELATIONS[2]], seed=4),
        "metapath in": partial(pgs.walks.MetaPathWalk, path, 5, direction="in", seed=4),
    }
    for name, sampler in typed.items():
        ids = np.arange(0, 900, 11)
        yield Sampled(name, sampler, graph="several types", seeds=ids, forms=TABLES, emulated=False)
    of_users = partial(pgs.walks.PinSAGE, 3, 0.4, 9, 5, metapath=path, seed=4)
    seeds = {"user": np.arange(0, 900, 11)}
    users = partial(Sampled, graph="several types", seeds=seeds, forms=())
    yield users("pinsage of users", of_users)
    yield users("pinsage of users weighted", partial(of_users, prob="w"))
    around = partial(pgs.walks.RestartNeighbors, None, {"user": 3, "item": 4}, collect=20, seed=4)
    yield Sampled(
        "restart neighbors",
        around,
        ("torch",),
        graph="several types",
        seeds={"item": SEEDS_BY_TYPE["item"]},
        forms=(),
    )


def of_research(name: str, *args: Any, **options: Any) -> Any:
    """Returns a sampler of ``pygsampler.research``, which may be missing."""
    return getattr(pgs.research, name)(*args, **options)


def steps() -> Iterator[Case]:
    hops = partial(of_research, "KHop", [5, 4], seed=2)
    layers = partial(of_research, "LayerSample", [40, 30], seed=2)
    makers: dict[str, Callable[[], Any]] = {
        "khop": hops,
        "khop edges": partial(hops, edge_ids=True),
        "khop unique": partial(hops, unique=True),
        "khop unique edges": partial(hops, unique=True, edge_ids=True),
        "khop transit": partial(hops, unique="transit"),
        "layers": layers,
        "layers edges": partial(layers, edge_ids=True),
        "layers unique": partial(layers, unique=True),
        "layers unique edges": partial(layers, unique=True, edge_ids=True),
    }
    of_steps = partial(Sampled, needs=RESEARCH, forms=TABLES)
    for name, sampler in makers.items():
        yield of_steps(name, sampler)
    yield of_steps("khop by transit", partial(hops, execution="transit"), like="khop")
    yield of_steps("khop int32", hops, bits=32)


# ---- programs --------------------------------------------------------------------------------

EMULATED = (
    "labor",
    "labor weighted importance",
    "labor exact",
    "ladies weighted",
    "fastgcn",
    "pass",
)
EMULATED += ("exp3m", "shadow weighted", "saint edges", "saint walks", "cluster subgraph", "vrgcn")
# Programs of pygsampler.research, by name.
LOCALITY: dict[str, tuple[str, dict[str, Any]]] = {
    "locality": ("locality", {"fanouts": [4, 3]}),
    "locality hard": ("locality", {"fanouts": [4, 3], "hard": True}),
    "locality layers": ("locality_importance", {"nodes": [64, 32]}),
    "layers by degree": ("locality_layers", {"nodes": [64, 32]}),
    "layers by degree, weighted": (
        "locality_layers",
        {"nodes": [64, 32], "reuse": 0.25, "weight": "w"},
    ),
    "locality saint": ("locality_saint", {"budget": 200}),
}


def _items(A: Any, seeds: Any) -> Any:
    return [A[RELATIONS[1]][:, seeds].individual_sample(3)]


def _papers(A: Any, seeds: Any) -> Any:
    outer = A[ONE_TYPE][:, seeds].individual_sample(3)
    return [A[ONE_TYPE][:, seeds | outer.row()].individual_sample(2), outer]


def _of_class(form: type, **options: Any) -> Any:
    return pgs.program(form)(**options)


class _NextDoor:
    """GraphSAGE's sampler as a class in NextDoor's form."""

    sampling_type = "individual"

    def __init__(self, fanouts: list[int]) -> None:
        self.fanouts = fanouts

    def steps(self) -> int:
        return len(self.fanouts)

    def sample_size(self, step: int) -> int:
        return self.fanouts[step]

    def unique(self, step: int) -> bool:
        return False

    def next(self, A: Any, transits: Any, C: Any, step: int) -> Any:
        return None


class _Layers(_NextDoor):
    """The rows of a layer, drawn by the squares of their weights."""

    sampling_type = "collective"

    def unique(self, step: int) -> bool:
        return True

    def next(self, A: Any, transits: Any, C: Any, step: int) -> Any:
        return (C * C).sum(axis=1)


class _GNNSampler:
    """Hops by a bias that is computed once, as a class in GNNSampler's form."""

    hops = 2

    def init(self, A: Any, seeds: Any) -> Any:
        return A.ndata["locality"] + 1, seeds

    def execute(self, A: Any, state: Any, hop: int) -> Any:
        bias, seeds = state
        C = A[:, seeds]
        B = C.individual_sample(4, C.spread(bias, axis=1))
        return B, (bias, seeds | B.row())


class _NamedSteps:
    """A layer of rows in the named steps of GNNSampler's Algorithm 2."""

    layers = 2

    def construct_locality(self, adj_train: Any) -> Any:
        return adj_train.ndata["locality"] + 1

    def get_sample_num(self) -> int:
        return 40

    def get_prob_distribution(self, L: Any) -> Any:
        return L

    def sample_node(self, G: Any, inputs: Any, n: int, P: Any) -> Any:
        C = G[:, inputs]
        return C.collective_sample(n, P[C.row()])


def programs() -> Iterator[Case]:
    features = feature_rows(NODES, 8)
    dense = {
        "W1": features[:8, :6].copy(),
        "W2": features[8:16, :6].copy(),
        "W3": np.array([0.5, 0.25, 0.125], dtype=np.float32),
    }
    listed: dict[str, tuple[Any, dict[str, Any]]] = {
        "graphsage": (samplers.graphsage, {"fanouts": [5, 4]}),
        "graphsage replace": (samplers.graphsage, {"fanouts": [5, 4], "replace": True}),
        "vrgcn": (samplers.vrgcn, {"fanouts": [3, 2]}),
        "ladies": (samplers.ladies, {"nodes": [64, 32]}),
        "ladies weighted": (samplers.ladies, {"nodes": [64, 32], "weight": "w"}),
        "ladies without normalizing": (samplers.ladies, {"nodes": [64, 32], "normalize": False}),
        "fastgcn": (samplers.fastgcn, {"nodes": [64, 32]}),
        "fastgcn weighted": (samplers.fastgcn, {"nodes": [64, 32], "weight": "w"}),
        "asgcn": (samplers.asgcn, {"nodes": [50, 30]}),
        "asgcn weighted": (samplers.asgcn, {"nodes": [50, 30], "weight": "w"}),
        "pass": (samplers.learned.pass_sampler, {"fanouts": [4, 3], **dense}),
        "kgcn": (samplers.kgcn, {"fanouts": [4, 3]}),
        "exp3": (samplers.learned.exp3, {"fanouts": [4, 3], "eta": 0.4}),
        "exp3m": (samplers.learned.exp3m, {"fanouts": [4, 3], "eta": 0.4}),
        "shadow": (samplers.shadow, {"fanouts": [4, 3]}),
        "shadow replace": (samplers.shadow, {"fanouts": [4, 3], "replace": True}),
        "shadow weighted": (samplers.shadow, {"fanouts": [4, 3], "prob": "w"}),
        "saint nodes": (samplers.saint_node, {"budget": 200}),
        "saint nodes by in-degree": (samplers.saint_node, {"budget": 200, "by": "in_degree"}),
        "saint edges": (samplers.saint_edge, {"budget": 200}),
        "saint edges independent": (
            samplers.saint_edge,
            {"budget": 200, "method": "independent"},
        ),
        "saint walks": (samplers.saint_walk, {"roots": 40, "length": 3}),
        "cluster subgraph": (samplers.cluster_gcn, {}),
        "mvs": (samplers.mvs, {"size": 60, "fanouts": [4]}),
    }
    for name, (program, options) in listed.items():
        make = partial(program, seed=5, **options)
        yield Sampled(name, make, graph="scored", emulated=name in EMULATED)
    apart = partial(Sampled, graph="scored", emulated=False)
    for name, (program_name, options) in LOCALITY.items():
        make = partial(of_research, program_name, seed=5, **options)
        yield apart(name, make, RESEARCH)
    for name in ("ladies", "kgcn", "shadow", "saint walks"):
        program, options = listed[name]
        yield apart(f"{name} int32", partial(program, seed=5, **options), bits=32)
    seal = partial(samplers.seal, seed=5)
    yield Sampled("seal", partial(seal, fanouts=[6, 5]), seeds=np.array([3, 8]))
    capped = partial(seal, fanouts=[-1], max_nodes_per_hop=40)
    yield apart("seal capped", capped, seeds=np.array([8, 7]))
    yield apart("kgcn static", partial(samplers.kgcn_static, fanout=4, hops=2, seed=5))
    for method in ("exp3", "exp3m"):
        yield apart(f"bandit {method}", partial(_bandit, method))
    for name, form in (("class in NextDoor's form", _NextDoor), ("class of layers", _Layers)):
        make = partial(_of_class, form, fanouts=[6, 5], weight="w", seed=5)
        yield apart(name, make, RESEARCH)
    yield apart("class in GNNSampler's form", partial(_of_class, _GNNSampler, seed=5), RESEARCH)
    yield apart("class in GNNSampler's steps", partial(_of_class, _NamedSteps, seed=5), RESEARCH)
    items = partial(pgs.program(_items), seed=5)
    relation = SampledOverRelations
    users = {"user": np.arange(0, 900, 19)}
    yield relation("program of a relation", items, graph="several types", seeds=users)
    papers = partial(pgs.program(_papers), seed=5)
    yield relation("program of one type", papers, graph="one type", seeds={"paper": SEEDS})
    rooted = partial(Sampled, needs=("torch",), seeds=SEEDS[:20], forms=())
    yield rooted("shadow disjoint", partial(samplers.shadow_disjoint, fanouts=[3, 2], seed=5))
    yield rooted("shadow by pagerank", partial(samplers.ppr_shadow, k=12, seed=5))


def _bandit(method: str) -> Any:
    return samplers.learned.gcn_bs(graph("scored"), fanouts=[4, 3], method=method, seed=5)


def sampled() -> list[Case]:
    """Returns the cases of this file."""
    families = (neighbors, temporal, hgt, labor, contexts, walks, steps, programs)
    return [case for family in families for case in family()]
