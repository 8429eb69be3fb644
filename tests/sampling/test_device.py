"""Graphs, arrays and batches on a device, from Python: without a driver, and on the emulator.

tests/cuda asks a GPU, or the emulator, whether the batches are right.
"""

from __future__ import annotations

import textwrap

import torch

from pygsampler._arrays import devices
from tests.gpu import no_driver, run_with_driver
from tests.support.device_scripts import run


def test_names_of_devices():
    assert [devices.parse(d) for d in ("cpu", "cuda", "cuda:0", "cuda:12", 3)] == [-1, 0, 0, 12, 3]
    assert devices.parse(torch.device("cuda", 2)) == 2
    assert devices.parse(torch.device("cuda")) == 0
    assert [devices.name(i) for i in (-1, 0, 4)] == ["cpu", "cuda:0", "cuda:4"]
    assert devices.current_stream(0) == 0


def test_without_a_driver(tmp_path):
    lines = run(
        no_driver(tmp_path),
        """
        for work in (cpu.to, cpu.pin):
            print(error(work, "cuda"))
        print(cpu.to("cpu") is cpu)
        copy = pickle.loads(pickle.dumps(pgs.Graph._later(cpu, 0, False)))
        print(copy)
        print(error(sampler.sample, copy, SEEDS))
        print(lists(sampler.sample(copy.to("cpu"), SEEDS, batch=2)) == want)
        """,
    )
    found = "found no CUDA driver (libcuda.so.1)"
    error = f"CudaError: device: expected the CUDA device cuda:0, {found}"
    shown = f"Graph(num_nodes=200, num_edges={lines[3].split('=')[2].split(',')[0]}, "
    assert lines == [error, error, "True", f"{shown}dtype=int64, device=cuda:0)", error, "True"]


def test_a_device_graph_goes_back_to_the_one_it_was_made_from(emulator):
    lines = run(
        emulator,
        """
        there, second = cpu.to("cuda"), cpu.to("cuda:1")
        print(there.device, second.device, there.pinned, there.indptr.device, there.edge_ids)
        print(there.to(0) is there, there.to("cpu") is cpu, second.to(0).to("cpu") is cpu)
        print(there.dtype == cpu.dtype, there.num_nodes == cpu.num_nodes)
        print(there.indices.cpu().tolist() == cpu.indices.tolist())
        for g in (there, second):
            print(lists(sampler.sample(g, SEEDS, batch=2)) == want)
        print(error(cpu.to, "cuda:2"))
        cpu.close()
        back = there.to("cpu")
        print(back.device, lists(sampler.sample(back, SEEDS, batch=2)) == want)
        there.close()
        print(there, error(sampler.sample, there, SEEDS), error(there.to, "cpu"), sep="|")
        """,
    )
    closed = "ClosedError: graph: expected an open graph, got one that was closed"
    assert lines == [
        "cuda:0 cuda:1 False cuda:0 None",
        "True True True",
        "True True",
        "True",
        "True",
        "True",
        "CudaError: device: expected the CUDA device cuda:2, found 2 of them",
        "cpu True",
        f"Graph(closed)|{closed}|{closed}",
    ]


def test_a_pinned_graph_stays_on_the_host(emulator):
    lines = run(
        emulator,
        """
        pinned = cpu.pin()
        print(pinned.device, pinned.pinned, repr(pinned).endswith("device=cuda:0, pinned)"))
        print(pinned.indices.numpy().ctypes.data == cpu.indices.numpy().ctypes.data)
        print(pinned.pin() is pinned, pinned.to("cpu") is cpu, cpu.to("cuda").pin().pinned)
        batch = sampler.sample(pinned, SEEDS, batch=2)
        print(batch.device, lists(batch) == want)
        pinned.close()
        print(pinned._source._pins, error(sampler.sample, pinned, SEEDS))
        import torch
        tensors = [torch.tensor(part.tolist()) for part in (cpu.indptr, cpu.indices)]
        moving = pgs.Graph.from_csc(*tensors).pin()
        before = moving._source._pins
        for tensor in tensors:
            tensor.share_memory_()
        print(lists(sampler.sample(moving, SEEDS, batch=2)) == want)
        print(moving._source._pins is not before, moving.indices._address == tensors[1].data_ptr())
        again = cpu.pin("cuda:1")
        print(again.device, lists(sampler.sample(again, SEEDS, batch=2)) == want)
        """,
    )
    assert lines == [
        "cuda:0 True True",
        "True",
        "True True True",
        "cuda:0 True",
        "None ClosedError: graph: expected an open graph, got one that was closed",
        "True",
        "True True",
        "cuda:1 True",
    ]


