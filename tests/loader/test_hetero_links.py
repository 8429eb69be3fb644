"""LinkLoader over graphs with types, and negatives of one relation."""

from __future__ import annotations

import pickle
from collections import Counter
from typing import Any

import pytest
import torch
from sampler_laws import plausible

import pygsampler as pgs
from pygsampler.samplers import Temporal
from pygsampler.torch import LinkBatch, LinkLoader, NegativeSampling
from tests.support.assertions import content

WRITES = ("author", "writes", "paper")
CITES = ("paper", "cites", "paper")
WRITTEN = ("paper", "written", "author")
READS = ("author", "reads", "paper")
NODES = {"author": 90, "paper": 60}
COUNTS = {WRITES: 400, CITES: 500, WRITTEN: 400}


def coo(kinds: dict[Any, int] = COUNTS) -> dict[Any, torch.Tensor]:
    """Edges of a relation do not depend on the others; papers' are written in reverse."""
    made = {}
    for kind, n in kinds.items():
        random = torch.Generator().manual_seed(len(kind[1]))
        ends = [torch.randint(0, NODES[kind[end]] - 3, (n,), generator=random) for end in (0, 2)]
        made[kind] = torch.stack(ends)
    if WRITES in made and WRITTEN in made:
        made[WRITTEN] = made[WRITES].flip(0)
    return made


def make(kinds: dict[Any, int] = COUNTS) -> pgs.Graph:
    times = {kind: {"t": torch.arange(n) % 7} for kind, n in NODES.items()}
    edges: dict[Any, Any] = {kind: tuple(ends) for kind, ends in coo(kinds).items()}
    return pgs.Graph.from_coo(edges, num_nodes=NODES, node_data=times)


IDS = {WRITES: torch.arange(0, 400, 3), CITES: torch.arange(5, 500, 4)}


def loader(graph: Any, edges: Any = IDS, fanouts: Any = (4, 3), **options: Any) -> LinkLoader:
    return LinkLoader(graph, edges, fanouts, **{"batch_size": 60, "seed": 1, **options})


def ends_of(batch: LinkBatch, kind: Any, rows: torch.Tensor) -> torch.Tensor:
    nodes = batch.minibatch.output_nodes
    return torch.stack([nodes[kind[0]][rows[0]], nodes[kind[2]][rows[1]]])


@pytest.mark.parametrize("kind", ["uniform", "degree", "in_batch", "structural"])
def test_links_and_negatives(kind: str) -> None:
    """Edges of both relations in one batch, and what ``NegativeSampling.draw`` gives for each."""
    graph, edges = make(), coo()
    negatives = {WRITES: NegativeSampling(kind, 2), CITES: NegativeSampling("uniform", 3)}
    made = loader(graph, negative_sampling=negatives, shuffle=True)
    batches = list(made)
    assert len(batches) == len(made) == 5
    for of, ids in IDS.items():
        places = torch.cat([b.input_id[of] for b in batches]).tolist()
        assert sorted(places) == list(range(len(ids)))
    assert min(len(b.input_id[of]) for b in batches for of in IDS) > 0
    for number, batch in enumerate(batches):
        for nodes in batch.minibatch.output_nodes.values():
            assert nodes.tolist() == sorted(set(nodes.tolist()))
        for of, law in negatives.items():
            src, dst = edges[of][:, IDS[of][batch.input_id[of]]]
            drawn = law.draw(graph, src, dst, seed=1, epoch=0, batch=number, edge_type=of)
            links = ends_of(batch, of, batch.edge_label_index[of])
            assert links[:, : len(src)].equal(torch.stack([src, dst]))
            assert links[0, len(src) :].equal(src.repeat_interleave(law.amount))
            assert links[1, len(src) :].equal(drawn.flatten())
            assert int(batch.edge_label[of].sum()) == len(src)
        assert not batch.dst_neg_index


def test_triplets_labels_and_features() -> None:
    graph, edges = make(), coo()
    x = {"x": {kind: torch.randn(n, 3) for kind, n in NODES.items()}}
    labels = {CITES: torch.arange(len(IDS[CITES]))}
    made = loader(
        graph,
        negative_sampling={CITES: NegativeSampling(amount=2, mode="triplet")},
        labels=labels,
        features=x,
    )
    for batch in made:
        assert list(batch.edge_label_index) == [WRITES]
        assert batch.edge_label[CITES].equal(batch.input_id[CITES])
        rows = torch.stack([batch.src_index[CITES], batch.dst_pos_index[CITES]])
        assert ends_of(batch, CITES, rows).equal(edges[CITES][:, IDS[CITES][batch.input_id[CITES]]])
        assert batch.dst_neg_index[CITES].shape == (rows.shape[1], 2)
        for kind, nodes in batch.minibatch.input_nodes.items():
            assert batch.minibatch.x[kind].equal(x["x"][kind][nodes])


