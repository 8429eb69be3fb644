"""PGSampler in DGL's DataLoader with a GPU: each of its modes gives the samples of the CPU.

Needs a CUDA build of DGL, which PyPI does not have.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    dgl = pytest.importorskip("dgl", reason="needs DGL")

from pygsampler.dgl import PGSampler  # noqa: E402
from tests.dgl.graphs import check_blocks, content  # noqa: E402
from tests.dgl.graphs import random_graph as unsorted_graph  # noqa: E402

# DGL and torch warn of each other, and Python of the forks of torch's loader.
pytestmark = pytest.mark.filterwarnings("ignore")
FANOUTS = [5, 4]
SEEDS = torch.arange(0, 400)
GPU = torch.device("cuda", 0)
DTYPES = [torch.int32, torch.int64]


@pytest.fixture(autouse=True)
def gpu(cuda: None, torch: Any) -> Iterator[None]:
    try:
        dgl.graph(([0], [0])).to("cuda")
    except dgl.DGLError as error:
        pytest.skip(f"needs a DGL that is built with CUDA: {str(error).splitlines()[-1]}")
    yield
    torch.cuda.synchronize()


def random_graph(**options: Any) -> Any:
    """With the CSC made on the CPU: one that the GPU makes may have other places for the edges,
    and no new one can be made once the graph is pinned."""
    g = unsorted_graph(**options)
    g.create_formats_()
    return g


def make_loader(g: Any, sampler: Any, seeds: Any, **options: Any) -> Any:
    return dgl.dataloading.DataLoader(g, seeds, sampler, **{"batch_size": 64, **options})


def on_the_cpu(batch: Any) -> Any:
    input_nodes, output_nodes, blocks = batch
    return input_nodes.cpu(), output_nodes.cpu(), [block.to("cpu") for block in blocks]


def make_sampler(**options: Any) -> Any:
    sampler = PGSampler(FANOUTS, seed=11, **options)
    sampler.set_epoch(2)
    return sampler


def expected(g: Any, seeds: Any = SEEDS) -> list[Any]:
    sampler = make_sampler()
    return [content(sampler.sample(g, part)) for part in seeds.to(g.idtype).split(64)]


def check(g: Any, loader: Any, device: Any = GPU, *, in_order: bool = True) -> None:
    """Every batch is on the device, keeps DGL's contract, and is the CPU's.

    Not ``in_order``: DGL hands out the batches of several workers in an order of its own.
    """
    got = []
    for batch in loader:
        input_nodes, output_nodes, blocks = batch
        for place in (input_nodes, output_nodes, *blocks):
            assert place.device == device
        for block in blocks:
            assert block.idtype == g.idtype
            assert block.srcdata[dgl.NID].device == block.edata[dgl.EID].device == device
            assert block.srcdata["feat"].device == block.edata["weight"].device == device
            assert block.srcdata["feat"].cpu().equal(g.ndata["feat"][block.srcdata[dgl.NID].cpu()])
            assert block.edata["weight"].cpu().equal(g.edata["weight"][block.edata[dgl.EID].cpu()])
            # A message passes: DGL's kernels take the block's arrays.
            block.srcdata["one"] = torch.ones(block.num_src_nodes(), 1, device=device)
            block.update_all(dgl.function.copy_u("one", "m"), dgl.function.sum("m", "degree"))
            assert block.dstdata["degree"].squeeze(1).long().equal(block.in_degrees().long())
        there = on_the_cpu(batch)
        check_blocks(g, FANOUTS, there[1], there)
        got.append(content(there))
    assert got == expected(g) if in_order else sorted(got) == sorted(expected(g))


@pytest.mark.parametrize("dtype", DTYPES)
def test_graph_on_the_gpu(dtype: Any) -> None:
    g = random_graph(dtype=dtype)
    check(g, make_loader(g.to("cuda"), make_sampler(), SEEDS.to(dtype).cuda()))


@pytest.mark.parametrize("formats", ["coo", "csr", "csc"])
def test_formats_on_the_gpu(formats: str) -> None:
    g = random_graph()
    there = g.to("cuda").formats(formats)
    got = [content(make_sampler().sample(there, part.cuda())) for part in SEEDS.split(64)]
    if formats == "csc":
        assert got == expected(g)
    else:
        # Sorted by us, so that rows need not stand in DGL's order.
        for part in SEEDS.split(64):
            batch = on_the_cpu(make_sampler().sample(there, part.cuda()))
            check_blocks(g, FANOUTS, part, batch)


def test_the_csc_on_the_gpu_is_not_copied() -> None:
    from pygsampler.dgl.graph import graph_of

    there = random_graph().to("cuda")
    graph = graph_of(there, GPU)
    indptr, indices, edge_ids = there.adj_tensors("csc")
    assert graph.device == "cuda:0"
    assert graph.indptr.torch().data_ptr() == indptr.data_ptr()
    assert graph.indices.torch().data_ptr() == indices.data_ptr()
    assert graph.edge_ids is not None
    assert graph.edge_ids.torch().data_ptr() == edge_ids.data_ptr()
    assert graph_of(there, GPU) is graph


@pytest.mark.parametrize("dtype", DTYPES)
def test_uva(dtype: Any) -> None:
    g = random_graph(dtype=dtype)
    loader = make_loader(g, make_sampler(), SEEDS.to(dtype).cuda(), use_uva=True, device="cuda")
    try:
        assert g.is_pinned()
        check(g, loader)
        # Features that came after the pinning are gathered on the host, and move.
        g.ndata["late"] = torch.arange(g.num_nodes())
        _, _, blocks = next(iter(loader))
        assert blocks[0].srcdata["late"].device == GPU
        assert blocks[0].srcdata["late"].equal(blocks[0].srcdata[dgl.NID].long())
    finally:
        g.unpin_memory_()
    with pytest.raises(ValueError, match="use_uva=True"):
        make_sampler().sample(g, SEEDS.to(dtype).cuda())
    # Pinned anew: the arrays lie where they lay.
    g.pin_memory_()
    try:
        check(g, loader)
    finally:
        g.unpin_memory_()


@pytest.mark.parametrize("workers", [0, 2])
def test_a_cpu_graph_for_the_gpu(workers: int) -> None:
    """DGL's default: the CPU samples in a prefetch thread, and what it returns is copied."""
    g = random_graph()
    loader = make_loader(g, make_sampler(), SEEDS, device="cuda", num_workers=workers)
    check(g, loader, in_order=workers == 0)