def test_arrays_on_a_device_make_a_graph_there(emulator):
    lines = run(
        emulator,
        """
        class Interface:
            # What numba's arrays have.
            def __init__(self, array):
                self.__cuda_array_interface__ = array.__cuda_array_interface__

        class Capsules:
            def __init__(self, array):
                self.array = array
            def __dlpack_device__(self):
                return self.array.__dlpack_device__()
            def __dlpack__(self, **options):
                assert options.pop("stream") == 1
                return self.array.__dlpack__(**options)

        there = cpu.to("cuda")
        for how in (lambda a: a, Interface, Capsules):
            born = pgs.Graph.from_csc(how(there.indptr), how(there.indices))
            print(born.device, born.indices._address == there.indices._address)
            seeds = sampler.sample(there, SEEDS, batch=0).output_nodes
            print(lists(sampler.sample(born, how(seeds), batch=2)) == want)
            print(lists(sampler.sample(born.to("cpu"), SEEDS, batch=2)) == want)
        del there
        print(lists(sampler.sample(born, SEEDS, batch=2)) == want)
        other = cpu.to("cuda:1")
        seeds = sampler.sample(other, SEEDS).output_nodes
        for work in (
            lambda: pgs.Graph.from_csc(born.indptr, other.indices),
            lambda: pgs.Graph.from_csc(born.indptr, cpu.indices),
            lambda: pgs.Graph.from_csc(cpu.indptr, born.indices),
            lambda: pgs.Graph.from_coo(born.indices, born.indices),
            lambda: pgs.Graph.from_csc(born.indptr, born.indices[1:]),
            lambda: sampler.sample(born, seeds),
            lambda: sampler.sample(cpu, seeds),
            lambda: sampler.sample(cpu, Interface(seeds)),
        ):
            print(error(work))
        """,
    )
    assert lines[:10] == ["cuda:0 True", "True", "True"] * 3 + ["True"]
    edges = lines[14].rsplit(" ", 1)[1]
    copy = 'copy it to the CPU, or sample graph.to("cuda:1")'
    kind = "expected a one-dimensional array of int32 or int64 in CPU memory"
    assert lines[10:14] == [
        "ValueError: indices: expected an array on cuda:0, as indptr is, got one on cuda:1",
        "ValueError: indices: expected an array on cuda:0, as indptr is, got one on cpu",
        "ValueError: indices: expected an array on cpu, as indptr is, got one on cuda:0",
        f"ValueError: src: {kind}, got one on cuda:0; .cpu() first",
    ]
    assert lines[14].startswith("ValueError: indptr") and edges.isdigit()
    assert lines[15] == (
        "ValueError: seeds: expected an array on the CPU or on cuda:0, as the graph is, "
        "got one on cuda:1"
    )
    assert lines[16] == (
        "ValueError: seeds: expected an array on the CPU, as the graph is, got one on cuda:1; "
        + copy
    )
    # This interface does not name a device: it is the first.
    assert lines[17] == lines[16].replace("cuda:1", "cuda:0")


