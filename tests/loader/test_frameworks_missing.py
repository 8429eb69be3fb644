"""Without its framework an adapter says how to get it."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "missing", "text"),
    [
        ("pygsampler.torch", "torch", "pygsampler.torch needs PyTorch: pip install"),
        ("pygsampler.evaluate", "torch", "pygsampler.evaluate needs PyTorch: pip install"),
        ("pygsampler.dgl", "torch", "pygsampler.dgl needs DGL: pip install"),
        ("pygsampler.dgl", "dgl", "pygsampler.dgl needs DGL: pip install"),
        ("pygsampler.pyg", "torch", "pygsampler.pyg needs PyG: pip install"),
        ("pygsampler.pyg", "torch_geometric", "pygsampler.pyg needs PyG: pip install"),
    ],
)
def test_the_error_names_the_install_line(module: str, missing: str, text: str) -> None:
    script = f"import sys; sys.modules[{missing!r}] = None; import {module}"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ended.returncode == 1
    assert f"ImportError: {text} " in ended.stderr