@pytest.mark.parametrize("mode", ["gpu", "uva", "copied"])
def test_prefetched_features(mode: str) -> None:
    g = random_graph()
    sampler = make_sampler(
        prefetch_node_feats=["feat"], prefetch_labels=["label"], prefetch_edge_feats=["weight"]
    )
    there = g.to("cuda") if mode == "gpu" else g
    seeds = SEEDS if mode == "copied" else SEEDS.cuda()
    loader = make_loader(there, sampler, seeds, device="cuda", use_uva=mode == "uva")
    for input_nodes, output_nodes, blocks in loader:
        assert blocks[0].srcdata["feat"].cpu().equal(g.ndata["feat"][input_nodes.cpu()])
        assert blocks[-1].dstdata["label"].equal(output_nodes)
        for block in blocks:
            ids = block.edata[dgl.EID].cpu()
            assert block.edata["weight"].cpu().equal(g.edata["weight"][ids])
    if mode == "uva":
        g.unpin_memory_()


def test_duplicate_seeds() -> None:
    g = random_graph()
    seeds = torch.tensor([7, 7, 3, 7, 499, 3])
    got = on_the_cpu(make_sampler().sample(g.to("cuda"), seeds.cuda()))
    assert content(got) == content(make_sampler().sample(g, seeds))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", ["gpu", "uva"])
def test_excluded_edges(dtype: Any, mode: str) -> None:
    g = random_graph(dtype=dtype)
    seeds, excluded = torch.arange(100, dtype=dtype), torch.arange(0, 4000, 3, dtype=dtype)
    there = g.to("cuda") if mode == "gpu" else g.pin_memory_()
    got = on_the_cpu(make_sampler().sample(there, seeds.cuda(), excluded.cuda()))
    check_blocks(g, FANOUTS, seeds, got, excluded=excluded)
    assert content(got) == content(make_sampler().sample(g, seeds, excluded))
    with pytest.raises(ValueError, match="exclude"):
        make_sampler().sample(there, seeds.cuda(), torch.tensor([4000], dtype=dtype).cuda())
    if mode == "uva":
        g.unpin_memory_()


