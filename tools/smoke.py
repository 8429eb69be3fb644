#!/usr/bin/env python3
"""What an installed wheel must do at once, on a machine that has neither Go nor a compiler.

Import, sample, fork and sample there, hand arrays to NumPy without a copy, and pass the doctor.
Prints one line of JSON: the interpreter, and the digest of what was sampled, which is the same for
all builds.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path


def sample() -> str:
    """The digest of a batch of three hops on the embedded graph, after a look at its edges."""
    import numpy as np

    import pygsampler as pgs
    from pygsampler.datasets import debian

    edges = debian().graph()
    indptr, indices = np.from_dlpack(edges.indptr), np.from_dlpack(edges.indices)
    graph = pgs.Graph.from_csc(indptr, indices)
    seeds = np.arange(0, graph.num_nodes, 61)
    batch = pgs.PGSampler([5, 10, 15], seed=7).sample(graph, seeds, epoch=1, batch=2)
    digest = hashlib.sha256()
    nodes = np.from_dlpack(batch.input_nodes)
    assert np.array_equal(nodes[np.sort(np.unique(nodes, return_index=True)[1])], nodes)
    for block in batch.blocks:
        src, ids = np.from_dlpack(block.indices), np.from_dlpack(block.edge_ids)
        assert np.shares_memory(src, np.from_dlpack(block.indices)), "DLPack copied"
        rows = np.repeat(np.from_dlpack(block.dst_nodes), np.diff(np.from_dlpack(block.indptr)))
        assert len(ids) > len(seeds)
        assert np.array_equal(indices[ids], nodes[src])
        assert ((indptr[rows] <= ids) & (ids < indptr[rows + 1])).all()
        for array in (src, ids):
            digest.update(array.astype("<i8").tobytes())
    digest.update(nodes.astype("<i8").tobytes())
    return digest.hexdigest()[:16]


def child() -> str:
    """The same in a forked child, which loads an engine of its own."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.write(writing, sample().encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading) as answer:
        text = answer.read()
    assert os.waitpid(pid, 0)[1] == 0
    return text


def main() -> None:
    for tool in ("go", "gcc", "cc", "clang", "zig"):
        assert shutil.which(tool) is None, f"{tool} is on PATH, so that nothing is shown"
    import pygsampler

    assert Path(pygsampler.__file__).is_relative_to(sys.prefix), pygsampler.__file__
    assert not {"numpy", "pygsampler._core._bridge"} & set(sys.modules)
    digest = sample()
    assert child() == digest
    doctor = [sys.executable, "-m", "pygsampler", "doctor", "--json"]
    found = subprocess.run(doctor, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr
    assert not json.loads(found.stdout)["problems"], found.stdout
    command = [str(Path(sys.executable).with_name("pygsampler")), "--help"]
    assert "doctor" in subprocess.run(command, capture_output=True, text=True, check=True).stdout
    print(json.dumps({"python": platform.python_version(), "sample": digest}))


if __name__ == "__main__":
    main()
