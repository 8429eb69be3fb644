#!/usr/bin/env python3
"""Tries an installed wheel, on a machine that has neither Go nor a compiler.

The wheel has to import, sample, fork and sample in the child, hand arrays to NumPy without a copy,
train a few steps (with torch where it is installed, else by NumPy), and pass the doctor. Prints one
line of JSON: the versions, how training went, and the digest of a sample, which is the same for all
builds.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any


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


STEPS = 12


def train() -> list[float]:
    """The losses of some steps of a linear model on the mean of sampled neighbors' features."""
    import numpy as np

    import pygsampler as pgs
    from pygsampler.datasets import debian

    packages = debian()
    graph, x = packages.graph(), np.asarray(packages.features(), dtype=np.float32)
    labels, ids = np.asarray(packages.labels), np.asarray(packages.train)
    weight = np.zeros((2 * x.shape[1], packages.num_classes), dtype=np.float32)
    step = torch_step(x, labels) if torch_is_there() else numpy_step(x, labels, weight)
    sampler = pgs.PGSampler([10], seed=7)
    return [
        step(sampler.sample(graph, ids[at * 512 : at * 512 + 512], epoch=0, batch=at))
        for at in range(STEPS)
    ]


def torch_is_there() -> bool:
    return importlib.util.find_spec("torch") is not None


def numpy_step(x: Any, labels: Any, weight: Any) -> Callable[[Any], float]:
    """A step of gradient descent on softmax regression, in place on ``weight``."""
    import numpy as np

    def step(batch: Any) -> float:
        block, nodes = batch.blocks[0], np.from_dlpack(batch.input_nodes)
        indptr, sources = np.from_dlpack(block.indptr), np.from_dlpack(block.indices)
        own = nodes[: block.num_dst_nodes]
        rows = np.repeat(np.arange(len(own)), np.diff(indptr))
        means = np.zeros((len(own), x.shape[1]), dtype=np.float32)
        np.add.at(means, rows, x[nodes[sources]])
        means /= np.maximum(np.diff(indptr), 1)[:, None]
        inputs = np.concatenate([x[own], means], axis=1)
        scores = np.exp(inputs @ weight)
        chances = scores / scores.sum(axis=1, keepdims=True)
        right = np.arange(len(own)), labels[own]
        loss = float(-np.log(chances[right]).mean())
        chances[right] -= 1
        weight[:] -= inputs.T @ chances * (2 / len(own))
        return loss

    return step


def torch_step(x: Any, labels: Any) -> Callable[[Any], float]:
    """The same by torch, on the tensors of a batch."""
    import torch

    features, targets = torch.from_numpy(x), torch.from_numpy(labels)
    model = torch.nn.Linear(2 * x.shape[1], int(targets.max()) + 1)
    torch.nn.init.zeros_(model.weight)
    torch.nn.init.zeros_(model.bias)
    optimizer = torch.optim.SGD(model.parameters(), lr=2)

    def step(batch: Any) -> float:
        made = batch.torch()
        inputs = features[made.input_nodes]
        block = made.blocks[0]
        scores = model(torch.cat([inputs[: block.num_dst_nodes], block.mean(inputs)], dim=1))
        loss = torch.nn.functional.cross_entropy(scores, targets[made.output_nodes])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def child() -> str:
    """The same in a forked child, which loads an engine of its own."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # Python warns of a fork beside other threads, such as those of the engine: this is tried.
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
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
    assert not {"numpy", "pygsampler._engine._bridge"} & set(sys.modules)
    digest = sample()
    assert child() == digest
    doctor = [sys.executable, "-m", "pygsampler", "doctor", "--json"]
    found = subprocess.run(doctor, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr
    assert not json.loads(found.stdout)["problems"], found.stdout
    command = [str(Path(sys.executable).with_name("pygsampler")), "--help"]
    assert "doctor" in subprocess.run(command, capture_output=True, text=True, check=True).stdout
    losses = train()
    assert losses[-1] < 0.9 * losses[0], losses
    report = {"python": platform.python_version(), "sample": digest}
    for partner in ("numpy", "torch"):
        if importlib.util.find_spec(partner) is not None:
            report[partner] = importlib.metadata.version(partner)
    print(json.dumps({**report, "losses": [round(losses[0], 3), round(losses[-1], 3)]}))


if __name__ == "__main__":
    main()
