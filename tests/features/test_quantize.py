"""``Features.quantize``: rows in fewer bits, read as floats wherever features are read."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import pygsampler as pgs
from pygsampler._arrays.array import Array
from pygsampler._features.quantization import row_stride, stored_width
from pygsampler.torch import DataLoader

KINDS = ["float16", "bfloat16", "float8_e4m3", "int8", "int4"]
SCALED = KINDS[2:]
READ_AS = ["float32", "float16", "bfloat16"]
# Around those at which rows are padded otherwise.
WIDTHS = (1, 15, 16, 17, 33, 50, 64, 65, 96, 97, 100, 128, 129, 200, 257, 300)


def rows_of(count: int, *shape: int, spread: float = 2.0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(count)
    x = torch.randn(count, *shape, generator=generator)
    return x * torch.exp(spread * torch.randn(count, *shape, generator=generator))


def reference(x: torch.Tensor, kind: str, per: str, read_as: str) -> torch.Tensor:
    """The rows by torch's own conversions."""
    flat = x.float().reshape(len(x), -1)
    if kind in ("float16", "bfloat16"):
        read = flat.to(getattr(torch, kind)).float()
    else:
        limit = {"float8_e4m3": 448.0, "int8": 127.0, "int4": 7.0}[kind]
        most = flat.abs().amax(1 if per == "row" else 0, keepdim=True)
        scale = most / limit
        codes = torch.where(scale > 0, flat / scale, torch.zeros(())).clamp(-limit, limit)
        codes = codes.to(torch.float8_e4m3fn).float() if kind == "float8_e4m3" else codes.round()
        read = codes * scale
    return read.reshape(x.shape).to(getattr(torch, read_as))


@pytest.mark.parametrize("read_as", READ_AS)
@pytest.mark.parametrize("per", ["row", "column"])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_those_of_torch(kind: str, per: str, read_as: str) -> None:
    for shape in (*((width,) for width in WIDTHS), (3, 5), ()):
        x = rows_of(40, *shape)
        x[3] = 0
        features = pgs.Features.from_tensor(x).quantize(kind, per, read_as=read_as)
        assert features.shape == tuple(x.shape) and features.dtype == read_as
        assert features.stored_dtype == kind
        ids = torch.tensor([3, 0, 39, 7, 7, 12])
        read = features[ids]
        assert torch.equal(read, reference(x, kind, per, read_as)[ids])
        assert read[0].count_nonzero() == 0


@pytest.mark.parametrize("kind", KINDS)
def test_errors_are_within_the_bounds_of_the_page(kind: str) -> None:
    x = rows_of(200, 33)
    for per, axis in (("row", 1), ("column", 0)):
        most = x.abs().amax(axis, keepdim=True)
        bound = {
            "float16": x.abs() / 2**11 + 2**-25,
            "bfloat16": x.abs() / 2**8,
            "float8_e4m3": torch.maximum(x.abs() / 2**4, most / 458752 * torch.ones_like(x)),
            "int8": most / 254 * torch.ones_like(x),
            "int4": most / 14 * torch.ones_like(x),
        }[kind]
        read = pgs.Features.from_tensor(x).quantize(kind, per)[torch.arange(200)]
        assert ((read - x).abs() <= bound * (1 + 1e-6)).all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kind", KINDS)
def test_floats_of_other_widths(kind: str, dtype: torch.dtype) -> None:
    x = rows_of(30, 9, spread=0.5).to(dtype)
    for per in ("row", "column"):
        read = pgs.Features.from_tensor(x).quantize(kind, per)[torch.arange(30)]
        assert torch.equal(read, reference(x, kind, per, "float32"))


def test_sizes() -> None:
    x = pgs.Features.from_tensor(rows_of(1000, 101))
    sizes = {kind: x.quantize(kind).nbytes for kind in KINDS}
    assert sizes == {
        "float16": 208_000,
        "bfloat16": 208_000,
        "float8_e4m3": 128_000 + 4000,
        "int8": 128_000 + 4000,
        "int4": 64_000 + 4000,
    }
    assert x.quantize("int8", "column").nbytes == 128_000 + 4 * 101
    # A row that would take twice its bytes is not padded.
    narrow = pgs.Features.from_tensor(rows_of(1000, 65))
    assert narrow.quantize("int8").nbytes == 65_000 + 4000


