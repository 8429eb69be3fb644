"""PyG's data modules for PyTorch Lightning with our sampler in them."""

from __future__ import annotations

import inspect
from typing import Any

from torch_geometric.data import lightning as of_pyg

from pygsampler.pyg.neighbor_sampler import PGSampler

__all__ = ["LightningLinkData", "LightningNodeData"]


def __dir__() -> list[str]:
    return sorted(__all__)


class LightningNodeData(of_pyg.LightningNodeData):  # type: ignore[misc]
    """``torch_geometric.data.LightningNodeData`` with pygsampler's engine: change the import only.

    Takes PyG's arguments, needs neither pyg-lib nor torch-sparse, and gives PyG's batches. With the
    default ``loader="neighbor"`` and no ``node_sampler`` it makes a ``PGSampler`` of those
    arguments that it has; ``seed`` and ``device`` are among them. ``graph_sampler`` has it, for
    ``set_epoch``. ``input_train_edges`` and such, and all that Lightning needs, is PyG's:
    ``torch_geometric.data.LightningDataset`` samples no graph, and needs nothing of ours.

    Raises
    ------
    ModuleNotFoundError
        Without PyTorch Lightning.
    NotImplementedError, TypeError, ValueError
        As the samplers.
    """

    def __init__(self, data: Any, *arguments: Any, **options: Any) -> None:
        given = inspect.signature(of_pyg.LightningNodeData).bind(data, *arguments, **options)
        super().__init__(**_sampled(data, given, "node_sampler"))


class LightningLinkData(of_pyg.LightningLinkData):  # type: ignore[misc]
    """Replaces ``torch_geometric.data.LightningLinkData``, with a sampler of ours.

    It does for ``loader="link_neighbor"`` or ``"neighbor"``, and ``link_sampler``, what
    ``LightningNodeData`` does for nodes.
    """

    def __init__(self, data: Any, *arguments: Any, **options: Any) -> None:
        given = inspect.signature(of_pyg.LightningLinkData).bind(data, *arguments, **options)
        super().__init__(**_sampled(data, given, "link_sampler"))


def _sampled(data: Any, arguments: inspect.BoundArguments, name: str) -> dict[str, Any]:
    """The arguments with a sampler of ours, where PyG would make one of its own."""
    plain = dict(arguments.arguments)
    more = plain.pop("kwargs", {})
    loader = plain.get("loader", "neighbor")
    if plain.get(name) is None and loader in ("neighbor", "link_neighbor"):
        known = inspect.signature(PGSampler).parameters
        chosen = {key: value for key, value in more.items() if key in known}
        more = {key: value for key, value in more.items() if key not in known}
        if chosen.get("device") is None and more.get("num_workers"):
            # Workers cannot use their parent's GPU.
            chosen["device"] = "cpu"
        plain[name] = PGSampler(data, **chosen)
    return {**plain, **more}
