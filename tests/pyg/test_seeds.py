"""A chosen seed alone decides what a loader gives, in every process and for any workers."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from pyg_reference import content, random_data
from torch.utils.data import RandomSampler
from torch_geometric.data import Data, HeteroData
from torch_geometric.sampler import NodeSamplerInput

from pygsampler.pyg import (
    GraphSAINTEdgeSampler,
    GraphSAINTNodeSampler,
    GraphSAINTRandomWalkSampler,
    HGTLoader,
    LinkNeighborLoader,
    MetaPath2Vec,
    NeighborLoader,
    Node2Vec,
    PGSampler,
    Sampler,
    ShaDowKHopSampler,
)
from pygsampler.pyg import loader as older
from pygsampler.samplers.neighbor import PGSampler as Core

pytestmark = pytest.mark.filterwarnings(
    "ignore:This process .* is multi-threaded:DeprecationWarning",
    "ignore::FutureWarning",
)
TYPE = "paper", "cites", "paper"


def typed_data() -> Any:
    data, random = HeteroData(), torch.Generator().manual_seed(0)
    data["paper"].x = torch.arange(60)
    data[TYPE].edge_index = torch.randint(60, (2, 600), generator=random)
    return data


def walks(kind: Any, **options: Any) -> Any:
    edges = random_data().edge_index
    if kind is Node2Vec:
        model = Node2Vec(edges, 4, 4, 3, seed=options.pop("seed"))
    else:
        counts = {"v": int(edges.max()) + 1}
        model = MetaPath2Vec(
            {("v", "to", "v"): edges}, 4, [("v", "to", "v")], 3, 3,
            num_nodes_dict=counts, seed=options.pop("seed"),
        )  # fmt: skip
    return model.loader(batch_size=40, shuffle=True, **options)


SHUFFLED = {"batch_size": 20, "shuffle": True}
LOADERS: dict[str, Callable[..., Any]] = {
    "neighbor": lambda **more: NeighborLoader(random_data(), [3, 2], **SHUFFLED, **more),
    "typed": lambda **more: NeighborLoader(typed_data(), [3, 2], "paper", **SHUFFLED, **more),
    "labor": lambda **more: NeighborLoader(
        random_data(), [3, 2], labor="poisson", **SHUFFLED, **more
    ),
    "link": lambda **more: LinkNeighborLoader(
        random_data(), [3, 2], neg_sampling="binary", batch_size=150, shuffle=True, **more
    ),
    "hgt": lambda **more: HGTLoader(typed_data(), [5, 5], "paper", **SHUFFLED, **more),
    "shadow": lambda **more: ShaDowKHopSampler(random_data(), 2, 3, **SHUFFLED, **more),
    "saint_node": lambda **more: GraphSAINTNodeSampler(random_data(), 30, num_steps=4, **more),
    "saint_edge": lambda **more: GraphSAINTEdgeSampler(
        random_data(), 30, num_steps=4, shuffle=True, **more
    ),
    "saint_walk": lambda **more: GraphSAINTRandomWalkSampler(
        random_data(), 20, 2, num_steps=4, sample_coverage=2, **more
    ),
    "node2vec": lambda **more: walks(Node2Vec, **more),
    "metapath2vec": lambda **more: walks(MetaPath2Vec, **more),
    "older": lambda **more: older.NeighborSampler(
        random_data().edge_index, [3, 2], **SHUFFLED, **more
    ),
}


def listed(batch: Any) -> Any:
    if isinstance(batch, torch.Tensor):
        return batch.tolist()
    if hasattr(batch, "to_dict"):
        return listed(batch.to_dict())
    if isinstance(batch, dict):
        return {str(key): listed(value) for key, value in batch.items()}
    return [listed(each) for each in batch] if isinstance(batch, (list, tuple)) else batch


def passes(name: str, seed: int | None, workers: int = 0, manual: int = 0) -> list[Any]:
    """Two passes over a loader, whatever torch's generator has."""
    torch.manual_seed(manual)
    loader = LOADERS[name](seed=seed, num_workers=workers)
    return [[listed(batch) for batch in loader] for _ in range(2)]


SCRIPT = """
    import json, sys, warnings
    warnings.simplefilter("ignore")
    sys.path += sys.argv[1:3]
    from test_seeds import LOADERS, passes
    print(json.dumps({name: passes(name, 1, manual=int(sys.argv[3])) for name in LOADERS}))
"""


def test_two_processes_give_the_same_passes() -> None:
    folder = Path(__file__).parent
    paths = str(folder), str(folder.parent / "support")
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT), *paths]
    processes = [
        subprocess.Popen([*command, manual], stdout=subprocess.PIPE, text=True)
        for manual in ("1", "2")
    ]
    one, other = (json.loads(process.communicate()[0]) for process in processes)
    assert one.keys() == LOADERS.keys()
    for name, made in one.items():
        assert made == other[name], name
        first, second = made
        assert first != second, name
        assert made == json.loads(json.dumps(passes(name, 1))), name


@pytest.mark.parametrize("name", [*LOADERS])
def test_another_seed_gives_other_passes(name: str) -> None:
    assert passes(name, 1) != passes(name, 2)