def test_a_forked_child_says_what_to_do(emulator):
    lines = run(
        emulator,
        """
        there, pinned = cpu.to("cuda"), cpu.pin()
        born = pgs.Graph.from_csc(there.indptr, there.indices)
        later = pgs.Graph._later(cpu, 0, False)
        batch = sampler.sample(there, SEEDS)
        for g in (there, pinned, born):
            print(in_child(lambda: sampler.sample(g, SEEDS)))
            print(in_child(lambda: sampler.submit(g, SEEDS)))
            print(in_child(lambda: sampler.sample_many(g, [SEEDS])))
        print(in_child(lambda: lists(sampler.sample(there.to("cpu"), SEEDS, batch=2)) == want))
        print(in_child(lambda: lists(sampler.sample(pinned.to("cpu"), SEEDS, batch=2)) == want))
        print(in_child(lambda: pickle.loads(pickle.dumps(there)).to("cpu").num_edges > 0))
        print(in_child(lambda: born.to("cpu")))
        def drop():
            global there, batch
            del there, batch
            gc.collect()
        print(in_child(drop))
        print(lists(sampler.sample(there, SEEDS, batch=2)) == want)
        """,
    )
    text = (
        "CudaError: graph: expected one of this process, got one that its parent has on cuda:0, "
        'which a forked child cannot use; sample graph.to("cpu") here, or start workers with '
        '"spawn"'
    )
    assert lines == [text] * 9 + ["True"] * 3 + [text, "None", "True"]


def test_a_pickled_graph_goes_to_its_device_when_it_is_used(emulator):
    lines = run(
        emulator,
        """
        for g in (cpu.to("cuda"), cpu.to("cuda:1"), cpu.pin()):
            copy = pickle.loads(pickle.dumps(g))
            print(copy.device == g.device, copy.pinned == g.pinned, repr(copy) == repr(g))
            print(copy._source._number)
            print(lists(sampler.sample(copy, SEEDS, batch=2)) == want, copy._source._number == 0)
            again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(g))))
            print(again.indices.device, again._source._number == 0)
        batch = sampler.sample(copy, SEEDS, batch=2)
        print(error(pickle.dumps, batch))
        print(error(pickle.dumps, batch.input_nodes))
        print(lists(pickle.loads(pickle.dumps(batch.cpu()))) == want)
        closed = cpu.to("cuda")
        closed.close()
        print(error(pickle.dumps, closed))
        """,
    )
    assert lines[:12] == [
        "True True True",
        "0",
        "True False",
        "cuda:0 False",
        "True True True",
        "0",
        "True False",
        "cuda:1 False",
        "True True True",
        "0",
        "True False",
        "cpu False",
    ]
    assert lines[12:] == [
        "TypeError: MiniBatch.pickle: expected a batch on the CPU, got one on cuda:0; "
        ".cpu() copies it",
        "TypeError: Array: expected one on the CPU, got one on cuda:0; .cpu() copies it",
        "True",
        "ClosedError: graph: expected an open graph, got one that was closed",
    ]


def test_memory_is_given_back_with_its_last_view(emulator):
    lines = run(
        emulator,
        """
        there = cpu.to("cuda")
        batch = sampler.sample(there, SEEDS, batch=2)
        before = handed_over()
        indices = batch.blocks[0].indices[1:]
        del batch
        print(handed_over() == before)
        capsule = indices.__dlpack__()
        interface = indices.__cuda_array_interface__
        arrow = indices.__arrow_c_device_array__()
        print(interface["stream"], interface["typestr"], interface["shape"] == indices.shape)
        del indices, arrow
        print(handed_over() == before)
        del capsule
        print(handed_over() < before)
        job = sampler.submit(there, SEEDS)
        del job
        print(handed_over("flights"))
        with there:
            pass
        print(handed_over() < before)
        pgs.cuda.trim()
        print(handed_over("workspaces"), error(pgs.cuda.memory_stats, 2), error(pgs.cuda.trim, "0"))
        """,
    )
    assert lines == [
        "True",
        "1 <i8 True",
        "True",
        "True",
        "0",
        "True",
        "0 IndexError: device: expected 0 <= device < device_count() = 2, got 2 "
        "TypeError: device: expected an integer, got str '0'",
    ]


