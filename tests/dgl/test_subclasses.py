"""Subclasses of our samplers, as programs write them of DGL's: each pattern is a public one."""

from __future__ import annotations

import pickle
from typing import Any

import dgl
import pytest
import torch

from pygsampler.dgl import (
    ClusterGCNSampler,
    LaborSampler,
    MultiLayerFullNeighborSampler,
    NeighborSampler,
    PinSAGESampler,
    RandomWalkNeighborSampler,
    SAINTSampler,
    ShaDowKHopSampler,
)
from tests.dgl.graphs import check_blocks, content, random_graph

pytestmark = pytest.mark.filterwarnings("ignore:Dataloader CPU affinity")

SEEDS = torch.arange(60)


def masked_graph() -> Any:
    g = random_graph()
    g.edata["m"] = torch.arange(g.num_edges()) % 3 == 0
    return g


def edges_of(blocks: list[Any]) -> torch.Tensor:
    return torch.cat([block.edata[dgl.EID] for block in blocks])


def sampled_by_dgl(sampler: Any, g: Any, seeds: Any, exclude_eids: Any = None) -> Any:
    """The loop of DGL's ``sample_blocks``, as subclasses write it anew by the attributes."""
    outputs, blocks = seeds, []
    for fanout in reversed(sampler.fanouts):
        frontier = g.sample_neighbors(
            seeds,
            fanout,
            edge_dir=sampler.edge_dir,
            prob=sampler.prob,
            replace=sampler.replace,
            output_device=sampler.output_device,
            exclude_edges=exclude_eids,
        )
        block = dgl.to_block(frontier, seeds)
        block.edata[dgl.EID] = frontier.edata[dgl.EID]
        seeds = block.srcdata[dgl.NID]
        blocks.insert(0, block)
    return seeds, outputs, blocks


class OwnLoop(NeighborSampler):
    def sample_blocks(self, g: Any, seed_nodes: Any, exclude_eids: Any = None) -> Any:
        return sampled_by_dgl(self, g, seed_nodes, exclude_eids)


def test_a_loop_of_its_own_samples_inside_the_mask() -> None:
    g = masked_graph()
    for sampler in (OwnLoop([5, 5], mask="m"), NeighborSampler([5, 5], mask="m")):
        edges = edges_of(sampler.sample(g, SEEDS)[2])
        assert len(edges) > 100 and bool(g.edata["m"][edges].all())
    sampler = OwnLoop([5, 5], mask="m")
    sampler.mask = None
    assert not bool(g.edata["m"][edges_of(sampler.sample(g, SEEDS)[2])].all())
    predicting = dgl.dataloading.as_edge_prediction_sampler(OwnLoop([4], mask="m"), exclude="self")
    _, pairs, blocks = predicting.sample(g, torch.arange(30))
    assert bool(g.edata["m"][edges_of(blocks)].all())
    assert not set(edges_of(blocks).tolist()) & set(pairs.edata[dgl.EID].tolist())


class FilteredAfterwards(NeighborSampler):
    """GraphStorm's: a mask of its own, assigned first, and applied to what was sampled."""

    def __init__(self, fanouts: Any, mask: Any = None, **options: Any) -> None:
        self.mask = mask
        super().__init__(fanouts=fanouts, mask=None, **options)

    def sample_blocks(self, g: Any, seed_nodes: Any, exclude_eids: Any = None) -> Any:
        seeds, outputs, blocks = seed_nodes, seed_nodes, []
        for fanout in reversed(self.fanouts):
            frontier = g.sample_neighbors(seeds, fanout, prob=self.prob, exclude_edges=exclude_eids)
            edges = frontier.edata[dgl.EID]
            assert self.mask == "m"
            kept = g.edata[self.mask][edges]
            block = dgl.to_block(frontier.edge_subgraph(kept, relabel_nodes=False), seeds)
            block.edata[dgl.EID] = edges[kept]
            seeds = block.srcdata[dgl.NID]
            blocks.insert(0, block)
        return seeds, outputs, blocks


