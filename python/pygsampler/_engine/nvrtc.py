"""Candidate paths of NVRTC, which compiles kernels at run time; their existence is not checked.

The engine tries them in this order at the first compilation, after PYGSAMPLER_NVRTC and before the
paths of the dynamic linker.
"""

from __future__ import annotations

import os
import sys

# The older first: a driver takes no code of a later CUDA than its own. In a folder of packages:
# nvidia-cuda-nvrtc-cu12, nvidia-cuda-nvrtc (of CUDA 13), then what torch brings in its own folder.
_IN_PACKAGES = (
    "nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
    "nvidia/cu13/lib/libnvrtc.so.13",
    "torch/lib/libnvrtc.so.12",
    "torch/lib/libnvrtc.so.13",
)
_NAMES = ("libnvrtc.so.12", "libnvrtc.so.13")


def nvrtc_candidates() -> list[str]:
    """Files that may be NVRTC, the best first."""
    # A relative folder would be another one wherever the process goes.
    packages = [folder for folder in sys.path if os.path.isabs(folder)]
    found = [os.path.join(folder, name) for name in _IN_PACKAGES for folder in packages]
    # Conda's, then that of a tool kit.
    folders = [os.path.join(sys.prefix, "lib")]
    folders += [
        os.path.join(root, "lib64")
        for root in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda")
        if root and os.path.isabs(root)
    ]
    found += [os.path.join(folder, name) for name in _NAMES for folder in folders]
    return list(dict.fromkeys(found))
