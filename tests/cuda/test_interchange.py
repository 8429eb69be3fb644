"""Batches in device memory as other libraries read them: DLPack, CUDA's and Arrow's interfaces."""

from __future__ import annotations

import ctypes
import gc
from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from pygsampler._arrays import dlpack
from tests.support.parity import emulated, random_graph, scaled, values
from tests.support.partners import partner

KINDS = [(32, np.int32), (64, np.int64)]


def batches(ids: int) -> tuple[pgs.MiniBatch, pgs.MiniBatch]:
    """One batch on the device, and on the CPU."""
    cpu = random_graph(scaled(20_000, 200), seed=31).graph(ids)
    sampler = pgs.PGSampler([5, 4], seed=3)
    seeds = np.arange(scaled(500, 20))
    return sampler.sample(cpu.to("cuda"), seeds, batch=0), sampler.sample(cpu, seeds, batch=0)


def arrays(batch: pgs.MiniBatch) -> list[pgs.Array]:
    found = [batch.input_nodes, batch.output_nodes, batch.output_index]
    for block in batch.blocks:
        found += [block.indptr, block.indices, block.edge_ids, block.src_nodes, block.dst_nodes]
    return found


def readable(address: int, length: int, bits: int) -> np.ndarray[Any, Any] | None:
    """Values at a device address where the host can read them: on the emulator."""
    if not emulated():
        return None
    kind = ctypes.c_int32 if bits == 32 else ctypes.c_int64
    return np.ctypeslib.as_array((kind * length).from_address(address)).copy()


@pytest.mark.parametrize(("ids", "dtype"), KINDS)
def test_devices_and_shapes(ids: int, dtype: Any) -> None:
    there, here = batches(ids)
    assert there.device == "cuda:0"
    assert here.device == "cpu"
    for mine, theirs in zip(arrays(there), arrays(here), strict=True):
        assert mine.device == "cuda:0"
        assert mine.__dlpack_device__() == (2, 0)
        assert (mine.shape, mine.dtype, mine.nbytes) == (theirs.shape, theirs.dtype, theirs.nbytes)
        assert mine.cpu().tolist() == theirs.tolist()
    copy = there.cpu()
    assert copy.device == "cpu"
    for mine, theirs in zip(values(copy), values(here), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert str(there.input_nodes.dtype) == np.dtype(dtype).name


def test_reading_on_the_host_needs_a_copy() -> None:
    nodes = batches(64)[0].input_nodes
    for read in (
        lambda: nodes.numpy(),
        lambda: nodes.tolist(),
        lambda: list(nodes),
        lambda: nodes[0],
        lambda: np.asarray(nodes),
    ):
        with pytest.raises(TypeError, match=r"\.cpu\(\)"):
            read()
    assert "cuda:0" in repr(nodes)
    with pytest.raises(AttributeError):
        nodes.__array_interface__  # noqa: B018
    assert nodes[2:5].cpu().tolist() == nodes.cpu().tolist()[2:5]


@pytest.mark.parametrize("version", [None, (1, 0)])
@pytest.mark.parametrize(("ids", "dtype"), KINDS)
def test_capsules(version: tuple[int, int] | None, ids: int, dtype: Any) -> None:
    there, here = batches(ids)
    for mine, theirs in zip(arrays(there), arrays(here), strict=True):
        for stream in (None, -1, 1, 2):
            capsule = mine.__dlpack__(stream=stream, max_version=version)
            if version:
                pointer = dlpack.capsule_pointer(capsule, b"dltensor_versioned")
                tensor = dlpack._Versioned.from_address(pointer).tensor
            else:
                tensor = dlpack._Tensor.from_address(dlpack.capsule_pointer(capsule, b"dltensor"))
            assert (tensor.device_type, tensor.device_id) == (2, 0)
            assert (tensor.ndim, tensor.shape[0]) == (1, len(theirs))
            assert (tensor.code, tensor.bits, tensor.lanes) == (0, int(theirs.dtype[3:]), 1)
            found = readable((tensor.data or 0) + tensor.byte_offset, len(theirs), tensor.bits)
            if found is not None:
                np.testing.assert_array_equal(found, theirs.numpy())


@pytest.mark.parametrize("stream", [0, -2, "1", 1.5, True])
def test_streams_that_dlpack_does_not_know(stream: Any) -> None:
    with pytest.raises(BufferError, match="stream"):
        batches(64)[0].input_nodes.__dlpack__(stream=stream)


def test_a_capsule_for_the_cpu() -> None:
    there, here = batches(64)
    copy = np.from_dlpack(_OnCpu(there.input_nodes))
    np.testing.assert_array_equal(copy, here.input_nodes.numpy())
    with pytest.raises(BufferError, match="dl_device"):
        there.input_nodes.__dlpack__(dl_device=(2, 5))
    with pytest.raises(BufferError, match="dl_device"):
        there.input_nodes.__dlpack__(dl_device=(1, 0), copy=False)


class _OnCpu:
    """An array as NumPy 2's ``numpy.from_dlpack(array, device="cpu")`` asks for it, for NumPy 1."""

    def __init__(self, array: pgs.Array) -> None:
        self.array = array

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, **options: Any) -> Any:
        options.pop("stream", None)
        return self.array.__dlpack__(**{**options, "dl_device": (1, 0), "copy": True})


