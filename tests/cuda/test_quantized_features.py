"""Quantized features on a GPU: the bits of the CPU, wherever the rows are."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

import pygsampler as pgs

torch = pytest.importorskip("torch", reason="needs torch")

from pygsampler._features.quantization import stored_width  # noqa: E402
from pygsampler.torch import DataLoader  # noqa: E402

pytestmark = pytest.mark.usefixtures("gpu")
KINDS = ["float16", "bfloat16", "float8_e4m3", "int8", "int4"]


def bits(x: Any) -> Any:
    return x.cpu().view(torch.int32 if x.dtype == torch.float32 else torch.int16)


@pytest.mark.parametrize("read_as", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("per", ["row", "column"])
@pytest.mark.parametrize("kind", KINDS)
def test_bits_of_the_cpu(kind: str, per: str, read_as: str) -> None:
    for shape in ((), (1,), (3,), (33,), (50,), (100,), (101,), (2, 64), (257,), (300,), (602,)):
        x = torch.randn(1000, *shape) * torch.randn(1000, *shape).exp()
        x[5] = 0
        if kind not in ("int8", "int4"):
            x[7] = float("nan")
        host = pgs.Features.from_tensor(x).quantize(kind, per, read_as=read_as)
        graph = pgs.Graph.from_coo([0, 1], [1, 2], num_nodes=1000)
        places = [host.to("cuda"), host.pin(), host.cache(rows=200, graph=graph)]
        places += [host.cache(rows=100, policy="lru")]
        places += [pickle.loads(pickle.dumps(each)) for each in places]
        for features in places:
            assert features.shape == host.shape and features.dtype == read_as
            for ids in (torch.randint(0, 1000, (777,)), torch.arange(0), torch.tensor([999] * 40)):
                for given in (ids.cuda(), ids.int().cuda(), ids):
                    rows = features[given]
                    assert rows.is_cuda and torch.equal(bits(rows), bits(host[ids]))
            with pytest.raises(IndexError, match=r"ids\[1\]: expected an integer in \[0, 1000\)"):
                features[torch.tensor([0, 1000], device="cuda")]


@pytest.mark.parametrize("kind", KINDS)
def test_files_have_rows_of_any_stride(kind: str, tmp_path: Path) -> None:
    graph = pgs.Graph.from_coo([0, 1], [1, 2], num_nodes=1000)
    for width in (33, 100, 132):
        host = pgs.Features.from_tensor(torch.randn(1000, width)).quantize(kind)
        stored = host._open_array().torch()
        exact = stored[:, : stored_width(kind, width)].contiguous()
        odd = torch.nn.functional.pad(exact.view(torch.uint8), (0, 6), value=77).view(stored.dtype)
        for rows in (stored, exact, odd):
            graph.save(tmp_path / "g.pgs", arrays={**host._file_arrays("x"), "x": rows})
            opened = pgs.Features.open(tmp_path / "g.pgs", "x")
            places = opened.to("cuda"), opened.pin(), opened.cache(rows=100, policy="lru")
            for features in places:
                for ids in (torch.randint(0, 1000, (777,)), torch.tensor([999] * 40)):
                    assert torch.equal(bits(features[ids.cuda()]), bits(host[ids]))


@pytest.mark.parametrize("static", [False, True])
def test_loaders(static: bool) -> None:
    generator = torch.Generator().manual_seed(1)
    src, dst = torch.randint(0, 2000, (2, 30_000), generator=generator)
    graph = pgs.Graph.from_coo(src, dst, num_nodes=2000)
    x = torch.randn(2000, 100, generator=generator)
    host = pgs.Features.from_tensor(x).quantize("int8")
    options: dict[str, Any] = {"batch_size": 128, "shuffle": True, "seed": 3}
    expected = DataLoader(graph, torch.arange(2000), [5, 4], features={"x": host}, **options)
    for features in (host, host.to("cuda"), host.cache(rows=300, policy="degree")):
        loader = DataLoader(
            graph.to("cuda"),
            torch.arange(2000),
            [5, 4],
            features={"x": features},
            static=static,
            **options,
        )
        expected.set_epoch(0)
        for want, batch in zip(expected, loader, strict=True):
            rows = batch.x[: len(want.input_nodes)] if static else batch.x
            assert torch.equal(rows.cpu(), want.x)


def test_reductions_of_a_table() -> None:
    generator = torch.Generator().manual_seed(1)
    src, dst = torch.randint(0, 500, (2, 9000), generator=generator)
    graph = pgs.Graph.from_coo(src, dst, num_nodes=500)
    host = pgs.Features.from_tensor(torch.randn(500, 64, generator=generator)).quantize("int4")
    sampler = pgs.NeighborSampler([6], seed=1)
    cpu = sampler.sample(graph, torch.arange(90), batch=0).torch()
    there = sampler.sample(graph.to("cuda"), torch.arange(90, device="cuda"), batch=0).torch()
    want = cpu.blocks[0].mean(host, of=cpu.input_nodes)
    for features in (host.to("cuda"), host.pin()):
        rows = there.blocks[0].mean(features, of=there.input_nodes)
        assert torch.equal(rows.cpu(), want)
