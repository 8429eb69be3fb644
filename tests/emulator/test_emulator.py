"""The emulator itself, and the parity tests of the Go core on it."""

from __future__ import annotations

import functools
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.emulator.build import HERE, ROOT, build, compilers
from tests.support.research import of_research

pytestmark = pytest.mark.once

FOR_EVER, EXITED, MIXED, LANES, BEYOND, TRAP = range(6)

# Go tests that are quick without a GPU and reach every kernel: of the engine and of research modes.
ENGINE = (
    "^(TestSegmentHeadsAndRows|TestSegmentMisaligned|TestSegmentAwkwardValues|TestSegmentTaken|"
    "TestEveryDegreeAndFanout|TestAwkwardGraphs|TestTagsRunOut|TestSeedOutOfRange|TestValidateSmall|"
    "TestOnceExcluded|TestOnceAwkwardGraphs|TestTreesOfTooManyVertices|TestRanksOutgrowTheirBits|"
    "TestManyInOneLaunch|TestManyTooSmall|TestManyOutTooSmall|TestManyWithABadSeed|"
    "TestManyOfDifferentKinds|TestManyThatDoNotLaunch|TestManyRunsOutOfTags|"
    r"TestDequantizeIsTheCPUs|TestGatherEveryCount|TestCache\w+)$/^(awkward|star|path)?$"
)
RESEARCH = (
    "^(TestQueueExcludes|TestQueueFetchSizes|TestReservoirDerivedThreshold|TestQueueTagsRunOut|"
    "TestQueueSeedOutOfRange|TestManyOfDifferentModes|TestTransitsFromNowhere|TestKHopFromNowhere|"
    "TestBSP|TestFused)$/^(awkward|star|path)?$"
)


@pytest.fixture(scope="module", autouse=True)
def need_compilers() -> None:
    if compilers() is None:
        pytest.skip("needs gcc and g++ (apt-get install g++)")


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("faults"), kernels=[HERE / "faults.cu"])


def launch(
    folder: Path,
    kernel: str,
    blocks: int,
    threads: int,
    shared: int,
    how: int = 0,
    **variables: str,
) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        str(HERE / "driver.py"),
        kernel,
        *map(str, (blocks, threads, shared, how)),
    ]
    environment = {**os.environ, **variables, "LD_LIBRARY_PATH": str(folder)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)


def relayed(blocks: int) -> str:
    """What relay writes: each block's sum of its threads' places, for each of its threads."""
    sums = [sum(range(128 * block, 128 * (block + 1))) for block in range(blocks)]
    return " ".join(str(s) for s in sums for _ in range(128)) + "\n"


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_blocks_threads_and_shared_memory(faults: Path, order: int) -> None:
    done = launch(faults, "relay", 6, 128, 512, EMULATOR_ORDER=str(order))
    assert (done.stdout, done.stderr) == (relayed(6), "")


def test_without_own_switch(tmp_path: Path) -> None:
    build(tmp_path, kernels=[HERE / "faults.cu"], flags=("-DEMULATOR_UCONTEXT",))
    assert launch(tmp_path, "relay", 2, 128, 512).stdout == relayed(2)


@pytest.mark.parametrize(
    ("how", "code", "reason"),
    [
        (
            FOR_EVER,
            702,
            r"nothing changes any more: 3 blocks are left; of block 0, .*64 for a word to change",
        ),
        (
            EXITED,
            717,
            r"block 0 cannot go on: of its 64 threads 1 have ended, 63 wait in __syncthreads",
        ),
        (MIXED, 717, r"waits in __syncthreads_or, others in __syncthreads"),
        (LANES, 717, r"31 in __syncwarp for lanes that do not come"),
        (BEYOND, 700, r"block 0 wrote beyond its 256 bytes of dynamic shared memory"),
        (TRAP, 719, r"__trap\(\) by thread 9 of block 0"),
    ],
)
def test_faults(faults: Path, how: int, code: int, reason: str) -> None:
    done = launch(faults, "fault", 3, 64, 256, how)
    assert done.returncode == 1
    first, last = done.stderr.splitlines()
    assert re.search(f"^emulator: kernel fault: .*{reason}", first)
    assert last == f"cuStreamSynchronize: {code}"


@pytest.mark.parametrize(
    ("blocks", "threads", "shared", "code"),
    [(7, 64, 0, 720), (1, 65, 0, 701), (1, 64, 49153, 1), (0, 64, 0, 1)],
)
def test_shapes(faults: Path, blocks: int, threads: int, shared: int, code: int) -> None:
    done = launch(faults, "fault", max(blocks, 0), threads, shared, -1 & 0xFF)
    assert done.stderr == (
        f"cuLaunchCooperativeKernel: {code}\n" if blocks else "cuMemAlloc_v2: 1\n"
    )