@pytest.mark.parametrize(("ids", "dtype"), KINDS)
def test_cuda_array_interface(ids: int, dtype: Any) -> None:
    there, here = batches(ids)
    for mine, theirs in zip(arrays(there), arrays(here), strict=True):
        interface = mine.__cuda_array_interface__
        assert interface["version"] == 3
        assert interface["shape"] == (len(theirs),)
        assert interface["typestr"] == np.dtype(theirs.dtype).str
        assert interface["strides"] is None
        assert interface["stream"] in (1, 2)
        address, readonly = interface["data"]
        assert not readonly
        found = readable(address, len(theirs), int(theirs.dtype[3:]))
        if found is not None:
            np.testing.assert_array_equal(found, theirs.numpy())
    assert not hasattr(here.input_nodes, "__cuda_array_interface__")


class ArrowArray(ctypes.Structure):
    _fields_ = [
        ("length", ctypes.c_int64),
        ("null_count", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("n_buffers", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("buffers", ctypes.POINTER(ctypes.c_void_p)),
        ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("private_data", ctypes.c_void_p),
    ]


class ArrowDeviceArray(ctypes.Structure):
    _fields_ = [
        ("array", ArrowArray),
        ("device_id", ctypes.c_int64),
        ("device_type", ctypes.c_int32),
        ("sync_event", ctypes.c_void_p),
        ("reserved", ctypes.c_int64 * 3),
    ]


def test_arrow() -> None:
    """Reads the struct itself, since a pyarrow with CUDA is rare."""
    there, here = batches(32)
    for mine, theirs in zip(arrays(there), arrays(here), strict=True):
        schema, device_array = mine.__arrow_c_device_array__()
        format_of = dlpack.capsule_pointer(schema, b"arrow_schema")
        text = ctypes.c_char_p.from_address(format_of).value
        assert text == {"int32": b"i", "int64": b"l"}[theirs.dtype]
        pointer = dlpack.capsule_pointer(device_array, b"arrow_device_array")
        struct = ArrowDeviceArray.from_address(pointer)
        assert (struct.device_type, struct.device_id) == (2, 0)
        assert list(struct.reserved) == [0, 0, 0]
        # No event: the values are there.
        assert not struct.sync_event
        array = struct.array
        assert (array.length, array.null_count, array.offset) == (len(theirs), 0, 0)
        assert (array.n_buffers, array.n_children) == (2, 0)
        assert array.buffers[0] is None
        found = readable(array.buffers[1] or 0, len(theirs), int(theirs.dtype[3:]))
        if found is not None:
            np.testing.assert_array_equal(found, theirs.numpy())
        # A consumer that moved the array releases it; the capsule then finds nothing to release.
        array.release(pointer)
        assert not ctypes.c_void_p.from_address(pointer + 8 * 8).value
    assert not hasattr(here.input_nodes, "__arrow_c_device_array__")


def test_a_view_keeps_the_memory() -> None:
    there, here = batches(64)
    capsule = there.blocks[0].indices.__dlpack__(stream=-1, max_version=(1, 0))
    nodes = there.input_nodes
    del there
    gc.collect()
    sampler = pgs.PGSampler([5, 4], seed=9)
    graph = random_graph(scaled(20_000, 200), seed=32).graph().to("cuda")
    for _ in range(scaled(50, 3)):
        sampler.sample(graph, np.arange(scaled(500, 20)))
    assert nodes.cpu().tolist() == here.input_nodes.tolist()
    tensor = dlpack._Versioned.from_address(
        dlpack.capsule_pointer(capsule, b"dltensor_versioned")
    ).tensor
    found = readable(tensor.data + tensor.byte_offset, len(here.blocks[0].indices), 64)
    if found is not None:
        np.testing.assert_array_equal(found, here.blocks[0].indices.numpy())


def test_everything_is_given_back() -> None:
    """Views, capsules and Arrow arrays, dropped in any order."""
    gc.collect()
    batches(64)
    gc.collect()
    before = pgs.cuda.memory_stats(0)["used"]
    for _ in range(3):
        there, _ = batches(64)
        kept = [array.__dlpack__(stream=1) for array in arrays(there)]
        kept += [array.__arrow_c_device_array__() for array in arrays(there)]
        del there
        kept.reverse()
        del kept
    gc.collect()
    assert pgs.cuda.memory_stats(0)["used"] <= before


def test_arrays_on_a_device_are_not_compared() -> None:
    graph = pgs.Graph.from_coo([0, 1], [1, 0]).to("cuda")
    with pytest.raises(TypeError, match=r"Array: expected one on the CPU, .*; .cpu\(\) copies it"):
        graph.indices == graph.indices  # noqa: B015
    assert (graph.indices.cpu() == np.array([1, 0])).all()


@pytest.mark.backends("cuda")
def test_cupy() -> None:
    cupy = partner("cupy")
    for ids, dtype in KINDS:
        there, here = batches(ids)
        for mine, theirs in zip(arrays(there), arrays(here), strict=True):
            taken = [cupy.from_dlpack(mine)]
            if len(mine):
                taken.append(cupy.asarray(mine))
            for array in taken:
                assert array.dtype == theirs.numpy().dtype
                np.testing.assert_array_equal(cupy.asnumpy(array), theirs.numpy())
        nodes = cupy.asarray(there.input_nodes)
        assert nodes.data.ptr == there.input_nodes.__cuda_array_interface__["data"][0]
        # And the other way round: a graph, and seeds, of CuPy's.
        csc = random_graph(5000, seed=33)
        cpu = csc.graph(ids)
        indptr, indices = cupy.asarray(csc.indptr), cupy.asarray(csc.indices.astype(dtype))
        born = pgs.Graph.from_csc(indptr, indices)
        sampler = pgs.PGSampler([4, 4], seed=1)
        seeds = cupy.arange(100, dtype=dtype)
        got = sampler.sample(born, seeds, batch=0)
        want = sampler.sample(cpu, np.arange(100), batch=0)
        for a, b in zip(values(got), values(want), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.backends("cuda")
def test_jax() -> None:
    jax = partner("jax")
    if not any(device.platform == "gpu" for device in jax.devices()):
        pytest.skip("needs JAX with a CUDA device")
    for ids, _ in KINDS:
        there, here = batches(ids)
        for mine, theirs in zip(arrays(there), arrays(here), strict=True):
            if theirs.dtype == "int64" and not jax.config.jax_enable_x64:
                continue
            taken = jax.dlpack.from_dlpack(mine)
            np.testing.assert_array_equal(np.asarray(taken), theirs.numpy())


def test_torch_reads_what_cupy_and_we_do(torch: Any) -> None:
    for ids, _ in KINDS:
        there, here = batches(ids)
        for mine, theirs in zip(arrays(there), arrays(here), strict=True):
            for tensor in (torch.from_dlpack(mine), mine.torch()):
                assert tensor.device == torch.device("cuda", 0)
                np.testing.assert_array_equal(tensor.cpu().numpy(), theirs.numpy())
        whole = there.torch()
        np.testing.assert_array_equal(whole.input_nodes.cpu().numpy(), here.input_nodes.numpy())