def test_samples_are_those_of_the_sampler() -> None:
    """The seeds as they are, the edges of the batch and their reverses left out."""
    graph = make()
    sampler = pgs.PGSampler([4, 3], seed=9)
    # As DGL's, with a type of which the loader has no edges.
    turned = {WRITES: WRITTEN, WRITTEN: WRITES, CITES: CITES}
    made = loader(graph, fanouts=sampler, exclude="reverse_types", reverse_etypes=turned)
    for number, batch in enumerate(made):
        ids = {kind: IDS[kind][batch.input_id[kind]] for kind in IDS}
        without = {**ids, WRITTEN: ids[WRITES]}
        one = sampler.sample(
            graph, batch.minibatch.output_nodes, epoch=0, batch=number, exclude=without
        )
        assert content(batch._replace(minibatch=one.torch())) == content(batch)


def test_excluded_edges() -> None:
    graph = make()
    reverse = {kind: ids.flip(0) for kind, ids in ((CITES, torch.arange(500)),)}
    of = {CITES: IDS[CITES]}
    kinds: list[dict[str, Any]] = [
        {"exclude": None},
        {},
        {"exclude": "reverse_id", "reverse_eids": reverse},
    ]
    for place, options in enumerate(kinds):
        own = turned = 0
        for batch in loader(graph, of, fanouts=[-1], **options):
            ids = of[CITES][batch.input_id[CITES]]
            sampled = batch.minibatch.blocks[0][CITES].edge_ids
            own += int(torch.isin(ids, sampled).sum())
            turned += int(torch.isin(reverse[CITES][ids], sampled).sum())
        assert (own > 0, turned > 0) == (place == 0, place < 2)


