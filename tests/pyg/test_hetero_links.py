"""``pyg.LinkNeighborLoader`` and ``pyg.PGSampler`` on links of graphs with types."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pyg_reference import random_data
from torch_geometric.data import HeteroData
from torch_geometric.loader import LinkLoader
from torch_geometric.sampler import EdgeSamplerInput, NegativeSampling

from pygsampler.pyg import HGTLoader, LinkNeighborLoader, NeighborLoader, PGSampler

CITES, WRITES = ("paper", "cites", "paper"), ("author", "writes", "paper")
# Of no edges of the data: what is to be predicted.
READS = ("paper", "reads", "author")
NODES = {"paper": 60, "author": 40}


def typed_data() -> Any:
    random = torch.Generator().manual_seed(0)
    data = HeteroData()
    for kind, count in NODES.items():
        data[kind].x = torch.arange(count).float().view(-1, 1)
    for kind, count in {CITES: 300, WRITES: 150}.items():
        ends = [torch.randint(0, NODES[of], (count,), generator=random) for of in kind[::2]]
        data[kind].edge_index = torch.stack(ends)
    return data


def links(kind: Any, count: int = 50) -> torch.Tensor:
    random = torch.Generator().manual_seed(1)
    ends = [torch.randint(0, NODES[of], (count,), generator=random) for of in kind[::2]]
    return torch.stack(ends)


def loader(kind: Any, **options: Any) -> LinkNeighborLoader:
    given = {"edge_label_index": (kind, links(kind)), "batch_size": 20, "seed": 2, **options}
    return LinkNeighborLoader(typed_data(), [3, 2], **given)


def edges_are_the_datas(batch: Any) -> bool:
    """And nothing between trees."""
    data = typed_data()
    for kind in (CITES, WRITES):
        row, col = batch[kind].edge_index
        ends = torch.stack([batch[kind[0]].n_id[row], batch[kind[2]].n_id[col]])
        assert ends.equal(data[kind].edge_index[:, batch[kind].e_id])
        if "batch" in batch["paper"]:
            assert batch[kind[0]].batch[row].equal(batch[kind[2]].batch[col])
    return sum(batch[kind].num_edges for kind in (CITES, WRITES)) > 20


@pytest.mark.parametrize("kind", [CITES, WRITES, READS])
@pytest.mark.parametrize("disjoint", [False, True])
@pytest.mark.parametrize("amount", [0, 1, 2])
def test_pairs(kind: Any, disjoint: bool, amount: int) -> None:
    src, _, dst = kind
    options = {"neg_sampling": NegativeSampling("binary", amount)} if amount else {}
    places = []
    for batch in loader(kind, disjoint=disjoint, **options):
        assert edges_are_the_datas(batch)
        label = batch[kind].edge_label_index
        count = len(batch[kind].input_id)
        assert label.shape == (2, count * (1 + amount))
        ends = torch.stack([batch[src].n_id[label[0]], batch[dst].n_id[label[1]]])
        assert ends[:, :count].equal(links(kind)[:, batch[kind].input_id])
        if amount:
            assert batch[kind].edge_label.tolist() == [1] * count + [0] * count * amount
        if disjoint:
            for of, row in zip((src, dst), label, strict=True):
                subgraph_ids = batch[of].batch[row]
                assert subgraph_ids.equal(torch.arange(count).repeat(1 + amount))
        else:
            assert all(len(batch[of].n_id.unique()) == batch[of].num_nodes for of in (src, dst))
        places += batch[kind].input_id.tolist()
    assert places == list(range(50))


@pytest.mark.parametrize("kind", [CITES, WRITES, READS])
@pytest.mark.parametrize("disjoint", [False, True])
def test_triplets(kind: Any, disjoint: bool) -> None:
    src, _, dst = kind
    for batch in loader(kind, disjoint=disjoint, neg_sampling=NegativeSampling("triplet", 3)):
        assert edges_are_the_datas(batch)
        wanted = links(kind)[:, batch[kind].input_id if "input_id" in batch[kind] else slice(0)]
        of_src, of_dst = batch[src], batch[dst]
        count = len(of_src.src_index)
        assert of_src.n_id[of_src.src_index].equal(wanted[0])
        assert of_dst.n_id[of_dst.dst_pos_index].equal(wanted[1])
        assert of_dst.dst_neg_index.shape == (count, 3)


def test_a_type_gives_its_own_edges() -> None:
    (batch,) = LinkNeighborLoader(typed_data(), [-1], WRITES, batch_size=150)
    row, col = batch[WRITES].edge_label_index
    ends = torch.stack([batch["author"].n_id[row], batch["paper"].n_id[col]])
    assert ends.equal(typed_data()[WRITES].edge_index)


def test_samples_follow_from_seed_epoch_links_and_type() -> None:
    before = torch.get_rng_state()
    ids = torch.arange(30)

    def drawn(seed: int = 1, epoch: int = 0, kind: Any = CITES) -> Any:
        sampler = PGSampler(typed_data(), [2], seed=seed)
        sampler.set_epoch(epoch)
        inputs = EdgeSamplerInput(None, ids, ids, input_type=kind)
        out = sampler.sample_from_edges(inputs, neg_sampling=NegativeSampling("binary", 1))
        return out.node["paper"].tolist()

    same = drawn()
    assert same == drawn()
    others = drawn(seed=2), drawn(epoch=1), drawn(kind=("paper", "other", "paper"))
    assert same not in others
    assert before.equal(torch.get_rng_state())


def test_loader_of_pyg_takes_the_sampler() -> None:
    data = typed_data()
    sampler = PGSampler(data, [2], seed=1)
    batches = LinkLoader(data, sampler, (READS, links(READS)), batch_size=50)
    (batch,) = batches
    label = batch[READS].edge_label_index
    assert batch["paper"].n_id[label[0]].equal(links(READS)[0])


def test_law_of_negatives() -> None:
    """Each end is any node of its own type."""
    counts = {of: torch.zeros(n) for of, n in NODES.items()}
    made = loader(WRITES, neg_sampling=NegativeSampling("binary", 4))
    for _ in range(20):
        for batch in made:
            label = batch[WRITES].edge_label_index[:, len(batch[WRITES].input_id) :]
            for of, row in zip(("author", "paper"), label, strict=True):
                counts[of] += torch.bincount(batch[of].n_id[row], minlength=NODES[of])
    for of, found in counts.items():
        mean = 4000 / NODES[of]
        # Five standard deviations above what a chi-square of so many degrees of freedom is.
        free = NODES[of] - 1
        assert abs(float(((found - mean) ** 2 / mean).sum()) - free) < 5 * (2 * free) ** 0.5


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"edge_label_index": None}, TypeError, "edge_label_index: expected a type of edges"),
        ({"edge_label_index": links(CITES)}, TypeError, "edge_label_index: expected a type"),
        ({"edge_label_index": ("paper", "of", "place")}, ValueError, "edge_label_index: .*'place'"),
        ({"edge_label_index": READS}, ValueError, "edge_label_index: .* edges of data .*'reads'"),
        ({"edge_label_index": (CITES, links(CITES)[0])}, ValueError, r"shape \[2, E\], got shape"),
        (
            {"edge_label_index": (WRITES, torch.tensor([[40], [0]]))},
            IndexError,
            r"edge_label_index\[0\]",
        ),
        ({"edge_label_time": torch.arange(50)}, ValueError, "edge_label_time"),
        ({"features": {"x": torch.ones(3)}}, TypeError, r"features\['x'\]: expected a mapping of"),
        ({"edge_index": "csr"}, ValueError, "edge_index: expected 'coo' or 'edge_index'"),
        (
            {"neighbor_sampler": PGSampler(random_data(), [2]), "seed": None},
            NotImplementedError,
            "data: .* HeteroData",
        ),
    ],
)
def test_mistakes(options: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        loader(WRITES, **options)


def test_mistakes_of_data() -> None:
    sampler = PGSampler(typed_data(), [2])
    with pytest.raises(TypeError, match=r"neighbor_sampler: .* got a PGSampler of heterogeneous"):
        LinkNeighborLoader(random_data(), [2], neighbor_sampler=sampler)
    with pytest.raises(ValueError, match="data: expected a HeteroData with types of nodes"):
        PGSampler(HeteroData(), [2])


def test_mistakes_of_inputs() -> None:
    sampler, ids = PGSampler(typed_data(), [2]), torch.tensor([1])
    with pytest.raises(ValueError, match=r"input_type: .* got None"):
        sampler.sample_from_edges(EdgeSamplerInput(None, ids, ids))
    with pytest.raises(IndexError, match=r"edge_label_index\[1\]"):
        sampler.sample_from_edges(EdgeSamplerInput(None, ids, ids * 60, input_type=CITES))
    with pytest.raises(ValueError, match="edge_label_time: expected None without time_attr"):
        sampler.sample_from_edges(EdgeSamplerInput(None, ids, ids, time=ids, input_type=CITES))


def test_data_without_types_of_edges() -> None:
    """As PyG's: links are all that there is, and seeds have no neighbours."""
    data = HeteroData()
    data["paper"].x = torch.arange(30).float()[:, None]
    data["author"].num_nodes = 5
    ends = torch.randint(0, 30, (2, 40), generator=torch.Generator().manual_seed(0))
    links = LinkNeighborLoader(data, [], (("paper", "paper"), ends), batch_size=20)
    for batch in links:
        label_index = batch["paper", "paper"].edge_label_index
        assert label_index.shape == (2, 20)
        assert batch["paper"].num_nodes == label_index.unique().numel()
        assert batch["paper"].x.flatten().equal(batch["paper"].n_id.float())
    for counts in ([], [3, 2], {}):
        nodes = NeighborLoader(data, counts, ("paper", torch.tensor([3, 9])), batch_size=2)
        (batch,) = nodes
        assert batch["paper"].n_id.tolist() == [3, 9] and batch["author"].n_id.numel() == 0
    with pytest.raises(ValueError, match=r"num_neighbors: expected types of .*; there are none"):
        NeighborLoader(data, {("paper", "to", "paper"): [1]}, "paper")
    with pytest.raises(ValueError, match="data: expected a HeteroData with types of edges, got"):
        HGTLoader(data, [4], "paper")
