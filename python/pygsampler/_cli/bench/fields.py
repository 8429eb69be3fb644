"""Fields: the contenders of each measure that sample by the same rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pygsampler._cli.bench.contenders import Loader, OneBatch

# The nodes that a hop expands: all nodes of the batch, its new nodes, or each seed's new nodes.
RULES = {"all": "all nodes", "new": "new nodes", "trees": "new nodes per seed"}


@dataclass
class Field:
    """Contenders of a measure that share a frontier.

    `libraries` has the library of each contender that needs another one; `peers` are the names of
    those that are not ours.
    """

    measure: str
    contenders: list[Any] = field(default_factory=list)
    libraries: dict[str, str] = field(default_factory=dict)
    peers: list[str] = field(default_factory=list)

    def peer(self, library: str, *contenders: Any) -> None:
        """Adds contenders of another library."""
        self.peers += [contender.name for contender in contenders]
        self.adapter(library, *contenders)

    def adapter(self, library: str, *contenders: Any) -> None:
        """Adds contenders of ours that need another library."""
        self.contenders += contenders
        self.libraries |= {contender.name: library for contender in contenders}

    def drop(self, name: str) -> None:
        """Removes another library's contender, and with its last those of ours that need it."""
        library = self.libraries.pop(name)
        self.peers.remove(name)
        names = {name}
        if not any(self.libraries[peer] == library for peer in self.peers):
            names |= {each for each, needed in self.libraries.items() if needed == library}
        self.contenders = [each for each in self.contenders if each.name not in names]

    @property
    def baselines(self) -> list[str]:
        """The names of those to whose fastest ratios are: peers, or without any the first."""
        return self.peers or [each.name for each in self.contenders[:1]]

    @property
    def frontier(self) -> str:
        """The nodes that a hop expands, as `Contender` has it."""
        frontier: str = self.contenders[0].frontier
        return frontier


def fields(
    measure: str, libraries: Sequence[str], device: str, *, include_ours: bool, remarks: list[str]
) -> list[Field]:
    """Returns the comparisons of a measure with these installed libraries.

    With `include_ours` our contenders are compared with each other if no library samples by the
    rule of DGL. Remarks about libraries that take part are added to `remarks`.
    """
    devices = ["cpu"] if device == "cpu" else ["cpu", device]
    make = {"sampling": _sampling, "loader": _loaders, "step": _steps}[measure]
    on_gpu = False
    if device != "cpu" and "dgl" in libraries:
        from pygsampler._cli.bench import frameworks

        on_gpu = frameworks.dgl_runs_on(device)
        text = "this DGL was built without CUDA: it runs on the CPU alone"
        if not on_gpu and text not in remarks:
            remarks.append(text)
    found = make(libraries, devices, devices if on_gpu else ["cpu"])
    return [each for each in found if each.peers or (include_ours and each is found[0])]


def _sampling(libraries: Sequence[str], devices: list[str], dgl_devices: list[str]) -> list[Field]:
    every, new, trees = (Field("sampling") for _ in range(3))
    if "dgl" in libraries:
        from pygsampler._cli.bench import frameworks

        every.peer("dgl", *(frameworks.DglSampler(device) for device in dgl_devices))
        every.peer("dgl", *(frameworks.DglSampler(each, pinned=True) for each in dgl_devices[1:]))
    if "torch-cluster" in libraries:
        from pygsampler._cli.bench.torch_cluster import ClusterSampler

        every.peer("torch-cluster", ClusterSampler())
    every.contenders += [form(device=device) for device in devices for form in (OneBatch, Loader)]
    every.contenders += [OneBatch(device, pinned=True) for device in devices[1:]]
    if "dgl" in libraries:
        every.adapter("dgl", frameworks.DglAdapter())
    if "pyg" in libraries:
        from pygsampler._cli.bench import frameworks

        new.peer("pyg", frameworks.PygSampler())
    if "cugraph" in libraries:
        from pygsampler._cli.bench.cugraph import CugraphSampler

        new.peer("cugraph", *(CugraphSampler(device) for device in devices[1:]))
    new.contenders += [OneBatch(device, frontier="new") for device in devices]
    if "pyg" in libraries:
        new.adapter("pyg", frameworks.PygAdapter())
    if "kumo" in libraries:
        from pygsampler._cli.bench.kumo import KumoSampler, TableSampler

        trees.peer("kumo", KumoSampler())
        trees.contenders += [TableSampler(), OneBatch(frontier="trees")]
    return [every, new, trees]


def _loaders(libraries: Sequence[str], devices: list[str], dgl_devices: list[str]) -> list[Field]:
    from pygsampler._cli.bench.loaders import DglLoader, PygLoader, TorchLoader

    every, new = Field("loader"), Field("loader")
    if "dgl" in libraries:
        every.peer("dgl", *(DglLoader(device) for device in dgl_devices))
        every.peer("dgl", *(DglLoader(device, pinned=True) for device in dgl_devices[1:]))
    every.contenders += [TorchLoader(device) for device in devices]
    every.contenders += [TorchLoader(device, pinned=True) for device in devices[1:]]
    if "dgl" in libraries:
        every.adapter("dgl", *(DglLoader(device, ours=True) for device in dgl_devices))
    if "pyg" in libraries:
        new.peer("pyg", *(PygLoader(device) for device in devices))
        new.adapter("pyg", *(PygLoader(device, ours=True) for device in devices))
    return [every, new]


def _steps(libraries: Sequence[str], devices: list[str], dgl_devices: list[str]) -> list[Field]:
    from pygsampler._cli.bench.steps import DglStep, PygStep, TorchStep

    every, new = Field("step"), Field("step")
    if "dgl" in libraries:
        every.peer("dgl", *(DglStep(device) for device in dgl_devices))
    every.contenders += [TorchStep(device) for device in devices]
    if "dgl" in libraries:
        every.adapter("dgl", *(DglStep(device, ours=True) for device in dgl_devices))
    if "pyg" in libraries:
        for device in devices:
            new.peer("pyg", PygStep("as it is", device), PygStep("trimmed", device))
        new.adapter("pyg", *(PygStep("blockwise", device) for device in devices))
    return [every, new]
