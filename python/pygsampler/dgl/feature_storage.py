"""``FeatureStorage``: features of ours as a column of a DGL graph."""

from __future__ import annotations

from typing import Any

import torch
from dgl import storages

from pygsampler._arrays.tensors import as_tensor
from pygsampler._features.features import Features
from pygsampler._features.read_many import read_many

__all__ = ["FeatureStorage"]


class FeatureStorage(storages.FeatureStorage):  # type: ignore[misc]
    """``dgl.storages.FeatureStorage`` over ``pygsampler.Features``: a column of a graph's frame.

    Features may be in a mapped file, and larger than memory:

        g.ndata["x"] = FeatureStorage(Features.open("products.pgs", "x"))
        sampler = PGSampler([10, 10], prefetch_node_feats=["x"])

    Blocks then have the rows of their nodes as ``srcdata["x"]``, prefetched by DGL's ``DataLoader``
    or read when they are first asked for, and likewise ``g.edata`` and ``prefetch_edge_feats``.
    ``loader.attach_data("y", storage)`` takes it too. Operations that do not read by rows, such as
    message passing over the whole graph, need a tensor: ``g.ndata["x"][:]``.

    Parameters
    ----------
    features : Features, or what ``Features.from_tensor`` takes
        A row for each node or edge. A column has the device of the graph, as DGL requires.

    Raises
    ------
    TypeError, ValueError
        For an object that is no array with rows.
    IndexError
        For an id that is no row.
    """

    def __init__(self, features: Any) -> None:
        self.features = Features.from_tensor(features)

    @property
    def shape(self) -> torch.Size:
        """(N, ...)."""
        return torch.Size(self.features.shape)

    @property
    def dtype(self) -> torch.dtype:
        """torch's."""
        dtype: torch.dtype = getattr(torch, self.features.dtype)
        return dtype

    @property
    def device(self) -> torch.device:
        """The device that the rows are read on."""
        return torch.device(self.features.device)

    def dim(self) -> int:
        """The number of dimensions."""
        return len(self.features.shape)

    def fetch(
        self, indices: torch.Tensor, device: Any, pin_memory: bool = False, **kwargs: Any
    ) -> Any:
        """Returns the rows of ``indices`` on ``device``, for DGL's loader.

        Parameters
        ----------
        indices : tensor of int32 or int64, shape [N]
            Ids of rows.
        device : str or torch.device
            The device of the result.
        pin_memory, **kwargs
            DGL's arguments, for copies to ``device``.

        Returns
        -------
        PendingColumn or torch.Tensor
            On the CPU a ``PendingColumn``, read by idle cores of the engine until its ``wait()``;
            else a tensor.
        """
        if self.features._where() < 0:
            return PendingColumn(self.features, indices.cpu(), device, pin_memory)
        return self[indices].to(device, **kwargs)

    def is_pinned(self) -> bool:
        """False: DGL's own kernels cannot read them over the link."""
        return False

    def to(self, device: Any, **kwargs: Any) -> FeatureStorage:
        """A copy on the device; this where it is there already."""
        features = self.features.to(str(torch.device(device)))
        return self if features is self.features else FeatureStorage(features)

    def cpu(self) -> FeatureStorage:
        """Returns the rows read on the CPU, as ``to`` does."""
        return self.to("cpu")

    def cuda(self, **kwargs: Any) -> FeatureStorage:
        """Returns the rows read on the current device, as ``to`` does."""
        return self.to(torch.device("cuda", torch.cuda.current_device()))

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, index: Any) -> torch.Tensor:
        """The rows of ids, a tensor; or of a slice."""
        if isinstance(index, slice):
            shown: torch.Tensor = self.features._read_all()[index]
            return shown
        return read_many([(self.features, as_tensor(index))], check=True)[0]

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        # DGL reads a column by index_select. The name is compared, since PyG replaces the function.
        if function.__name__ == "index_select":
            storage, dim, ids = args
            if dim == 0 and isinstance(storage, cls):
                out = (kwargs or {}).get("out")
                if out is None or storage.features._where() >= 0:
                    rows = storage[ids]
                    return rows if out is None else out.copy_(rows)
                return storage.features.read(ids, out)
        raise TypeError(
            f"FeatureStorage: expected rows to be asked for, got torch.{function.__name__}; "
            "storage[:] is a tensor of all of them"
        )

    def __repr__(self) -> str:
        return f"FeatureStorage({self.features!r})"


class PendingColumn:
    """Rows on their way to a device."""

    __slots__ = ("_device", "_out", "_reading")

    def __init__(
        self, features: Features, ids: torch.Tensor, device: Any, pin_memory: bool
    ) -> None:
        self._device = torch.device(device)
        self._out = None
        if pin_memory and self._device.type != "cpu":
            shape = len(ids), *features.shape[1:]
            self._out = torch.empty(shape, dtype=getattr(torch, features.dtype), pin_memory=True)
        self._reading = features._reading(ids, self._out)

    def wait(self) -> torch.Tensor:
        """The rows, once they are there."""
        rows: torch.Tensor = self._reading.wait()
        return rows.to(self._device, non_blocking=self._out is not None)