@pytest.mark.parametrize(
    ("how", "kinds"), [(0, ()), (1, ("WAW",)), (2, ("RAW", "WAR")), (3, ("RAW", "WAR")), (4, ())]
)
def test_hazards_in_shared_memory(tmp_path: Path, how: int, kinds: tuple[str, ...]) -> None:
    """Of one warp and of two; of threads that meet, and of atomics, there are none."""
    folder = build(tmp_path / "driver", kernels=[HERE / "faults.cu"], races=True)
    found = tmp_path / "found"
    done = launch(folder, "hazard", 1, 64, 0, how, EMULATOR_RACES=str(found))
    assert done.stderr == ""
    lines = found.read_text().splitlines() if found.exists() else []
    found_kinds = {line.split()[0] for line in lines}
    assert bool(lines) == bool(kinds) and (not kinds or found_kinds & set(kinds)), lines


# Programs that have each a shape of their own, and LABOR of graphs with types.
HAZARDS = """
import numpy as np
import pygsampler as pgs
from pygsampler import samplers
from pygsampler.samplers import layer_wise

random = np.random.default_rng(3)
src, dst, w = random.integers(0, 100, 700), random.integers(0, 100, 700), random.random(700)
graph = pgs.Graph.from_coo(src, dst, num_nodes=100, edge_data={"w": w}).to("cuda")
kind = {("v", "e", "v"): (src, dst), ("u", "e", "v"): (src, dst)}
typed = pgs.Graph.from_coo(kind, num_nodes={"v": 100, "u": 100}).to("cuda")
for sampler in (
    layer_wise.labor(fanouts=[3, 3], importance=2, seed=1),
    layer_wise.labor(fanouts=[3, 3], exact=True, weight="w", seed=1),
    samplers.ladies(nodes=[20, 20], weight="w", seed=1),
    samplers.shadow(fanouts=[3, 2], seed=1),
    samplers.saint_walk(roots=20, length=3, seed=1),
    samplers.kgcn(fanouts=[4, 8], seed=1),
):
    sampler.sample(graph, np.arange(20), epoch=0, batch=1)
for options in ({"exact": True}, {"importance": -1}):
    labor = pgs.LaborSampler([3, 2], edge_weights="ht", seed=1, **options)
    labor.sample(typed, {"v": np.arange(20)})
"""


# Samples by steps and walks, dealt to two devices and the CPU.
DEALT = """
import numpy as np
import pygsampler as pgs
from pygsampler.research import KHop, LayerSample, sample_on_devices
from pygsampler.walks import MultiRW

random = np.random.default_rng(3)
pairs = random.integers(0, 100, (2, 700))
graph = pgs.Graph.from_coo(*pairs, num_nodes=100)
devices = [graph.to("cuda:0"), graph.to("cuda:1"), graph]
for sampler in (
    KHop([3, 2], edge_ids=True, seed=1),
    KHop([3, 2], execution="transit", seed=1),
    KHop([3, 2], unique=True, seed=1),
    LayerSample([5, 4], seed=1),
    LayerSample([5, 4], unique=True, edge_ids=True, seed=1),
    pgs.RandomWalk(6, edge_ids=True, seed=1),
    pgs.RandomWalk(6, walks_per_seed=2, stop=0.1, mode_options={"layout": "csr"}, seed=1),
    pgs.RandomWalk(6, p=2.0, q=0.5, seed=1),
    pgs.RandomWalk(6, mode_options={"execution": "transit"}, seed=1),
    MultiRW(3, 8, seed=1),
):
    seeds = np.arange(60)
    got = sample_on_devices(sampler, devices, seeds, epoch=1, batch=2).numpy()
    want = sampler.sample(graph, seeds, epoch=1, batch=2).numpy()
    for name in got._descriptors:
        assert np.array_equal(got._array(name), want._array(name)), (sampler, name)

class Stay:
    next = stepTransits = lambda self, *arguments: -1
    steps = sampleSize = samplingType = lambda self, *step: 1

try:
    pgs.research.nextdoor.NextDoor(Stay()).sample(devices[0], [0])
except NotImplementedError as error:
    assert "use graph.to('cpu')" in str(error)
else:
    raise AssertionError("Python sampled a graph on a GPU")
"""


