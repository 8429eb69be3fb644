"""``NodeIds``: ids of nodes on a GPU that take rows of tensors on any device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch_geometric.data import Data

__all__ = ["NodeIds", "for_inference"]

_INDEXING = {torch.Tensor.__getitem__, torch.Tensor.__setitem__}
# Results of these are the same ids on some device.
_MOVES = {torch.Tensor.to, torch.Tensor.cpu, torch.Tensor.cuda}


class NodeIds(torch.Tensor):
    """A tensor of ids that, as an index, goes to the device of the tensor whose rows it takes.

    The ``inference`` of PyG's models takes rows of a tensor on ``embedding_device``, the CPU by
    default, by ``batch.n_id``, which is on the GPU if the GPU samples; with ``cache=True`` PyG
    itself moves ``n_id`` to the model's device. Torch alone accepts an index on the CPU, or on the
    device of the tensor. Copies on other devices are ``NodeIds`` too, all other results are plain
    tensors.
    """

    @classmethod
    def __torch_function__(
        cls,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            if func in _INDEXING:
                values, index, *rows = args
                if isinstance(index, tuple):
                    index = tuple(_on_device_of(values, each) for each in index)
                args = values, _on_device_of(values, index), *rows
            found = func(*args, **(kwargs or {}))
            if func in _MOVES and isinstance(args[0], cls) and not found.is_floating_point():
                found = found.as_subclass(cls)
        return found

    def __deepcopy__(self, memo: dict[int, Any]) -> NodeIds:
        found = self.clone().as_subclass(NodeIds)
        memo[id(self)] = found
        return found


def for_inference(batch: Any, loader: Any) -> None:
    """Makes ``n_id`` of a batch ``NodeIds`` if PyG's ``inference`` takes the loader.

    Its seeds are all nodes, and it has one hop.
    """
    data = loader.data
    # LABOR's and samplers of one's own have no such list.
    hops = getattr(loader.node_sampler, "num_neighbors", None)
    if (
        isinstance(data, Data)
        and len(loader.dataset) == data.num_nodes
        and hops is not None
        and len(hops) == 1
    ):
        batch.n_id = batch.n_id.as_subclass(NodeIds)


def _on_device_of(values: torch.Tensor, index: Any) -> Any:
    return index.to(values.device) if isinstance(index, NodeIds) else index