def test_jobs_and_many_batches(emulator):
    lines = run(
        emulator,
        """
        there = cpu.to("cuda")
        seeds = sampler.sample(there, SEEDS).output_nodes
        job = sampler.submit(there, seeds, epoch=1, batch=2)
        print(job.result() is job.result(), job, sep="|")
        job = sampler.submit(there, SEEDS)
        job.cancel()
        print(error(job.result))
        print(error(sampler.submit(there, [1, 200]).result))
        batches = [SEEDS, seeds, [], *([i] for i in range(9))]
        many = sampler.sample_many(there, batches, epoch=1, batch=5)
        hosts = [b.cpu() if isinstance(b, pgs.Array) else b for b in batches]
        same = sampler.sample_many(cpu, hosts, epoch=1, batch=5)
        print([lists(b) for b in many] == [lists(b) for b in same], [b.batch for b in many])
        excluded = pgs.PGSampler([9], seed=0).sample(there, SEEDS).blocks[0].edge_ids
        for g in (there, cpu.pin(), pgs.Graph.from_csc(there.indptr, there.indices)):
            without = lists(sampler.sample(g, SEEDS, batch=2, exclude=excluded))
            print(without == lists(sampler.sample(cpu, SEEDS, batch=2, exclude=excluded.cpu())))
        """,
    )
    assert lines == [
        "True|Job(epoch=1, batch=2, done)",
        "Error: job: expected a job on its way, got one that was cancelled",
        "IndexError: seeds[1]: expected an id in [0, 200), got 200",
        f"True {list(range(5, 17))}",
        "True",
        "True",
        "True",
    ]


def test_many_batches_are_several_launches(emulator):
    """Which set is wrong is said, nothing stays, and seeds of another stream are waited for."""
    lines = run(
        emulator,
        """
        there = cpu.to("cuda")
        sets = [[i, i + 1] for i in range(40)]

        def same(sets):
            many = sampler.sample_many(there, sets, epoch=0, batch=0)
            one = [lists(sampler.sample(cpu, ids, epoch=0, batch=i)) for i, ids in enumerate(sets)]
            return [lists(batch) for batch in many] == one

        print(all(same(sets[:n]) for n in (1, 7, 8, 9, 16, 17, 31, 32, 33, 40)))
        sets[37] = [3, 200]
        print(error(sampler.sample_many, there, sets))
        sets[21] = [0.5]
        print(error(sampler.sample_many, there, sets))

        class Elsewhere:
            "An array that becomes ready in a stream that is not the current one."

            def __init__(self, ids):
                self._ids = pgs.Graph.from_csc([0, len(ids)], ids, num_nodes=200).to("cuda").indices

            @property
            def __cuda_array_interface__(self):
                return {**self._ids.__cuda_array_interface__, "stream": 2}

        mixed = [[5, 6], Elsewhere([7, 8, 9]), [1]]
        made = [lists(b) for b in sampler.sample_many(there, mixed, epoch=0, batch=0)]
        same = [[5, 6], [7, 8, 9], [1]]
        print(made == [lists(sampler.sample(cpu, ids, epoch=0, batch=i))
                       for i, ids in enumerate(same)])
        print(error(sampler.sample_many, there, [[1], Elsewhere([0]), [200]]))
        print(handed_over("flights"), library.memory_stats()["jobs"])
        """,
    )
    assert lines == [
        "True",
        "IndexError: seeds[37][1]: expected an id in [0, 200), got 200",
        "TypeError: seeds[21][0]: expected an integer, got float 0.5",
        "True",
        "IndexError: seeds[2][0]: expected an id in [0, 200), got 200",
        "0 0",
    ]


