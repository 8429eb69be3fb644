"""Layer operations as operators of torch: in compiled models, exported layers and profiles."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_graphs import sampled

import pygsampler as pgs
from pygsampler._batch.block import Block
from pygsampler._ops import attention, segments
from pygsampler._ops.relations import reduce_by_relation
from pygsampler._ops.segments import Segments
from pygsampler.torch import segment_reduce

pytestmark = pytest.mark.skipif(
    not hasattr(torch.library, "register_autograd"), reason="needs torch 2.4 or newer"
)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    yield
    torch._dynamo.reset()


class Model(torch.nn.Module):
    """Two layers of a kind on two blocks."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.first, self.second = torch.nn.Linear(8, 12), torch.nn.Linear(12, 12)
        self.att = torch.nn.Parameter(torch.randn(2, 6))
        self.scale = torch.nn.Parameter(torch.randn(36))

    def layer(self, block: Any, h: Any, linear: Any) -> Any:
        z = linear(h)
        if self.kind in ("sum", "mean", "max"):
            own, reduced = block.self_and_reduce(z, self.kind)
            return own + reduced
        if self.kind == "of":
            of = torch.arange(z.shape[0]).flip(0)
            return block.mean(z, of=of) + block.max(z, of=of)
        if self.kind == "gcn":
            # With the loops that GCN adds.
            inwards, outwards = (d + 1 for d in (block.in_degrees(), block.out_degrees()))
            scaled = z * outwards.rsqrt()[:, None]
            own = scaled[: block.num_dst_nodes]
            return (block.sum(scaled) + own) * inwards.rsqrt()[:, None]
        if self.kind == "rgcn":
            relations = block.indices.long() % 3
            reduced = reduce_by_relation(block._segments(), h, relations, 3)
            weights = linear.weight.expand(3, -1, -1).flatten(0, 1) * self.scale[:, None]
            own = z[: block.num_dst_nodes]
            return own + torch.einsum("nri,roi->no", reduced, weights.unflatten(0, (3, -1)))
        x = z.unflatten(1, (2, 6))
        x_dst = x[: block.num_dst_nodes]
        if self.kind in ("gat", "shared"):
            rows = x if self.kind == "gat" else x.mean(1, keepdim=True)
            made = block.attention(rows, (x * self.att).sum(2), (x_dst * self.att).sum(2))
        elif self.kind == "gatv2":
            made = block.attention_v2(x, x_dst, self.att)
        else:
            weights = block.softmax((x * self.att).sum(2)[block.indices.long()])
            made = block.weighted_sum(x, weights)
        return made.flatten(1)

    def forward(self, blocks: Any, x: Any) -> Any:
        h = self.layer(blocks[0], x, self.first).relu()
        return self.layer(blocks[1], h, self.second)


def step(model: Any, blocks: Any, x: Any) -> list[Any]:
    model.zero_grad()
    x = x.clone().requires_grad_()
    made = model(blocks, x)
    made.square().sum().backward()
    return [made.detach(), x.grad, *(p.grad for p in model.parameters() if p.grad is not None)]


def padded(block: Block, sources: int, rows: int, edges: int) -> Block:
    """A block as a static loader yields it: of sizes that are the same for all batches."""
    indptr = torch.cat([block.indptr, block.indptr[-1:].expand(rows + 1 - len(block.indptr))])
    indices = torch.nn.functional.pad(block.indices, (0, edges - block.num_edges))
    return Block._of_arrays(
        indptr, indices, indices, torch.zeros(sources).long(), torch.zeros(rows).long()
    )


