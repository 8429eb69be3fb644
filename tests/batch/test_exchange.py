"""Tensors of a batch by one call of DLPack's C exchange API, beside tensors by capsules."""

import copy
import ctypes
import gc
import os
import pickle
import subprocess
import sys
import threading
from itertools import pairwise
from struct import pack

import numpy as np
import pytest

import pygsampler
from pygsampler import PGSampler
from pygsampler._arrays import exchange
from pygsampler._arrays.exchange import table_address
from pygsampler._engine import library

torch = pytest.importorskip("torch")

HAS_API = hasattr(torch.Tensor, "__dlpack_c_exchange_api__")
need_api = pytest.mark.skipif(not HAS_API, reason="this torch has no C exchange API")
BATCH = ("input_nodes", "output_nodes", "output_index", "subgraph_ids")
BLOCK = ("indptr", "indices", "edge_ids", "src_nodes", "dst_nodes", "edge_weights")
# Of 5 integers each: code, bits, place of the length, more, place of the offset.
THREE = pack("15q", *(0, 64, 0, 0, 1) * 3)

OPTIONS = {
    "plain": {},
    "weights": {"edge_weights": "ht"},
    "disjoint": {"disjoint": True},
    "new": {"frontier": "new"},
    "all": {"frontier": "all"},
}


@pytest.fixture
def graph():
    random = np.random.default_rng(3)
    edges = random.integers(0, 300, (2, 1500))
    return pygsampler.Graph.from_coo(*edges, num_nodes=320)


def sampled(graph, **options):
    return PGSampler([3, 2], seed=1, **options).sample(graph, [7, 5, 7, 319, 0])


def every(batch):
    """The tensors of a batch in a fixed order, None where it has none."""
    found = [getattr(batch, name) for name in BATCH]
    return found + [getattr(block, name) for block in batch.blocks for name in BLOCK]


def present(batch):
    return [tensor for tensor in every(batch) if tensor is not None]


def without_api(monkeypatch):
    monkeypatch.setattr(exchange._TorchTable, "address", 0)


@pytest.fixture(autouse=True)
def no_collection():
    """Memory goes with its last reference; garbage of other tests would change the count."""
    gc.disable()
    yield
    gc.enable()


def live():
    return library.memory_stats()["live"]