def test_a_batch_in_torchs_memory(emulator):
    """Host memory in place of what torch would allocate there: all memory is the emulator's."""
    lines = run(
        emulator,
        """
        import torch
        from pygsampler._sampling import device_job
        sizes = []
        def allocate(size, bits, device):
            sizes.append(size)
            words = (size + 7) // 8
            dtype, count = (torch.int64, words) if bits == 64 else (torch.int32, 2 * words)
            return torch.full((count,), -1, dtype=dtype)
        device_job.allocate = allocate

        def tensors(batch):
            blocks = [
                (b.indptr, b.indices, b.edge_ids, b.src_nodes, b.dst_nodes) for b in batch.blocks
            ]
            return [batch.input_nodes, batch.output_nodes, batch.output_index, *sum(blocks, ())]

        for ids in (np.int32, np.int64):
            for edge_ids in (None, np.int32, np.int64):
                host = graph(ids, edge_ids)
                there = host.to("cuda")
                plain = sampler.sample(host, SEEDS, epoch=0, batch=2).torch()
                for own in (False, True):
                    how = dict(form="torch", asynchronous=own)
                    job = sampler.launch(there, SEEDS, epoch=0, batch=2, **how)
                    batch = job.result()
                    assert job.done() and job.result() is batch
                    # Nothing is made before it is used but the one tensor.
                    assert set(vars(batch)) == {"_source", "epoch", "batch"}
                    slots = {"_source", "_place"}
                    assert set(vars(batch.blocks[0])) == slots
                    assert batch.blocks[0].indptr is batch.blocks[0].indptr
                    assert not hasattr(batch, "_made") and not hasattr(batch.blocks[0], "indptrs")
                    moved, copy = batch.to("meta"), pickle.loads(pickle.dumps(batch))
                    regions = {t.untyped_storage().data_ptr() for t in tensors(batch)}
                    assert len(regions) == 1
                    for made in (batch, copy):
                        for mine, theirs in zip(tensors(made), tensors(plain), strict=True):
                            assert mine.dtype == theirs.dtype and mine.tolist() == theirs.tolist()
                    for mine, theirs in zip(tensors(moved), tensors(plain), strict=True):
                        assert mine.is_meta and mine.shape == theirs.shape
                    for mine, theirs in zip(batch.blocks, plain.blocks, strict=True):
                        assert repr(mine) == repr(theirs)
                        assert mine.edge_index.tolist() == theirs.edge_index.tolist()
                        assert mine.edge_index is mine.edge_index
                        assert mine.coo()[0] is mine.indices and mine.coo()[1] is mine.coo()[1]
                        for a, b in zip(mine.coo(), theirs.coo(), strict=True):
                            assert a.dtype == b.dtype and a.tolist() == b.tolist()
                    for mine, theirs in zip(copy.blocks, plain.blocks, strict=True):
                        assert mine.edge_index.tolist() == theirs.edge_index.tolist()
                    assert moved.blocks[0].edge_index.shape[0] == 2
                    fresh = sampler.launch(there, SEEDS, **IN_FLIGHT).result()
                    for mine, theirs in zip(fresh.blocks, plain.blocks, strict=True):
                        assert mine.coo()[1].tolist() == theirs.coo()[1].tolist()
                        assert mine.edge_index.tolist() == theirs.edge_index.tolist()
                    assert repr(batch) == repr(plain)
                source = there._source
                source._capacity = dict.fromkeys(source._capacity, 8)
                del sizes[:]
                job = sampler.launch(there, SEEDS, **IN_FLIGHT)
                assert job.result().input_nodes.tolist() == plain.input_nodes.tolist()
                assert sizes[0] == 8 and len(sizes) > 1, sizes
                assert list(source._capacity.values())[0] >= sizes[-1]
        job = sampler.launch(there, SEEDS, **IN_FLIGHT)
        job.cancel()
        print(error(job.result))
        print(error(sampler.launch(there, [200], **IN_FLIGHT).result))
        print(error(sampler.launch, there, 7, **IN_FLIGHT)[:40])
        job = sampler.launch(there, SEEDS, **IN_FLIGHT)
        del job
        print(handed_over("flights"))
        """,
    )
    assert lines == [
        "Error: job: expected a job on its way, got one that was cancelled",
        "IndexError: seeds[0]: expected an id in [0, 200), got 200",
        "TypeError: seeds: expected a one-dimensi",
        "0",
    ]