def test_strides() -> None:
    rows = (1, 3, 5, 15, 17, 33, 48, 50, 65, 96, 97, 100, 128, 129, 200, 257, 300, 400, 514, 600)
    strides = (1, 4, 5, 16, 17, 33, 64, 64, 65, 128, 128, 128, 128, 144, 208, 272, 304, 400, 528)
    assert tuple(map(row_stride, rows)) == (*strides, 608)


def test_padding_has_rows_touch_the_fewest_lines() -> None:
    def touched(row: int, stride: int) -> int:
        """Lines of 128 bytes that 128 rows touch, each counted anew."""
        begins = np.arange(128) * stride
        return int(((begins + row - 1) // 128 - begins // 128 + 1).sum())

    for row in range(1, 700):
        stride, fewest = row_stride(row), 128
        assert row <= stride <= row + row // 3
        assert stride % 2 == 0 or row % 2 == 1
        if row > 128:
            assert stride in (row, -(-row // 16) * 16)
            continue
        least = next(each for each in range(row, 2 * row + 128) if touched(row, each) == fewest)
        if 3 * (least - row) <= row:
            # As little is added as gives that, but for the vectors.
            assert touched(row, stride) == fewest
            assert stride in (least, -(-least // 16) * 16)
        assert touched(row, stride) <= touched(row, row)


def test_rows_begin_at_lines_and_zeros_follow(tmp_path: Path) -> None:
    graph = pgs.Graph.from_coo([0, 1], [1, 2], num_nodes=600)
    for kind, stride in (("int8", 128), ("int4", 64), ("float16", 208)):
        # Memory that is used again has what was there.
        Array._room("uint8", (600 * stride,)).torch().fill_(255)
        features = pgs.Features.from_tensor(rows_of(600, 100)).quantize(kind)
        graph.save(tmp_path / "g.pgs", arrays={"x": features})
        opened = pgs.Features.open(tmp_path / "g.pgs", "x")
        for each in (features, opened, pickle.loads(pickle.dumps(features))):
            known = each._open_array()
            assert known._address % 128 == 0
            raw = known.torch().view(torch.uint8)
            assert raw.shape == (600, stride)
            width = stored_width(kind, 100) * known.torch().element_size()
            assert raw[:, width:].count_nonzero() == 0 and raw[:, :width].count_nonzero() > 0


@pytest.mark.parametrize("kind", SCALED)
@pytest.mark.parametrize("per", ["row", "column"])
def test_what_has_no_place_is_refused(kind: str, per: str) -> None:
    for value in (float("nan"), float("inf"), -float("inf")):
        x = rows_of(50, 8)
        x[41, 5] = x[44, 2] = value
        features = pgs.Features.from_tensor(x)
        if kind == "float8_e4m3" and value != value:
            read = features.quantize(kind, per)[torch.arange(50)]
            assert torch.equal(read.isnan(), x.isnan())
            continue
        with pytest.raises(ValueError, match=rf"for {kind}, got -?(nan|inf) in row 41, column 5"):
            features.quantize(kind, per)


def test_infinities_stay_in_floats_of_16_bits() -> None:
    x = torch.tensor([[float("nan"), float("inf"), -float("inf"), 1e6]])
    ids = torch.tensor([0])
    half = pgs.Features.from_tensor(x).quantize("float16")[ids]
    assert half.isnan()[0, 0] and half[0, 1:].tolist() == [
        float("inf"),
        -float("inf"),
        float("inf"),
    ]
    brain = pgs.Features.from_tensor(x).quantize("bfloat16")[ids]
    assert brain.isnan()[0, 0] and brain[0, 3] == x[0, 3].bfloat16()


def test_subnormal_rows() -> None:
    x = torch.tensor([[1e-44, -3e-45, 0.0], [1e-38, 1e-39, -1e-38], [1.0, 2.0, 3.0]])
    for kind in SCALED:
        read = pgs.Features.from_tensor(x).quantize(kind)[torch.arange(3)]
        assert torch.isfinite(read).all()
        assert ((read - x).abs() <= x.abs().amax(1, keepdim=True)).all()


def test_wrong_arguments() -> None:
    features = pgs.Features.from_tensor(rows_of(4, 3))
    for arguments, message in (
        (
            ("int7",),
            "dtype: expected one of float16, bfloat16, float8_e4m3, int8, int4, got 'int7'",
        ),
        (("int8", "rows"), "per: expected one of row, column, got 'rows'"),
    ):
        with pytest.raises(ValueError, match=message):
            features.quantize(*arguments)
    with pytest.raises(ValueError, match="read_as: expected one of float32, float16, bfloat16"):
        features.quantize("int8", read_as="float64")
    with pytest.raises(ValueError, match="expected features that are not quantized"):
        features.quantize("int8").quantize("int4")
    with pytest.raises(TypeError, match="expected rows of floats, got int64"):
        pgs.Features.from_tensor(torch.arange(5)).quantize("int8")
    with pytest.raises(ValueError, match="rows of one value or more"):
        pgs.Features.from_tensor(torch.empty(5, 0)).quantize("int8")
    with pytest.raises(ValueError, match="expected features that are not quantized"):
        features.quantize("int8").update(torch.ones(3), torch.tensor([0]))
    with pytest.raises(ValueError, match="expected values without gradients"):
        pgs.Features.from_tensor(torch.ones(2, 2, requires_grad=True))
    empty = pgs.Features.from_tensor(torch.empty(0, 3)).quantize("int8")
    assert empty.shape == pickle.loads(pickle.dumps(empty)).shape == (0, 3)


def test_ids_without_a_row_are_told() -> None:
    features = pgs.Features.from_tensor(rows_of(4, 3)).quantize("int8")
    with pytest.raises(IndexError, match=r"ids\[1\]: expected an integer in \[0, 4\), got 4"):
        features[torch.tensor([0, 4])]


def test_other_ways_to_read() -> None:
    x = rows_of(300, 12)
    features = pgs.Features.from_tensor(x).quantize("int8")
    expected = reference(x, "int8", "row", "float32")
    ids = torch.randperm(300)
    assert torch.equal(features.read_async(ids).wait(), expected[ids])
    out = torch.empty(300, 12)
    assert features.read(ids, out) is out and torch.equal(out, expected[ids])
    with pytest.raises(ValueError, match="out: expected a contiguous float32 array"):
        features.read(ids, torch.empty(300, 12, dtype=torch.int8))
    assert np.array_equal(np.asarray(features[ids.numpy()]), expected[ids].numpy())
    assert features.stats()["bytes"] == {"cpu": 3 * 300 * 16}
    assert "stored=int8" in repr(features) and "dtype=float32" in repr(features)
    again = pickle.loads(pickle.dumps(features))
    assert repr(again) == repr(features) and torch.equal(again[ids], expected[ids])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("per", ["row", "column"])
def test_files_keep_them(tmp_path: Path, kind: str, per: str) -> None:
    x = rows_of(60, 3, 7)
    features = pgs.Features.from_tensor(x).quantize(kind, per, read_as="bfloat16")
    graph = pgs.Graph.from_coo([0, 1], [1, 2], num_nodes=60)
    graph.save(tmp_path / "g.pgs", arrays={"x": features, "plain": pgs.Features.from_tensor(x)})
    there = pgs.Features.open(tmp_path / "g.pgs", "x")
    assert repr(there) == repr(features) and there.nbytes == features.nbytes
    ids = torch.tensor([59, 0, 3])
    assert torch.equal(there[ids], features[ids])
    assert torch.equal(pgs.Features.open(tmp_path / "g.pgs", "plain")[ids], x[ids])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("per", ["row", "column"])
def test_files_have_rows_of_any_stride(tmp_path: Path, kind: str, per: str) -> None:
    graph = pgs.Graph.from_coo([0, 1], [1, 2], num_nodes=60)
    ids = torch.tensor([59, 0, 3, 58, 58])
    expected, arrays = {}, {}
    for width in WIDTHS:
        read_as = READ_AS[width % 3]
        features = pgs.Features.from_tensor(rows_of(60, width)).quantize(kind, per, read_as=read_as)
        stored = features._open_array().torch()
        # As it is; without padding, as files were once; and of a stride that no word divides.
        exact = stored[:, : stored_width(kind, width)].contiguous()
        odd = torch.nn.functional.pad(exact.view(torch.uint8), (0, 6), value=77).view(stored.dtype)
        for name, rows in ((f"x{width}", stored), (f"y{width}", exact), (f"z{width}", odd)):
            arrays.update({**features._file_arrays(name), name: rows})
            expected[name] = features[ids]
    graph.save(tmp_path / "g.pgs", arrays=arrays)
    for name, rows in expected.items():
        there = pgs.Features.open(tmp_path / "g.pgs", name)
        assert torch.equal(there[ids], rows)
        assert there._open_array().torch().equal(torch.as_tensor(arrays[name]))


def test_a_file_with_another_form_is_refused(tmp_path: Path) -> None:
    graph = pgs.Graph.from_coo([0, 1], [1, 2], num_nodes=60)
    parts = pgs.Features.from_tensor(rows_of(60, 4)).quantize("int8")._file_arrays("x")
    scheme = bytes(parts["x.quantized"].tolist())
    for wrong in (
        {"x.scales": np.ones(59, np.float32)},
        {"x.quantized": np.frombuffer(b'{"dtype": "int4"}', np.uint8)},
        {"x.quantized": np.frombuffer(b"?", np.uint8)},
        {"x": np.ones((60, 4), np.int16)},
        {"x": np.ones((60, 3), np.int8)},
        {"x": np.ones(60, np.int8)},
        {"x.quantized": np.frombuffer(scheme.replace(b"[4]", b"[-4]"), np.uint8)},
        {"x.quantized": np.frombuffer(scheme.replace(b"[4]", b"[0]"), np.uint8)},
    ):
        graph.save(tmp_path / "g.pgs", arrays={**parts, **wrong})
        with pytest.raises(ValueError, match=r"x\.quantized: expected the scheme of 60 rows"):
            pgs.Features.open(tmp_path / "g.pgs", "x")


def test_loaders_read_them() -> None:
    generator = torch.Generator().manual_seed(1)
    src, dst = torch.randint(0, 500, (2, 6000), generator=generator)
    graph = pgs.Graph.from_coo(src, dst, num_nodes=500)
    x, e = rows_of(500, 50), rows_of(6000, 6)
    made: list[Any] = []
    for nodes, edges in (
        (
            pgs.Features.from_tensor(x).quantize("int8"),
            pgs.Features.from_tensor(e).quantize("int4"),
        ),
        (reference(x, "int8", "row", "float32"), reference(e, "int4", "row", "float32")),
    ):
        loader = DataLoader(
            graph,
            torch.arange(500),
            pgs.NeighborSampler([4, 3]),
            batch_size=64,
            features={"x": nodes},
            edge_features={"e": edges},
        )
        made.append([(b.x, [block.e for block in b.blocks]) for b in loader])
    for (ours, our_edges), (theirs, their_edges) in zip(*made, strict=True):
        assert torch.equal(ours, theirs)
        assert all(map(torch.equal, our_edges, their_edges))


def test_reductions_and_inference_read_them() -> None:
    generator = torch.Generator().manual_seed(2)
    src, dst = torch.randint(0, 200, (2, 3000), generator=generator)
    graph = pgs.Graph.from_coo(src, dst, num_nodes=200)
    x = rows_of(200, 6)
    features, plain = (
        pgs.Features.from_tensor(x).quantize("int8"),
        reference(x, "int8", "row", "float32"),
    )
    batch = pgs.NeighborSampler([5]).sample(graph, torch.arange(20)).torch()
    block, ids = batch.blocks[0], batch.input_nodes
    assert torch.equal(block.mean(features, of=ids), block.mean(plain[ids]))

    def layer(block: Any, rows: torch.Tensor) -> torch.Tensor:
        return block.mean(rows)

    whole = pgs.inference([layer, layer], graph, plain, progress=False)
    assert torch.equal(pgs.inference([layer, layer], graph, features, progress=False), whole)