def properties(tensor):
    return (
        type(tensor),
        tensor.dtype,
        tensor.shape,
        tensor.stride(),
        tensor.device,
        tensor.requires_grad,
        tensor.is_leaf,
        tensor.is_inference(),
        None if tensor.is_inference() else tensor._version,
        tensor.data_ptr(),
    )


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_tensors_are_the_same_as_by_capsules(graph, options, dtype, monkeypatch):
    indptr, indices = graph.indptr.numpy(), graph.indices.numpy()
    narrow = pygsampler.Graph.from_csc(indptr.astype(dtype), indices.astype(dtype))
    batch = sampled(narrow, **options)
    by_table = every(batch.torch())
    without_api(monkeypatch)
    by_capsules = every(batch.torch())
    for one, other in zip(by_table, by_capsules, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            assert properties(one) == properties(other)
            assert torch.equal(one, other)


def test_wide_edge_ids_beside_narrow_nodes(monkeypatch):
    indptr, indices = np.array([0, 1, 2], "int32"), np.array([1, 0], "int32")
    ids = np.array([1 << 40, 5], "int64")
    graph = pygsampler.Graph.from_csc(indptr, indices, edge_ids=ids)
    batch = PGSampler([1]).sample(graph, [0, 1])
    (block,) = batch.torch().blocks
    assert block.edge_ids.dtype == torch.int64
    assert block.edge_ids.tolist() == [1 << 40, 5]
    assert block.indices.dtype == torch.int32


def test_empty_arrays(graph):
    empty = PGSampler([3]).sample(pygsampler.Graph.from_csc([0, 0, 0], []), [1])
    (block,) = empty.torch().blocks
    assert block.indices.shape == block.edge_ids.shape == (0,)
    assert block.indptr.tolist() == [0, 0]
    assert all(len(t) == 0 for t in present(sampled_none(graph)) if t.numel() == 0)


def sampled_none(graph):
    return PGSampler([3, 2]).sample(graph, []).torch()


def test_parts_of_the_nodes_share_their_storage(graph):
    batch = sampled(graph).torch()
    nodes = batch.input_nodes
    for block in batch.blocks:
        for part in (block.src_nodes, block.dst_nodes):
            assert part.untyped_storage().data_ptr() == nodes.untyped_storage().data_ptr()
    version = nodes._version
    nodes.add_(1)
    assert batch.blocks[1].dst_nodes._version == nodes._version > version
    storages = {batch.blocks[0].indptr.untyped_storage(), batch.blocks[0].indices}
    assert len(storages) == 2
    # A tensor's storage is no larger than its values: a pickle stores nothing else.
    assert batch.blocks[0].indices.untyped_storage().nbytes() == batch.blocks[0].indices.nbytes


def test_a_write_is_seen_by_the_batch(graph):
    batch = sampled(graph)
    indices = batch.torch().blocks[0].indices
    indices[0] = 3
    assert batch.blocks[0].indices[0] == 3
    assert indices._version == 1


def test_a_tensor_outlives_its_batch_and_the_last_one_frees_the_memory(graph):
    before = live()
    batch = sampled(graph)
    expected = batch.blocks[1].indices.tolist()
    tensors = present(batch.torch())
    kept = batch.torch().blocks[1].indices
    del batch
    assert live() == before + 1
    del tensors
    assert live() == before + 1
    assert kept.tolist() == expected
    del kept
    assert live() == before


def test_tensors_dropped_by_another_thread_free_the_memory(graph):
    before = live()
    tensors = [present(sampled(graph).torch()) for _ in range(8)]
    assert live() > before

    def drop():
        while tensors:
            tensors.pop()

    threads = [threading.Thread(target=drop) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert live() == before


def test_pickles_and_copies_of_tensors(graph):
    before = live()
    batch = sampled(graph).torch()
    expected = [tensor.tolist() for tensor in present(batch)]
    for duplicate in (pickle.loads(pickle.dumps(batch)), copy.deepcopy(batch)):
        assert [tensor.tolist() for tensor in present(duplicate)] == expected
        assert duplicate.input_nodes.data_ptr() != batch.input_nodes.data_ptr()
    del batch
    assert live() == before


def test_a_batch_from_a_pickle_or_from_blocks(graph):
    batch = sampled(graph)
    again = pickle.loads(pickle.dumps(batch)).torch()
    expected = [tensor.tolist() for tensor in present(batch.torch())]
    del batch
    assert [tensor.tolist() for tensor in present(again)] == expected
    made = pygsampler.MiniBatch.from_blocks([4], [4, 9], [([0, 1], [1], [0])]).torch()
    assert made.input_nodes.tolist() == [4, 9]
    assert made.blocks[0].indices.tolist() == [1]


def test_modes_of_torch_change_nothing(graph, monkeypatch):
    from torch._subclasses import FakeTensorMode

    batch = sampled(graph)

    def seen():
        found = []
        with torch.inference_mode():
            found += map(properties, present(batch.torch()))
        with torch.device("meta"):
            found += map(properties, present(batch.torch()))
        with FakeTensorMode():
            fake = batch.torch()
            found += [type(t) for t in (fake.input_nodes, fake.output_index)]
            # Parts of a tensor that is there are refused by the mode.
            with pytest.raises(Exception, match="convert all Tensors to FakeTensors"):
                _ = fake.blocks[1].src_nodes
        return found

    by_table = seen()
    without_api(monkeypatch)
    assert seen() == by_table


@need_api
def test_under_compile_tensors_are_the_same(graph):
    batch = sampled(graph)
    compiled = torch.compile(lambda: present(batch.torch()), backend="eager")
    for one, other in zip(compiled(), present(batch.torch()), strict=True):
        assert properties(one) == properties(other)


def test_a_forked_child_uses_and_drops_its_parents_tensors(graph):
    batch = sampled(graph)
    half = batch.torch()
    tensors = present(batch.torch())
    expected = [tensor.tolist() for tensor in tensors]
    child = os.fork()
    if not child:
        status = 1
        try:
            right = [t.tolist() for t in tensors] == expected
            right &= [t.tolist() for t in present(half)] == expected
            right &= [t.tolist() for t in present(batch.torch())] == expected
            del tensors, half, batch
            status = 0 if right else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert [tensor.tolist() for tensor in tensors] == expected


def test_tensors_live_at_the_end_of_the_interpreter():
    script = """if True:
        import builtins, sys, pygsampler
        graph = pygsampler.Graph.from_csc([0, 1, 2], [1, 0])
        batch = pygsampler.PGSampler([1, 1]).sample(graph, [0]).torch()
        builtins.kept = [batch.input_nodes, *(b.indptr for b in batch.blocks)]
        sys.modules["pygsampler.kept"] = builtins.kept[0].numpy()
    """
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")


def test_import_looks_for_no_table():
    script = """if True:
        import sys, pygsampler
        from pygsampler._arrays import exchange
        assert "torch" not in sys.modules
        assert exchange._TorchTable.address is None
    """
    subprocess.run([sys.executable, "-c", script], check=True)


# ---- other tables ---------------------------------------------------------------------------


class Header(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
    ]


TO_OBJECT = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.py_object))


