"""pygsampler.cuda: with no driver, with fake ones, and with the machine's own."""

from __future__ import annotations

from pathlib import Path

import pytest

import pygsampler as pgs
from tests.gpu import fake_driver, need_cuda, no_driver, run_with_driver

ASK = """
import pygsampler as pgs

def ask(question, *args):
    try:
        return question(*args)
    except Exception as error:
        return f"{type(error).__name__}: {error}"

print(pgs.cuda.is_available())
print(ask(pgs.cuda.device_count))
print(ask(pgs.cuda.driver_version))
print(ask(pgs.cuda.device_name))
print(ask(pgs.cuda.device_name, 1))
"""
# Others that ask for a device.
ASK_MORE = (
    ASK
    + """
print(ask(pgs.cuda.memory_stats))
print(ask(pgs.cuda.trim, 3))
print(ask(pgs.cuda.device_name, 2))
"""
)


@pytest.fixture(scope="module")
def fake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fake_driver(tmp_path_factory.mktemp("fake"))


def none_found(why: str) -> str:
    return f"CudaError: device: expected the CUDA device cuda:0, found {why}"


def test_without_driver(tmp_path: Path) -> None:
    lines = run_with_driver(no_driver(tmp_path), ASK_MORE).splitlines()
    error = none_found("no CUDA driver (libcuda.so.1)")
    assert lines == ["False", "0", "0", *[error] * 5]


def test_fake_driver(fake: Path) -> None:
    lines = run_with_driver(fake, ASK_MORE).splitlines()
    assert lines[:5] == ["True", "2", "12090", "Fake GPU 0", "Fake GPU 1"]
    beyond = "IndexError: {0}: expected 0 <= {0} < device_count() = 2, got {1}"
    assert lines[6:] == [beyond.format("device", 3), beyond.format("index", 2)]


def test_driver_without_devices(fake: Path) -> None:
    error = none_found("none: the driver finds no device")
    expected = ["False", "0", "12090", error, error]
    assert run_with_driver(fake, ASK, FAKE_CUDA_INIT="100").splitlines() == expected
    assert run_with_driver(fake, ASK, FAKE_CUDA_DEVICES="0").splitlines() == expected


def test_broken_driver(fake: Path) -> None:
    lines = run_with_driver(fake, ASK, FAKE_CUDA_INIT="999").splitlines()
    error = "CudaError: gpu: cuInit: CUDA_ERROR_UNKNOWN (999): unknown error"
    assert lines == ["False", error, "12090", error, error]


def test_lacking_driver(tmp_path: Path) -> None:
    lines = run_with_driver(fake_driver(tmp_path, "-DLACKING"), ASK).splitlines()
    error = (
        "CudaError: gpu: cuDeviceGetName: CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND (302): "
        "the installed driver lacks this function"
    )
    assert lines == ["True", "2", "12090", error, error]


def test_the_driver_is_opened_by_the_first_question(fake: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = f"""
from pathlib import Path
import pygsampler as pgs
from pygsampler._engine import library
pgs.cuda.__name__
library.engine()
assert not Path({str(log)!r}).exists()
assert pgs.cuda.driver_version() == 12090
assert Path({str(log)!r}).read_text() == "load\\n"
assert pgs.cuda.device_count() == pgs.cuda.device_count() == 2
"""
    run_with_driver(fake, code, FAKE_CUDA_LOG=str(log))
    assert log.read_text() == "load\ncuInit\n"


def test_first_question_from_many_threads(fake: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = """
import threading
import pygsampler as pgs
gate = threading.Barrier(8)
got = []
def ask():
    gate.wait()
    got.append((pgs.cuda.is_available(), pgs.cuda.device_name(1)))
threads = [threading.Thread(target=ask) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert got == [(True, "Fake GPU 1")] * 8, got
"""
    run_with_driver(fake, code, FAKE_CUDA_LOG=str(log))
    assert log.read_text() == "load\ncuInit\n"


def test_forked_child_asks_too(fake: Path) -> None:
    # From 3.12 on Python warns of any fork in a process with threads, Go's included.
    code = """
import os, warnings
import pygsampler as pgs
assert pgs.cuda.device_count() == 2
warnings.simplefilter("ignore", DeprecationWarning)
child = os.fork()
if child == 0:
    os._exit(0 if pgs.cuda.device_name(1) == "Fake GPU 1" else 1)
assert os.waitpid(child, 0)[1] == 0
"""
    run_with_driver(fake, code)


def test_here() -> None:
    """Whatever this machine has, the answers agree, and no question raises."""
    assert pgs.cuda.is_available() == (pgs.cuda.device_count() > 0)
    assert pgs.cuda.driver_version() >= 0


@pytest.mark.parametrize("index", [1.0, "0", None, True, [0]])
def test_index_of_wrong_type(index: object) -> None:
    with pytest.raises(TypeError, match=r"^index: expected an integer, got "):
        pgs.cuda.device_name(index)  # type: ignore[arg-type]


@pytest.mark.parametrize("index", [-1, 1 << 20, 1 << 32, 1 << 70])
def test_index_out_of_range(index: int) -> None:
    wrong = IndexError, rf"^index: expected 0 <= index < .* got {index}$"
    none = pgs.errors.CudaError, r"^device: expected the CUDA device cuda:0, found no"
    error, text = wrong if pgs.cuda.is_available() else none
    with pytest.raises(error, match=text):
        pgs.cuda.device_name(index)


def test_device() -> None:
    need_cuda()
    assert pgs.cuda.is_available()
    assert pgs.cuda.driver_version() >= 11000
    for index in range(pgs.cuda.device_count()):
        assert pgs.cuda.device_name(index)


def test_required_gpu_fails_instead_of_skipping(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pgs.cuda, "device_count", lambda: 0)
    monkeypatch.setenv("PYGSAMPLER_REQUIRE", "cuda")
    with pytest.raises(pytest.fail.Exception, match="found none"):
        need_cuda()
    monkeypatch.setenv("PYGSAMPLER_REQUIRE", "")
    with pytest.raises(pytest.skip.Exception, match="found none"):
        need_cuda()