# Graphs ask for the kernels of neighbors, too.
@pytest.mark.parametrize(
    ("script", "names"),
    [
        (HAZARDS, ["hetero/labor", "hetero/hetero"]),
        *of_research(
            (DEALT, ["research/khop", "research/transit", "walk/walk", "walk/visit_counts"])
        ),
    ],
    ids=["programs", "dealt samples"],
)
def test_samples_have_no_hazards(tmp_path: Path, script: str, names: list[str]) -> None:
    """One thread writes what a block shares, and a lane what its warp does."""
    kernels = [ROOT / "kernels" / f"{name}.cu" for name in (*names, "neighbor/neighbor")]
    folder, found = build(tmp_path / "driver", kernels=kernels, races=True), tmp_path / "found"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={
            **os.environ,
            "LD_LIBRARY_PATH": str(folder),
            "PYGSAMPLER_NVRTC": str(folder / "libnvrtc.so.12"),
            "EMULATOR_RACES": str(found),
            "PYGSAMPLER_CACHE": str(tmp_path / "cache"),
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert not found.exists(), found.read_text()[-3000:]


def test_memory_runs_out(faults: Path) -> None:
    done = launch(faults, "fault", 3, 64, 256, TRAP, FAKE_CUDA_MEMORY="767")
    assert done.stderr == "cuMemAlloc_v2: 2\n"


def go_environment() -> dict[str, str]:
    """Go's environment as the extension is built with it, from the environment of the tools."""
    tools = ROOT / ".venv" / "bin" / "python"
    python = str(tools if tools.exists() else sys.executable)
    asked = subprocess.run(
        [python, "setup.py", "cgo_env"], cwd=ROOT, capture_output=True, text=True
    )
    if asked.returncode:
        pytest.skip(f"needs Go (make test-go installs it): {asked.stderr.strip()[-200:]}")
    lines = [
        shlex.split(line)[1] for line in asked.stdout.splitlines() if line.startswith("export ")
    ]
    values = dict(line.split("=", 1) for line in lines)
    path = values.pop("PATH", os.environ["PATH"]).replace("$PATH", os.environ["PATH"])
    # As the extension and `make test-go`, which have compiled most of it then.
    flags = f"{values.pop('GOFLAGS', '')} -buildmode=pie"
    return {**os.environ, **values, "PATH": path, "GOFLAGS": flags}


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Gives the program of a package's tests, which takes seconds to link."""
    folder = tmp_path_factory.mktemp("linked")

    @functools.cache
    def link(package: str) -> Path:
        binary = folder / f"{package.replace('/', '-')}.test"
        subprocess.run(
            ["go", "test", "-c", "-o", str(binary), f"./{package}"],
            cwd=ROOT,
            env=go_environment(),
            check=True,
        )
        return binary

    return link


def go_tests(binary: Path, folder: Path, package: str, tests: str, **variables: str) -> str:
    """What Go's tests of a package print whose names match, on the emulator."""
    environment = go_environment() | {
        "LD_LIBRARY_PATH": str(build(folder)),
        "PYGSAMPLER_REQUIRE": "cuda",
        "FAKE_CUDA_DEVICES": "1",
        "FAKE_CUDA_BLOCKS": "3",
        **variables,
    }
    done = subprocess.run(
        [str(binary), "-test.v", f"-test.run={tests}"],
        cwd=ROOT / package,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("order", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("package", "tests", "results"),
    [
        (
            "pygsampler/internal/engine/cuda",
            ENGINE,
            "TestSegmentTaken TestEveryDegreeAndFanout TestManyInOneLaunch TestGatherEveryCount "
            "TestCacheHoldsWhatIsPut TestCacheAdmitsWhatIsRead TestValidateSmall",
        ),
        (
            "pygsampler/internal/research/cuda",
            RESEARCH,
            "TestBSP/awkward TestFused/awkward TestQueueExcludes TestManyOfDifferentModes "
            "TestTransitsFromNowhere TestKHopFromNowhere",
        ),
    ],
)
def test_parity(
    linked: Callable[[str], Path],
    tmp_path: Path,
    package: str,
    tests: str,
    results: str,
    order: int,
) -> None:
    """The kernels give the CPU's batches, in the usual order of threads and in another."""
    printed = go_tests(linked(package), tmp_path, package, tests, EMULATOR_ORDER=str(order))
    for test in results.split():
        assert re.search(rf"--- PASS: {test} ", printed), f"{test} did not run"


@pytest.mark.parametrize(
    ("package", "tests"),
    [
        (
            "pygsampler",
            "TestDeviceBatches|TestOutTooSmall|TestDeviceJobsEnd|TestDeviceErrors|"
            "TestEveryDriverCallFails|TestDeviceMemory|TestPeerArrays|TestPeerArraysWithFaults",
        ),
        ("bridge", "TestOneGetsTheDeviceResult|TestPinnedGraphThroughBridge|TestDeviceGather"),
        ("pygsampler/internal/compiler", "TestGenerated|TestGeneratedWrong"),
        ("bridge", "TestDeviceSegments"),
    ],
)
def test_device_jobs(
    linked: Callable[[str], Path], tmp_path: Path, package: str, tests: str
) -> None:
    """From the core and from the bridge, with each call of the driver failing; kernels that are
    generated."""
    nvrtc = str(tmp_path / "libnvrtc.so.12")
    program = linked(package)
    printed = go_tests(program, tmp_path, package, f"^({tests})$", PYGSAMPLER_NVRTC=nvrtc)
    for test in tests.split("|"):
        assert re.search(rf"--- PASS: {test} ", printed), f"{test} did not run"