def test_a_mask_of_the_subclass_stays_its_own() -> None:
    g = masked_graph()
    sampler = FilteredAfterwards([5, 5], mask="m")
    assert (sampler.mask, sampler.prob) == ("m", None)
    blocks = sampler.sample(g, SEEDS)[2]
    edges = edges_of(blocks)
    assert len(edges) and bool(g.edata["m"][edges].all())
    # A third of five edges stays; a mask that the sampler draws by would fill the rows.
    assert blocks[-1].in_degrees().float().mean() < 3
    sampler.mask = "other"
    assert (sampler.mask, sampler.prob) == ("other", None)
    again = pickle.loads(pickle.dumps(FilteredAfterwards([5, 5], mask="m")))
    assert (again.mask, again.fanouts) == ("m", [5, 5])


@pytest.mark.parametrize("kind", [NeighborSampler, LaborSampler, ShaDowKHopSampler])
def test_options_may_be_assigned_before_init_which_assigns_them_anew(kind: Any) -> None:
    class Early(kind):  # type: ignore[misc]
        def __init__(self) -> None:
            self.fanouts, self.prob, self.edge_dir = [7, 7, 7], "none", "out"
            self.prefetch_node_feats, self.output_device = ["none"], "none"
            self.seed, self.edge_weights, self.batch_dependency = "mine", "mine", "mine"
            super().__init__([3, 2], prob="weight")

    g, sampler = random_graph(), Early()
    plain = kind([3, 2], prob="weight", seed=4)
    assert (sampler.fanouts, sampler.prob) == ([3, 2], "weight")
    assert (sampler.seed, sampler.output_device) == ("mine", None)
    # Attributes that DGL's class does not have are the subclass's.
    assert (sampler.edge_weights, sampler.batch_dependency) == ("mine", "mine")
    sampler.set_seed(4)
    assert sampler.seed == "mine"
    for each in (sampler, plain):
        each.set_epoch(0)
    got, wanted = sampler.sample(g, SEEDS), plain.sample(g, SEEDS)
    assert got[0].equal(wanted[0])


def test_a_seed_of_the_subclass_may_be_assigned_later() -> None:
    class Seeded(NeighborSampler):
        def __init__(self, seed: Any) -> None:
            super().__init__([3], seed=1)
            self.seed = seed

    sampler = Seeded(None)
    assert sampler.seed is None
    sampler.set_epoch(0)
    plain = NeighborSampler([3], seed=1)
    plain.set_epoch(0)
    g = random_graph()
    assert content(sampler.sample(g, SEEDS)) == content(plain.sample(g, SEEDS))


class WithoutHops(NeighborSampler):
    """Samplers of one layer pass 0 for the fanouts, and sample by themselves."""

    def __init__(self, **options: Any) -> None:
        super().__init__(0, **options)  # type: ignore[arg-type]

    def sample(self, g: Any, seed_nodes: Any, exclude_eids: Any = None) -> Any:
        frontier = g.sample_neighbors(
            seed_nodes, -1, edge_dir=self.edge_dir, prob=self.prob, replace=self.replace
        )
        return seed_nodes, seed_nodes, [dgl.to_block(frontier, seed_nodes)]


def test_arguments_of_a_subclass_that_samples_itself_are_its_own() -> None:
    g = random_graph()
    sampler = WithoutHops(output_device="cpu")
    assert (sampler.fanouts, sampler.output_device) == (0, "cpu")
    assert sampler.sample(g, SEEDS)[2][0].num_dst_nodes() == 60
    pairs = dgl.dataloading.as_edge_prediction_sampler(sampler).sample(g, torch.arange(8))[1]
    assert pairs.num_edges() == 8
    # An assignment is not checked, as in DGL's class; our method raises when it reads the value.
    sampler.fanouts = "many"
    with pytest.raises(TypeError, match="fanouts"):
        sampler.sample_blocks(g, SEEDS)

    class Shifted(OwnLoop):
        def __init__(self, fanouts: Any, replace: bool = False, return_eids: bool = False) -> None:
            super().__init__(fanouts, replace, return_eids)  # type: ignore[arg-type]

    assert (Shifted([2]).edge_dir, Shifted([2]).prob) == (False, None)


