"""Remedies for an error, as far as the driver's number says it."""

from __future__ import annotations

import re

REPORT = (
    "report it with the output of python -m pygsampler doctor --json: "
    "https://github.com/pygsampler/pygsampler/issues"
)
# Machine code of CUDA 12 runs from this driver on.
OLDEST_DRIVER = 12000
UPDATE = "update the NVIDIA driver: 525 is the oldest that will do"

_BY_CODE = {
    2: "the device's memory is in use: nvidia-smi lists the processes that have it",
    3: "this process was forked from one that had used CUDA: start it with the spawn method, "
    "or sample on the CPU in it",
    35: UPDATE,
    46: "another process has the device for itself: end it, or nvidia-smi -c DEFAULT",
    101: "name existing devices in CUDA_VISIBLE_DEVICES, or none",
    200: UPDATE,
    209: UPDATE,
    218: UPDATE,
    221: "the driver came without its compiler, libnvidia-ptxjitcompiler.so.1: install it",
    222: UPDATE,
    302: UPDATE,
    500: UPDATE,
    802: "the machine's NVLink switches are not up: systemctl start nvidia-fabricmanager",
    803: "libcuda.so.1 and the kernel's module are of different versions: restart the machine, "
    "or the container with the libraries of its host",
    804: "take the folder of a cuda-compat package out of LD_LIBRARY_PATH",
    999: "the kernel's module has lost the device: modprobe -r nvidia_uvm && modprobe nvidia_uvm, "
    "or restart the machine; dmesg says more",
}


def remedy(error: object) -> str:
    """Returns the remedy of an error of the driver layer, ``gpu: call: NAME (code): text``."""
    found = re.search(r"gpu: \w+: \w+ \((\d+)\)", str(error))
    return _BY_CODE.get(int(found[1]) if found else 0, REPORT)