def test_programs_in_torchs_memory(emulator):
    """Blocks, values and what is beside them, and subgraphs, of a program's kernel."""
    script = """
        import numpy as np
        import torch
        import pygsampler as pgs
        from pygsampler import samplers
        from pygsampler._sampling import device_job

        def allocate(size, bits, device):
            words = (size + 7) // 8
            dtype, count = (torch.int64, words) if bits == 64 else (torch.int32, 2 * words)
            return torch.full((count,), -1, dtype=dtype)
        device_job.allocate = allocate

        @pgs.program
        def layer(A, seeds, K):
            C = A[:, seeds]
            p = (C * C).sum(axis=1)
            B = C.collective_sample(K, p)
            return [A[:, B.row()].individual_sample(3), B], {"p": p, "rows": B.row()}

        def lists(batch):
            found = [batch.input_nodes, batch.output_nodes, batch.output_index]
            found += batch.extra.values()
            for block in batch.blocks:
                found += [block.indptr, block.indices, block.edge_ids, *block.edge_data.values()]
            return [(x.dtype, x.tolist()) for x in found], list(batch.extra)

        random = np.random.default_rng(1)
        src, dst = random.integers(0, 200, 1500), random.integers(0, 200, 1500)
        data = {"w": random.random(1500)}
        for ids in (np.int32, np.int64):
            ends = src.astype(ids), dst.astype(ids)
            host = pgs.Graph.from_coo(*ends, num_nodes=200, edge_data=data)
            there, seeds = host.to("cuda"), np.array([3, 5, 7, 100, 5], ids)
            shadow = samplers.shadow(fanouts=[3, 2], seed=1)
            for sampler in (layer(K=9, weight="w", seed=2), shadow):
                want = sampler.sample(host, seeds, epoch=0, batch=2).torch()
                for own in (False, True):
                    how = dict(form="torch", asynchronous=own)
                    job = sampler.launch(there, seeds, epoch=0, batch=2, **how)
                    made = job.result()
                    assert type(made) is type(want) and lists(made) == lists(want)
                print(type(made).__name__, list(made.extra))
    """
    given = {"MALLOC_MMAP_THRESHOLD_": "1024"}
    lines = run_with_driver(emulator, textwrap.dedent(script), **given).splitlines()
    assert lines == ["MiniBatch ['p', 'rows']", "Subgraph []"] * 2


def test_a_batch_of_a_hundred_types_is_one_launch(emulator, tmp_path):
    """Whatever samples it, in the driver's own words, from the second batch of a kind on."""
    log = tmp_path / "calls"
    lines = run(
        emulator,
        """
        random, kinds = np.random.default_rng(0), [f"t{i}" for i in range(100)]
        edges = {}
        for i in range(200):
            name = kinds[random.integers(100)], f"r{i}", kinds[random.integers(100)]
            edges[name] = tuple(random.integers(0, 50, (2, 200)))
        data = {name: {"t": np.arange(200) % 9, "w": np.ones(200)} for name in edges}
        nodes = dict.fromkeys(kinds, 50)
        there = pgs.Graph.from_coo(edges, num_nodes=nodes, edge_data=data).to("cuda")
        seeds, times = {kind: [1, 2] for kind in kinds}, {kind: [5, 7] for kind in kinds}

        def launches():
            with open(os.environ["FAKE_CUDA_LOG"]) as log:
                return sum("Launch" in line for line in log)

        carried = pgs.samplers.Temporal("t", carry="edge")
        samplers = {
            pgs.PGSampler([3, 3], seed=1): {},
            pgs.PGSampler([3, 3], prob="w", disjoint=True, seed=1): {},
            pgs.PGSampler([3, 3], temporal=carried, seed=1): {"seed_time": times},
            pgs.LaborSampler([3, 3], seed=1, edge_weights="ht"): {},
            pgs.samplers.HGTSampler(dict.fromkeys(kinds, [3, 3]), seed=1): {},
        }
        for one, more in samplers.items():
            one.sample(there, seeds, **more)
            before = launches()
            batch = one.sample(there, seeds, batch=1, **more)
            print(launches() - before, batch.num_edges > 1000)
        """,
        FAKE_CUDA_LOG=str(log),
    )
    assert lines == ["1 True"] * 5
