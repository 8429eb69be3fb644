"""Importing it lets tensors on the host stand in for those that torch would allocate on a device.

For scripts on the emulator; its tests have the fixture ``host_tensors``.
"""

from __future__ import annotations

from pygsampler._sampling import device_job
from tests.support.host_tensors import allocate

device_job.allocate = allocate