@pytest.mark.parametrize("mode", ["gpu", "uva"])
def test_edge_prediction(mode: str) -> None:
    g = random_graph()
    sampler = dgl.dataloading.as_edge_prediction_sampler(
        make_sampler(), exclude="self", negative_sampler=dgl.dataloading.negative_sampler.Uniform(2)
    )
    there = g.to("cuda") if mode == "gpu" else g
    loader = make_loader(
        there, sampler, torch.arange(600).cuda(), device="cuda", use_uva=mode == "uva"
    )
    for input_nodes, positive, _negative, blocks in loader:
        seeds, excluded = positive.ndata[dgl.NID], positive.edata[dgl.EID]
        check_blocks(
            g,
            FANOUTS,
            seeds.cpu(),
            on_the_cpu((input_nodes, seeds, blocks)),
            excluded=excluded.cpu(),
        )
    if mode == "uva":
        g.unpin_memory_()


def test_output_device() -> None:
    g = random_graph()
    to_cpu = make_sampler(output_device="cpu").sample(g.to("cuda"), SEEDS[:64].cuda())
    assert to_cpu[0].device.type == to_cpu[2][0].device.type == "cpu"
    assert content(to_cpu) == expected(g)[0]
    to_gpu = make_sampler(output_device="cuda").sample(g, SEEDS[:64])
    assert to_gpu[0].device == to_gpu[2][0].device == GPU
    assert content(to_gpu) == expected(g)[0]


def test_seeds_elsewhere() -> None:
    g = random_graph()
    with pytest.raises(ValueError, match="expected ids on the CPU, where g is, got cuda:0"):
        make_sampler().sample(g, SEEDS.cuda())
    with pytest.raises(ValueError, match="expected ids on cuda:0, where g is, got cpu"):
        make_sampler().sample(g.to("cuda"), SEEDS)
    with pytest.raises(IndexError, match="500"):
        make_sampler().sample(g.to("cuda"), torch.tensor([500]).cuda())
    listed = make_sampler().sample(g.to("cuda"), SEEDS[:64].tolist())
    assert content((listed[0], SEEDS[:64], listed[2])) == expected(g)[0]


def test_another_stream() -> None:
    g = random_graph()
    there = g.to("cuda")
    sampler = make_sampler()
    torch.cuda.synchronize()
    stream, got = torch.cuda.Stream(), []
    with torch.cuda.stream(stream):
        for part in SEEDS.split(64):
            torch.cuda._sleep(2_000_000)
            got.append(content(sampler.sample(there, part.cuda())))
    assert got == expected(g)


@pytest.mark.parametrize("mode", ["gpu", "uva"])
def test_heterographs(mode: str) -> None:
    """Batches of a graph with types, where it is or out of the host's memory, are the CPU's."""
    random = torch.Generator().manual_seed(0)
    sizes = {("u", "to", "v"): (50, 80), ("v", "by", "u"): (80, 50), ("v", "of", "v"): (80, 80)}
    edges = {
        kind: tuple(torch.randint(n, (400,), generator=random) for n in ends)
        for kind, ends in sizes.items()
    }
    g = dgl.heterograph(edges, num_nodes_dict={"u": 50, "v": 80})
    g.nodes["v"].data["feat"] = torch.rand(80, 3)
    g.create_formats_()
    seeds = {"u": torch.arange(20), "v": torch.arange(60)}
    sampler = PGSampler([3, {"to": 2, "by": 4, "of": -1}], seed=1)
    sampler.set_epoch(0)
    want = list(dgl.dataloading.DataLoader(g, seeds, sampler, batch_size=16))
    there = g.to("cuda") if mode == "gpu" else g
    on_gpu = {kind: ids.cuda() for kind, ids in seeds.items()}
    loader = dgl.dataloading.DataLoader(
        there, on_gpu, sampler, batch_size=16, device="cuda", use_uva=mode == "uva"
    )
    for (nodes, _, blocks), (others, _, wanted) in zip(loader, want, strict=True):
        for kind in g.ntypes:
            assert nodes[kind].device == GPU and nodes[kind].cpu().equal(others[kind])
        feat = blocks[0].srcnodes["v"].data["feat"]
        assert feat.device == GPU and feat.cpu().equal(wanted[0].srcnodes["v"].data["feat"])
        for block, other in zip(blocks, wanted, strict=True):
            for kind in g.canonical_etypes:
                found = block.edges[kind].data[dgl.EID]
                assert found.device == GPU and found.cpu().equal(other.edges[kind].data[dgl.EID])