def test_options_that_change_nothing() -> None:
    graph = make()
    options = {"negative_sampling": NegativeSampling("structural"), "shuffle": True}
    wanted = [content(batch) for batch in loader(graph, **options)]
    for depth in (0, 1, 9):
        assert [content(batch) for batch in loader(graph, prefetch=depth, **options)] == wanted
    made = pickle.loads(pickle.dumps(loader(graph, **options)))
    assert [content(batch) for batch in made] == wanted
    turned = dict(reversed(IDS.items()))
    assert [content(batch) for batch in loader(graph, turned, **options)] == wanted
    assert [content(batch) for batch in made] != wanted
    ranks = [
        list(loader(graph, shard_by="batches", rank=r, world_size=2, **options)) for r in range(2)
    ]
    dealt = [content(ranks[i % 2][i // 2]) for i in range(5)]
    assert dealt == wanted


def test_one_type_is_a_graph_without_types() -> None:
    own = ("a", "to", "a")
    src, dst = coo()[CITES]
    plain = pgs.Graph.from_coo(src, dst, num_nodes=60)
    typed = pgs.Graph.from_coo({own: (src, dst)}, num_nodes={"a": 60})
    for kind in ("uniform", "degree", "in_batch", "structural"):
        options = {"negative_sampling": NegativeSampling(kind, 2), "shuffle": True}
        pairs = zip(
            loader(plain, IDS[CITES], **options),
            loader(typed, IDS[CITES], **options),
            strict=True,
        )
        for one, other in pairs:
            assert one.input_id.equal(other.input_id[own])
            assert one.minibatch.input_nodes.equal(other.minibatch.input_nodes["a"])
            assert one.edge_label_index.equal(other.edge_label_index[own])


def test_other_types_change_no_negatives() -> None:
    few = make({CITES: 500, WRITES: 400})
    src, dst = coo()[WRITES]
    for kind in ("uniform", "degree", "structural"):
        draw = NegativeSampling(kind, 3).draw
        one, other = (draw(g, src, dst, seed=3, edge_type=WRITES) for g in (make(), few))
        assert one.equal(other)
        alike = draw(make(), src, dst, seed=3, edge_type=READS) if kind == "uniform" else one + 1
        assert not one.equal(alike)


def drawn(negatives: NegativeSampling, vertex: int, edge_type: Any, **more: Any) -> Counter[int]:
    src = torch.full((4000,), vertex)
    made = negatives.draw(make(), src, src % 60, seed=1, edge_type=edge_type, **more)
    return Counter(made.flatten().tolist())


def test_laws_of_a_relation() -> None:
    """There are more authors than papers, and no paper is left out for its number."""
    src, dst = coo()[WRITES]
    degrees = [max(int((dst == w).sum()), 1) ** 0.75 for w in range(60)]
    law = {w: d / sum(degrees) for w, d in enumerate(degrees)}
    plausible(drawn(NegativeSampling("degree", 5), 2, WRITES), law)
    known = set(dst[src == 2].tolist())
    others = [w for w in range(60) if w not in known]
    assert known
    assert 2 in others
    plausible(
        drawn(NegativeSampling("structural", 5), 2, WRITES), dict.fromkeys(others, 1 / len(others))
    )
    src, dst = coo()[CITES]
    others = [w for w in others if w not in dst[src == 2].tolist()]
    known = {2, *dst[src == 2].tolist()}
    others = [w for w in range(60) if w not in known]
    plausible(
        drawn(NegativeSampling("structural", 5), 2, CITES), dict.fromkeys(others, 1 / len(others))
    )


def test_a_relation_without_edges() -> None:
    """Pairs that are to be predicted, of types that the graph has."""
    pairs = torch.tensor([[89, 3, 4], [0, 59, 7]])
    (batch,) = loader(
        make(), {READS: pairs}, exclude=None, negative_sampling=NegativeSampling(amount=4)
    )
    assert ends_of(batch, READS, batch.edge_label_index[READS])[:, :3].equal(pairs)
    with pytest.raises(ValueError, match=r"edges\[.*\]: expected nodes, shape \[2, E\]"):
        loader(make(), {READS: [1, 2]})
    with pytest.raises(ValueError, match="expected another kind than 'structural' for a relation"):
        loader(
            make(), {READS: pairs}, exclude=None, negative_sampling=NegativeSampling("structural")
        )


def test_disjoint() -> None:
    """A tree for each end of each link, of both types."""
    sampler = pgs.PGSampler([3], disjoint=True, frontier="new", seed=1)
    edges = coo()
    for batch in loader(make(), fanouts=sampler, negative_sampling=NegativeSampling(amount=2)):
        writes, cites = (len(batch.input_id[kind]) for kind in (WRITES, CITES))
        nodes = batch.minibatch.output_nodes
        assert len(nodes["author"]) == writes
        assert len(nodes["paper"]) == 3 * writes + 4 * cites
        rows = batch.edge_label_index[CITES][:, :cites]
        assert ends_of(batch, CITES, rows).equal(edges[CITES][:, IDS[CITES][batch.input_id[CITES]]])


def test_times_of_vertices() -> None:
    when = {kind: torch.arange(len(ids)) % 7 for kind, ids in IDS.items()}
    laws = NegativeSampling("structural", 4, time_attr="t")
    for batch in loader(make(), negative_sampling=laws, seed_time=when, shuffle=True):
        for kind in IDS:
            count = len(batch.input_id[kind])
            links = ends_of(batch, kind, batch.edge_label_index[kind])[1, count:]
            bound = when[kind][batch.input_id[kind]].repeat_interleave(4)
            assert (links % 7 <= bound).all()
            assert (links % 7 == bound).any()


def test_times_of_edges() -> None:
    """Nothing in the tree of a link, or of its negatives, is as late as the link."""
    when = {kind: torch.arange(n) % 50 for kind, n in COUNTS.items()}
    edges: dict[Any, Any] = {kind: tuple(ends) for kind, ends in coo().items()}
    data = {kind: {"t": times} for kind, times in when.items()}
    graph = pgs.Graph.from_coo(edges, num_nodes=NODES, edge_data=data)
    sampler = pgs.PGSampler([4, 3], temporal=Temporal("t", inclusive=False), frontier="new", seed=3)
    bounds = {kind: when[kind][ids] for kind, ids in IDS.items()}
    negatives = NegativeSampling(amount=2)
    made = loader(
        graph,
        fanouts=sampler,
        negative_sampling=negatives,
        seed_time=bounds,
        exclude=None,
        shuffle=True,
    )
    found = 0
    for batch in made:
        of: dict[str, list[torch.Tensor]] = {"author": [], "paper": []}
        for kind, places in batch.input_id.items():
            bound = bounds[kind][places]
            of[kind[0]].append(bound)
            of[kind[2]] += [bound, bound.repeat_interleave(2)]
        subgraph_ids = batch.minibatch.subgraph_ids
        for hop in batch.minibatch.blocks:
            for kind, block in hop.items():
                rows = block.dst_offset + torch.repeat_interleave(block.indptr.diff())
                # Trees are numbered by the seeds, type after type.
                limits = torch.cat([*of["author"], *of["paper"]])[subgraph_ids[kind[2]][rows]]
                assert (when[kind][block.edge_ids] < limits).all()
                found += len(rows)
    assert found > 1000
    # One time for all links.
    one, other = (
        [
            batch.minibatch.input_nodes["paper"].tolist()
            for batch in loader(graph, seed_time=given, **more)
        ]
        for more in [{"fanouts": sampler, "negative_sampling": negatives, "exclude": None}]
        for given in (30, {kind: torch.full((len(ids),), 30) for kind, ids in IDS.items()})
    )
    assert one == other
    with pytest.raises(
        ValueError, match=r"seed_time: expected a time for each edge with a sampler"
    ):
        loader(graph, fanouts=sampler, exclude=None)


@pytest.mark.parametrize(
    ("options", "kind", "text"),
    [
        ({"edges": [1]}, TypeError, "edges: expected a mapping of edge types"),
        ({"edges": {("a", "b", "c"): [1]}}, ValueError, "edges: expected one between types"),
        ({"edges": {"x": [1]}}, ValueError, "edges: expected types of the graph, got 'x'; there"),
        ({"edges": {3: [1]}}, ValueError, "edges: expected types of the graph, got 3; there are"),
        ({"edges": {CITES: [500]}}, IndexError, r"edges\[.*\]\[0\]: expected an edge id"),
        ({"edges": {WRITES: [[9], [60]]}}, IndexError, r"\[1, 0\]: expected a node in \[0, 60\)"),
        (
            {"negative_sampling": {READS: NegativeSampling()}},
            ValueError,
            "negative_sampling: expected types of the",
        ),
        (
            {"negative_sampling": {CITES: 3}},
            TypeError,
            r"negative_sampling\[.*\]: expected NegativeS",
        ),
        ({"labels": {CITES: [1]}}, ValueError, r"labels\[.*\]: expected shape \[124, ...\]"),
        ({"exclude": "reverse_types"}, TypeError, "reverse_etypes: expected a mapping"),
        (
            {"exclude": "reverse_types", "reverse_etypes": {READS: READS}},
            ValueError,
            "reverse_etypes: expected types of the graph, got .*'reads'",
        ),
        (
            {"exclude": "reverse_id", "reverse_eids": {CITES: [1]}, "edges": {CITES: [1]}},
            ValueError,
            r"reverse_eids\[.*\]: expected shape \[500\]",
        ),
        (
            {"negative_sampling": NegativeSampling(time_attr="t")},
            ValueError,
            r"seed_time\[.*\]: expected a time",
        ),
        (
            {"fanouts": pgs.RandomWalk(2)},
            TypeError,
            "graph: expected a pygsampler.Graph, got heterogeneous",
        ),
    ],
)
def test_wrong_arguments(options: dict[str, Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        loader(make(), **options)


@pytest.mark.backends("emulator", "cuda")
def test_batches_on_a_device_are_those_of_the_cpu(host_tensors: None) -> None:
    graph = make()
    there = graph.to("cuda")
    both_ways = {WRITES: WRITTEN, CITES: CITES}
    options: list[dict[str, Any]] = [
        {},
        {"exclude": None},
        {"exclude": "reverse_types", "reverse_etypes": both_ways},
    ]
    for more in options:
        for prefetch in (0, 3, 12):
            more = {**more, "shuffle": True, "prefetch": prefetch}
            more["negative_sampling"] = NegativeSampling("structural", 2)
            want, copied, found = (
                [content(batch) for batch in loader(graph_there, device=device, **more)]
                for graph_there, device in ((graph, "cpu"), (graph, "cuda"), (there, None))
            )
            assert len(want) == 5 and want == copied == found, more
    there.close()
    assert pgs.cuda.memory_stats(0)["flights"] == 0


def test_batches_move_and_are_copied_with_all_of_their_types(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = {"x": {kind: torch.randn(n, 3) for kind, n in NODES.items()}}
    negatives = {CITES: NegativeSampling("uniform", 2, mode="triplet")}
    batch = next(iter(loader(make(), negative_sampling=negatives, features=x)))
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor, *_: tensor.clone())
    for again in (pickle.loads(pickle.dumps(batch)), batch.to("cpu"), batch.pin_memory()):
        assert content(again) == content(batch)
        assert again.src_index["cites"].equal(batch.src_index[CITES])
        assert again.minibatch.x["paper"].equal(batch.minibatch.x["paper"])
    assert batch.to("meta").edge_label_index[WRITES].is_meta
    assert batch.counts is None
    assert batch.trimmed() is batch
    for mask in (batch.edge_mask, batch.link_mask):
        assert {kind: of.tolist() for kind, of in mask.items()} == {
            kind: [True] * len(places) for kind, places in batch.input_id.items()
        }
