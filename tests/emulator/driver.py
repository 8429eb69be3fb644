"""Launches a kernel of faults.cu through the driver of LD_LIBRARY_PATH; prints what came.

python driver.py KERNEL BLOCKS THREADS SHARED HOW
"""

import ctypes
import sys

Pointer = ctypes.c_void_p
driver = ctypes.CDLL("libcuda.so.1")


class Args(ctypes.Structure):
    _fields_ = (
        ("out", Pointer),
        ("word", Pointer),
        ("how", ctypes.c_uint),
        ("unused", ctypes.c_uint),
    )


def call(name: str, *args: object) -> None:
    result = getattr(driver, name)(*args)
    if result:
        raise SystemExit(f"{name}: {result}")


def main(name: str, blocks: int, threads: int, shared: int, how: int) -> None:
    context, module, function, out, word = Pointer(), Pointer(), Pointer(), Pointer(), Pointer()
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 40)
    call("cuCtxPushCurrent_v2", context)
    log = ctypes.create_string_buffer(1024)
    options = (ctypes.c_int * 1)(3)
    values = (Pointer * 1)(ctypes.addressof(log))
    call("cuModuleLoadDataEx", ctypes.byref(module), b"\x7fELF", 1, options, values)
    call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
    size = 4 * blocks * threads
    call("cuMemAlloc_v2", ctypes.byref(out), ctypes.c_size_t(size))
    call("cuMemAlloc_v2", ctypes.byref(word), ctypes.c_size_t(4))
    call("cuMemsetD32Async", word, 0, ctypes.c_size_t(1), None)
    args = Args(out.value, word.value, how, 0)
    parameters = (Pointer * 1)(ctypes.addressof(args))
    call(
        "cuLaunchCooperativeKernel", function, blocks, 1, 1, threads, 1, 1, shared, None, parameters
    )
    call("cuStreamSynchronize", None)
    print(*(ctypes.c_uint * (blocks * threads)).from_address(out.value or 0))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
