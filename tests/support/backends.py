"""A plugin of pytest: the parameter ``backend`` of tests, ``cpu``, ``emulator`` or ``cuda``.

A test that names the fixture ``backend`` runs on all of them, or on those of its marker
``backends``. Tests with ``emulator`` run in a companion process (tests/support/companion.py), and
only where that plugin is registered: a machine with a GPU needs no emulator.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.research import HAS_RESEARCH

BACKENDS = ("cpu", "emulator", "cuda")
# The folder whose tests compare a device with the CPU.
ON_DEVICES = ("emulator", "cuda")


def pytest_configure(config: pytest.Config) -> None:
    # tests/conftest.py appends this folder too, but a machine with a GPU runs without that file.
    sys.path.append(str(Path(__file__).parent))
    for line in (
        f"backends(*names): where a test runs, of {', '.join(BACKENDS)}",
        "gpu: runs on a GPU, so `make gpu-check` runs it",
        "once: depends on no partner, so `make test` runs it with the current ones alone",
        "research: uses pygsampler.research, and is left out where the package has none",
        "slow: takes long, and others cover its subject in part: `make test SLOW=yes` runs it",
    ):
        config.addinivalue_line("markers", line)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not HAS_RESEARCH:
        left = [item for item in items if not item.get_closest_marker("research")]
        config.hook.pytest_deselected(items=[*{*items} - {*left}])
        items[:] = left


@pytest.hookimpl(tryfirst=True)  # The backend is the first word of a test's parameters.
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "backend" not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker("backends")
    names = ON_DEVICES if "cuda" in metafunc.fixturenames else BACKENDS
    names = marker.args if marker else names
    if "torch" in metafunc.fixturenames:
        # It does not take the emulator for a GPU.
        names = tuple(name for name in names if name != "emulator")
    if not metafunc.config.pluginmanager.has_plugin("companions"):
        names = tuple(name for name in names if name != "emulator")
    marks = {"cuda": pytest.mark.gpu}
    if "host_tensors" not in metafunc.fixturenames:
        # Without `host_tensors` the tests use no package of the environment but NumPy.
        marks["emulator"] = pytest.mark.once
    params = [pytest.param(name, marks=marks.get(name, ())) for name in names]
    # By module: what a module makes once stays while its tests on one of them run.
    metafunc.parametrize("backend", params, indirect=True, scope="module")


@pytest.fixture(scope="module")
def backend(request: pytest.FixtureRequest) -> str:
    """Returns the backend that the test runs on, or skips the test if a device is missing."""
    from tests.gpu import need_cuda  # not with pytest itself: it imports the package

    name: str = request.param
    if name != "cpu":
        need_cuda()
    return name


@pytest.fixture(scope="module")
def device(backend: str) -> str:
    """The device of ``Graph.to`` that the backend stands for."""
    return "cpu" if backend == "cpu" else "cuda"


@pytest.fixture
def host_tensors(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the emulator tensors on the host stand in for those that torch makes on a GPU."""
    from tests.support.partners import partner

    torch = partner("torch")
    if backend == "emulator":
        from tests.support.host_tensors import stand_in

        stand_in(monkeypatch)
    elif backend == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a torch that is built for CUDA")