@pytest.mark.parametrize("name", ["neighbor", "link", "hgt", "shadow", "node2vec"])
def test_workers_change_nothing(name: str) -> None:
    assert passes(name, 1, workers=2, manual=5) == passes(name, 1)


@pytest.mark.parametrize("name", [*LOADERS])
def test_without_a_seed_torchs_generator_decides(name: str) -> None:
    assert passes(name, None, manual=3) == passes(name, None, manual=3)
    assert passes(name, None, manual=3) != passes(name, None, manual=4)


def test_without_a_seed_the_order_is_torchs() -> None:
    """The order of torch's own sampler of seeds, number for number."""
    torch.manual_seed(8)
    found = [i for batch in LOADERS["neighbor"](seed=None) for i in batch.input_id.tolist()]
    torch.manual_seed(8)
    # Torch's loader draws a number for its workers first.
    torch.empty((), dtype=torch.int64).random_()
    assert found == list(RandomSampler(range(len(found))))


@pytest.mark.parametrize("persistent", [False, True])
def test_workers_that_live_on_count_passes(persistent: bool) -> None:
    expected = LOADERS["neighbor"](seed=1)
    loader = LOADERS["neighbor"](seed=1, num_workers=2, persistent_workers=persistent)
    for _ in range(2):
        for _ in range(2):
            assert [*map(content, loader)] == [*map(content, expected)]
        for each in (loader, expected):
            each.set_seed(5)
    loader._iterator = None


def test_setting_the_seed_again_repeats_the_passes() -> None:
    loader = LOADERS["neighbor"](seed=None)
    epochs = []
    for _ in range(2):
        loader.set_seed(4)
        epochs.append([[*map(content, loader)] for _ in range(2)])
    fresh = LOADERS["neighbor"](seed=4)
    assert epochs[0] == epochs[1] == [[*map(content, fresh)] for _ in range(2)]


def test_an_epoch_that_is_set_decides_order_and_samples() -> None:
    def epoch(number: int) -> Any:
        loader = LOADERS["neighbor"](seed=1)
        loader.set_epoch(number)
        return [*map(content, loader)]

    assert epoch(3) == epoch(3) != epoch(4)
    assert [each["input_id"] for each in epoch(3)] != [each["input_id"] for each in epoch(4)]


def test_a_generator_of_the_users_decides_the_order() -> None:
    def order(number: int) -> list[int]:
        generator = torch.Generator().manual_seed(number)
        loader = LOADERS["neighbor"](seed=1, generator=generator)
        return [i for batch in loader for i in batch.input_id.tolist()]

    assert order(1) == order(1) != order(2)


def test_a_sampler_with_a_chosen_seed_repeats_in_our_loaders() -> None:
    """Also one of the core's; calls of the sampler itself are counted as before."""

    def found(manual: int, make: Any) -> Any:
        torch.manual_seed(manual)
        data = random_data()
        loader = NeighborLoader(data, [], neighbor_sampler=make(data), **SHUFFLED)
        return [[*map(content, loader)] for _ in range(2)]

    for make in (
        lambda data: PGSampler(data, [3, 2], seed=1),
        lambda data: Sampler(data, Core([2, 3], frontier="new", seed=1)),
    ):
        assert found(1, make) == found(2, make)
    assert found(1, lambda data: PGSampler(data, [3])) != found(
        2, lambda data: PGSampler(data, [3])
    )
    drawn = Sampler(random_data(), Core([2, 3], frontier="new"))
    assert not drawn._identity.chosen


def test_a_pickled_sampler_goes_on_with_its_passes() -> None:
    loader = LOADERS["neighbor"](seed=1)
    list(loader)
    sampler = pickle.loads(pickle.dumps(loader.node_sampler))
    other = NeighborLoader(random_data(), [], neighbor_sampler=sampler, **SHUFFLED)
    assert [*map(content, other)] == [*map(content, loader)]
    seeds = NodeSamplerInput(None, torch.arange(5))
    one, two = (PGSampler(random_data(), [4], seed=1).sample_from_nodes(seeds) for _ in range(2))
    assert one.node.tolist() == two.node.tolist()


@pytest.mark.parametrize("of_edges", [False, True])
def test_persistent_workers_repeat_after_an_epoch_that_was_left(of_edges: bool) -> None:
    """What workers had queued of that epoch does not count in the next one."""
    edges = torch.randint(0, 100, (2, 1500), generator=torch.Generator().manual_seed(0))

    def make(**options: Any) -> Any:
        options |= {"batch_size": 5, "shuffle": True, "seed": 5}
        if of_edges:
            return older.NeighborSampler(edges, [3, 3], num_nodes=100, **options)
        return NeighborLoader(Data(edge_index=edges, num_nodes=100), [3, 3], **options)

    def ids(loader: Any) -> list[Any]:
        return [(batch[1] if of_edges else batch.n_id).tolist() for batch in loader]

    expected = make()
    ids(expected)
    left = make(num_workers=2, persistent_workers=True)
    next(iter(left))
    assert ids(left) == ids(expected)