def test_who_passes_seeds_on_gets_our_samples() -> None:
    class Distinct(NeighborSampler):
        def sample_blocks(self, g: Any, seed_nodes: Any, exclude_eids: Any = None) -> Any:
            return super().sample_blocks(g, seed_nodes.unique(), exclude_eids)

    class Whole(MultiLayerFullNeighborSampler):
        def __init__(self, layers: int) -> None:
            self.num_layers = layers
            super().__init__(layers)

    g = random_graph()
    seeds = torch.tensor([4, 4, 2])
    check_blocks(g, [3, 2], torch.tensor([2, 4]), Distinct([3, 2]).sample(g, seeds))
    check_blocks(g, [-1, -1], SEEDS, Whole(2).sample(g, SEEDS))
    loader = dgl.dataloading.DataLoader(g, SEEDS, Distinct([3]), batch_size=20, num_workers=1)
    assert len(list(loader)) == 3


def test_one_relation_of_another_graph() -> None:
    """A review sampler: seeds of another type's ids, and a block of one relation."""
    reviews = dgl.heterograph(
        {("review", "part_of", "node"): (torch.arange(40), torch.arange(40) % 10)}
    )

    class Reviews(NeighborSampler):
        def sample(self, g: Any, seed_nodes: Any, exclude_eids: Any = None) -> Any:
            nodes, outputs, blocks = super().sample(reviews, {"node": seed_nodes}, exclude_eids)
            return nodes, outputs, [blocks[0]["part_of"]]

    _, outputs, (block,) = Reviews([2]).sample(random_graph(), torch.tensor([3, 7]))
    assert outputs["node"].tolist() == [3, 7]
    assert block.in_degrees().tolist() == [2, 2]


def test_other_samplers_take_methods_and_attributes_of_subclasses() -> None:
    g = masked_graph()

    class Numbers(LaborSampler):
        def __init__(self) -> None:
            self.calls = 0
            super().__init__([3, 3])

        def sample_blocks(self, g: Any, seed_nodes: Any, exclude_eids: Any = None) -> Any:
            self.calls += 1
            return dgl_labor.sample_blocks(self, g, seed_nodes, exclude_eids)

    dgl_labor = dgl.dataloading.labor_sampler.LaborSampler
    sampler = Numbers()
    found = [tuple(edges_of(sampler.sample(g, SEEDS)[2]).tolist()) for _ in range(3)]
    assert len(set(found)) == 3 and sampler.calls == 3

    class First(SAINTSampler):
        def node_sampler(self, g: Any) -> torch.Tensor:
            assert super().node_sampler(g).unique().numel() <= 20
            return torch.arange(self.budget, dtype=g.idtype)

    sampler = First("node", 20, prefetch_ndata=["feat"])
    assert sampler.sample(g, torch.tensor([0])).ndata[dgl.NID].tolist() == [*range(20)]
    plain = SAINTSampler("walk", (4, 2))
    assert plain.sampler.__name__ == "walk_sampler" and plain.sampler(g).numel() >= 1
    plain.sampler = lambda g: torch.tensor([5, 2])
    assert plain.sample(g, torch.tensor([0])).ndata[dgl.NID].tolist() == [5, 2]

    class Around(ShaDowKHopSampler):
        def __init__(self) -> None:
            self.prob = "weight"
            super().__init__([2], prob=None)

    assert Around().prob is None
    assert Around().sample(g, SEEDS)[2].num_nodes() > 60

    class Parts(ClusterGCNSampler):
        def __init__(self, g: Any) -> None:
            self.seed = self.mode = 3
            super().__init__(g, 2, None)

    assert Parts(g).sample(g, torch.tensor([0, 1])).num_nodes() == 500

    class Walks(RandomWalkNeighborSampler):
        def __init__(self, g: Any) -> None:
            self.seed = None
            super().__init__(g, 2, 0.5, 5, 3, metapath=[g.etypes[0]], weight_column="n")

    assert Walks(g)(SEEDS).edata["n"].max() <= 10
    assert issubclass(PinSAGESampler, RandomWalkNeighborSampler)