@pytest.mark.parametrize(
    "kind", ["sum", "mean", "max", "of", "weighted", "gat", "shared", "gatv2", "gcn", "rgcn"]
)
def test_a_compiled_model_is_one_graph_for_all_batches(kind: str) -> None:
    rng = np.random.default_rng(0)
    graph = pgs.Graph.from_coo(*rng.integers(0, 300, (2, 3000)), num_nodes=300)
    sampler = pgs.PGSampler([4, 4], seed=0)
    torch.manual_seed(0)
    model = Model(kind)
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend="aot_eager")
    for i in range(4):
        batch = sampler.sample(graph, np.arange(10 + 7 * i), batch=i).torch().create_tensors()
        x = torch.randn(len(batch.input_nodes), 8)
        want, got = (step(one, batch.blocks, x) for one in (model, compiled))
        for a, b in zip(want, got, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1
    assert not torch._dynamo.utils.counters["graph_break"]


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler, g++")
def test_the_default_backend_calls_operators_beside_its_own_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    # Workers, precompiled headers and a look for vector units take longer than so little code.
    inductor = pytest.importorskip("torch._inductor.config")
    for config, name, value in (
        (inductor, "compile_threads", 1),
        (inductor, "cpp_cache_precompile_headers", False),
        (inductor.cpp, "simdlen", 1),
    ):
        monkeypatch.setattr(config, name, value, raising=False)
    torch.manual_seed(0)

    def layer(block: Any, x: Any) -> Any:
        return block.mean(x.relu() + 1)

    compiled = torch.compile(layer, fullgraph=True, dynamic=True)
    for seeds in (30, 50):
        block = sampled(seeds=seeds).create_tensors().blocks[0]
        rows = torch.randn(block.num_src_nodes, 8)
        results = []
        for one in (layer, compiled):
            x = rows.clone().requires_grad_()
            out = one(block, x)
            out.square().sum().backward()
            results.append((out.detach(), x.grad))
        torch.testing.assert_close(*results)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1
    code = "".join(path.read_text() for path in tmp_path.rglob("*.py"))
    for name in ("reduce", "transpose", "reduce_backward"):
        assert f"torch.ops.pygsampler.{name}.default(" in code


def test_a_compiled_model_on_padded_blocks_is_one_graph() -> None:
    torch.manual_seed(0)
    model = Model("gat")
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    for seeds in (40, 50, 65):
        batch = sampled(seeds=seeds)
        first, second = batch.blocks
        sizes = (900, 600, 3000), (600, 70, 600)
        # Sources of the second are destinations of the first.
        blocks = padded(first, *sizes[0]), padded(second, *sizes[1])
        x = torch.zeros(900, 8)
        x[: first.num_src_nodes] = torch.randn(first.num_src_nodes, 8)
        for block in blocks:
            assert block.indptr is not None and block.indices is not None
        for a, b in zip(step(model, blocks, x), step(compiled, blocks, x), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


def test_blocks_without_tensors_are_refused_by_a_compiler() -> None:
    block = sampled().blocks[0]
    compiled = torch.compile(Block.sum, fullgraph=True, backend="aot_eager")
    with pytest.raises(Exception, match=r"call batch\.create_tensors"):
        compiled(block, torch.zeros(block.num_src_nodes, 3))


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(6, 6)

    def forward(self, x: Any, indptr: Any, indices: Any) -> Any:
        edges = Segments(indptr, indices, x.shape[0])
        z = self.linear(x)
        heads = z.unflatten(1, (2, 3))
        scores = heads.sum(2)
        made = attention.attention(edges, heads, scores, scores[: edges.num_rows], 0.2)
        return made.flatten(1) + segment_reduce(z, indptr, indices, "mean")


def test_a_layer_is_exported() -> None:
    layer = Layer()
    given = []
    for seeds in (30, 60):
        block = sampled(seeds=seeds).blocks[0]
        x = torch.randn(block.num_src_nodes, 6)
        given.append((x, block.indptr.clone(), block.indices.clone()))
    # Torch compiles for one row by itself.
    nodes, rows, edges = (torch.export.Dim(name, min=4) for name in ("nodes", "rows", "edges"))
    shapes = {0: nodes}, {0: rows}, {0: edges}
    exported = torch.export.export(layer, given[0], dynamic_shapes=shapes)
    names = {str(node.target) for node in exported.graph.nodes if node.op == "call_function"}
    assert {"pygsampler.reduce.default", "pygsampler.attention.default"} <= names
    for one in given:
        torch.testing.assert_close(exported.module()(*one), layer(*one))


def test_profiles_name_operations() -> None:
    block = sampled().create_tensors().blocks[0]
    x = torch.randn(block.num_src_nodes, 4, requires_grad=True)
    compiled = torch.compile(Block.mean, fullgraph=True, backend="aot_eager")
    compiled(block, x).sum().backward()
    with torch.profiler.profile() as profile:
        compiled(block, x).sum().backward()
        block.mean(x).sum().backward()
    names = {event.key for event in profile.key_averages()}
    assert {"pygsampler::reduce", "pygsampler::reduce_backward", "_Reduce"} <= names


def operands() -> dict[str, tuple[Any, ...]]:
    """Arguments for each operator that has a gradient."""
    block = sampled(seeds=20).blocks[0]
    edges = block.indptr, block.indices
    n, rows, e = block.num_src_nodes, block.num_dst_nodes, block.num_edges

    def leaf(*shape: int) -> Any:
        return torch.randn(shape, requires_grad=True)

    x, ids = leaf(n, 6), torch.arange(n).flip(0)
    return {
        "gather": ("gather", leaf(30, 2, 3), torch.tensor([4, 4, 29])),
        "sum": ("reduce", x, *edges, n, segments.SUM, None),
        "max": ("reduce", x, *edges, n, segments.MAX, ids),
        "weighted": ("weighted_sum", x, leaf(e, 2), *edges, n, None),
        "softmax": ("softmax", leaf(e, 3), *edges),
        "attention": ("attention", x, leaf(n, 2), leaf(rows, 2), leaf(e, 2), *edges, 0.2, False),
        "of edges": ("attention", x, None, None, leaf(e, 2), *edges, 1.0, False),
        "shared": ("attention", x, leaf(n, 2), leaf(rows, 2), None, *edges, 0.2, True),
        "edge_scores": ("edge_scores", x, leaf(rows, 6), leaf(2, 3), leaf(e, 6), *edges, 0.2),
    }


# Torch's own check asks for the gradients of tensors that are no leaves.
@pytest.mark.filterwarnings("ignore:The .grad attribute")
@pytest.mark.parametrize("name", list(operands()))
def test_operators_keep_the_rules_of_torch(name: str) -> None:
    operator, *given = operands()[name]
    torch.library.opcheck(getattr(torch.ops.pygsampler, operator).default, given)