class Table(ctypes.Structure):
    _fields_ = [
        ("header", Header),
        ("allocator", ctypes.c_void_p),
        ("from_object", ctypes.c_void_p),
        ("to_object", TO_OBJECT),
    ]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
# Where a versioned tensor has its deleter.
DELETER_AT = 16
new_capsule = ctypes.pythonapi["PyCapsule_New"]
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
keep = ctypes.pythonapi["Py_IncRef"]
keep.argtypes = [ctypes.py_object]


class Held:
    """An object of a framework that owns a tensor."""

    def __init__(self, address):
        self.address = address

    def __del__(self):
        delete(self.address)


def delete(address):
    DELETER(ctypes.c_void_p.from_address(address + DELETER_AT).value)(address)


def table(fails_at, calls_deleter):
    """A framework whose function fails once, before or after it has called the deleter."""
    calls = []

    def to_object(address, out):
        calls.append(address)
        if len(calls) > fails_at:
            if calls_deleter:
                delete(address)
            return -1
        held = Held(address)
        keep(held)
        ctypes.cast(out, ctypes.POINTER(ctypes.c_void_p))[0] = id(held)
        return 0

    return Table(Header(1, 3, None), None, None, TO_OBJECT(to_object))


def create_three(api, memory):
    words = (ctypes.c_int64 * 2)(2, 8)
    return exchange.tensors(
        ctypes.addressof(api), memory, memory.data, ctypes.addressof(words), THREE
    )


@pytest.mark.parametrize("calls_deleter", [False, True])
@pytest.mark.parametrize("fails_at", [0, 1, 2])
def test_a_failure_at_one_tensor_gives_all_back(graph, fails_at, calls_deleter):
    before = live()
    batch = sampled(graph)
    memory = batch._memory
    references = ctypes.c_int64.from_address(memory.address)
    assert references.value == 1
    with pytest.raises(RuntimeError, match="tensors: expected a tensor"):
        create_three(table(fails_at, calls_deleter), memory)
    assert references.value == 1
    del batch, memory
    assert live() == before


def test_tensors_of_another_framework_hold_one_reference(graph):
    batch = sampled(graph)
    memory = batch._memory
    references = ctypes.c_int64.from_address(memory.address)
    tensors = list(create_three(table(3, False), memory))
    assert [type(tensor) for tensor in tensors] == [Held] * 3
    while tensors:
        assert references.value == 2
        tensors.pop()
    assert references.value == 1


def capsule(*headers):
    """A capsule of the first of some tables, each of which leads to the next."""
    for one, following in pairwise(headers):
        one.previous = ctypes.addressof(following)
    return new_capsule(ctypes.addressof(headers[0]), b"dlpack_exchange_api", None)


def test_an_older_table_is_taken_where_a_newer_one_leads_to_it():
    two, one = Header(2, 0, None), Header(1, 3, None)
    assert table_address(capsule(two, one)) == ctypes.addressof(one)
    assert table_address(capsule(Header(1, 9, None))) != 0
    lone = Header(2, 0, None)
    assert table_address(capsule(lone)) == 0


def test_wrong_arguments_are_errors():
    create = library.engine().tensors
    with pytest.raises(RuntimeError, match="expected 6 arguments"):
        create(1, 2)
    with pytest.raises(TypeError):
        create(0, 0, 0, 0, 0, "text")
    with pytest.raises(TypeError):
        create(None, 0, 0, 0, 0, b"")
