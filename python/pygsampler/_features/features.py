"""``Features``: rows of values for nodes or edges, read by their ids."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from pygsampler._arrays import devices
from pygsampler._arrays.array import Array, _copy_to_device, as_array
from pygsampler._arrays.dtypes import KINDS
from pygsampler._arrays.ids import IdView, as_ids, has_moved, is_tensor
from pygsampler._engine import memory as memories
from pygsampler._engine.checks import describe, integer
from pygsampler._features.cache import CacheOptions, FeatureCache, Policy
from pygsampler._features.gather import GatherJob, GatherPart, PendingRead, gather_on_device
from pygsampler._features.quantization import (
    Quantization,
    at_lines,
    check_choices,
    file_room,
    quantize_rows,
    read_scheme,
    scheme_arrays,
)
from pygsampler._features.scatter import check_rows, scatter_rows
from pygsampler._graph import device as device_graph
from pygsampler._graph import shared_arrays
from pygsampler._graph.graph import Graph, is_homogeneous
from pygsampler.errors import ClosedError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import torch

    from pygsampler._engine.progress import Progress

__all__ = ["Features", "PendingRead"]


def __dir__() -> list[str]:
    return sorted(__all__)


_MOST_THREADS = (1 << 31) - 1
# The number of calls of `update` in this process: other features may be views of the same memory.
_updates = 0


class Features:
    """Rows of values of one dtype and shape, one for each node or edge.

    ``from_tensor`` uses an array without a copy, and ``open`` maps an array of a graph file, which
    may be larger than memory. ``to`` copies the rows to a GPU and ``pin`` lets a GPU read them in
    page-locked host memory; ``cache`` also stores the most read rows on the GPU. ``features[ids]``
    copies rows: on the CPU with all idle cores of the engine, on a GPU by one kernel. Bytes are
    copied unchanged, so any dtype will do, and NaNs keep their payload.

    Loaders take them, as they take plain arrays, and read the rows of coming batches ahead:
    ``pygsampler.torch.DataLoader(..., features={"x": features})``.

    Threads may read them at once, and so may forked children where they are on the CPU. A pickle
    has their array: a file by its path, a torch tensor through shared memory. ``close()`` releases
    the array; later use raises ClosedError.
    """

    __slots__ = (
        "__weakref__",
        "_array",
        "_cache",
        "_copies",
        "_counts",
        "_host",
        "_pins",
        "_quantization",
        "_scales",
        "_shared",
    )

    # None once closed. Pinned features have the array on the host.
    _array: Array | None
    # The scheme by which the array stores rows in fewer bits; None if they are stored as they are.
    _quantization: Quantization | None
    # The scales, on the device where the rows are read.
    _scales: Array | None
    # The registration that page-locks the array for a device.
    _pins: device_graph.PinnedArrays | None
    # The features that these were copied from to their device.
    _host: Features | None
    # The device's cache of a pinned array.
    _cache: FeatureCache | None
    # All that page-lock or cache the array, and so may have copies of rows that are written to.
    _copies: WeakSet[Features]
    # The number of devices that share the array; 0 if it is not shared.
    _shared: int
    # The number of reads, and of the rows read.
    _counts: list[int]

    def __init__(self) -> None:
        raise TypeError("Features: use from_tensor or open")

    @classmethod
    def _from_array(cls, values: Array, quantization: Quantization | None = None) -> Features:
        if not values.shape:
            raise ValueError("features: expected an array of one dimension or more, got a number")
        features = object.__new__(cls)
        features._array = values
        features._quantization = quantization
        features._scales = None
        features._pins = None
        features._host = None
        features._shared = 0
        features._cache = None
        features._copies = WeakSet()
        features._counts = [0, 0]
        return features

    @classmethod
    def from_tensor(cls, values: Any) -> Features:
        """Returns features of an array without a copy: row i belongs to node or edge i.

        Parameters
        ----------
        values : array of shape [N, ...]
            A NumPy array, a torch tensor on the CPU or a GPU, an ``Array``, or an object that
            speaks the buffer protocol or DLPack, of bool, int8 to int64, uint8 to uint64, float16
            to float64 or bfloat16. An array that is not contiguous is copied once.

        Raises
        ------
        TypeError
            For another object or dtype.
        """
        if isinstance(values, Features):
            return values
        if getattr(values, "requires_grad", False) is True:
            raise ValueError(
                "features: expected values without gradients, since rows are copied, got a "
                f"{type(values).__name__} with requires_grad=True; to train it take its rows in "
                "the loop, weight[batch.input_nodes], else give weight.detach()"
            )
        if callable(getattr(values, "parameters", None)):
            raise TypeError(
                f"features: expected an array, got the module {type(values).__name__}; to train it "
                "call it in the loop, embedding(batch.input_nodes)"
            )
        if isinstance(values, Array):
            return cls._from_array(values._in_order())
        if is_tensor(values) and values.is_cuda:
            return cls._from_array(_of_cuda(values))
        return cls._from_array(as_array(values, "features"))

    @classmethod
    def open(cls, path: Any, name: str) -> Features:
        """Maps the array ``name`` of the graph file ``path``, as ``Graph.save`` writes it.

        ``name`` is one of ``graph.ndata``, ``graph.edata`` or ``graph.file_arrays``, in this order;
        the file is mapped, so nothing is read before it is used and all processes share the pages
        that were read. Quantized features are quantized again: ``graph.save(path, arrays={"x":
        features})``.

        Raises
        ------
        OSError, ValueError
            If there is no such file, or it is no graph file.
        KeyError
            For a name that it does not have.
        """
        graph = Graph.open(path)
        if not graph.is_homogeneous:
            raise ValueError(
                f"{path}: expected a homogeneous graph, got a heterogeneous one; Graph.open(path) "
                "has its arrays by type, and Features.from_tensor takes one of them"
            )
        for named in (graph.ndata, graph.edata, graph.file_arrays):
            if name in named:
                return cls._from_array(named[name], read_scheme(named, name))
        have = sorted({*graph.ndata, *graph.edata, *graph.file_arrays})
        raise KeyError(f"name: expected one of {have} in {path}, got {name!r}")

    def quantize(
        self,
        dtype: str,
        per: str = "row",
        *,
        read_as: str = "float32",
        progress: Progress = False,
    ) -> Features:
        """Returns a copy whose rows are stored in fewer bits, and read as floats again.

        Reading is that of other features: on the CPU, pinned and cached for a GPU, on one or
        shared by several. Over a link and in caches there are the stored bytes, and scales are on
        the GPU. Stored rows of up to 128 bytes are padded with zeros where that lets each lie in
        one line of memory, by at most a third, and ``nbytes`` counts the padding. A value ``x`` of
        a row or column whose greatest size is ``m`` is read as one within these bounds, and rounded
        once more where it is read as 16 bits:

        ============== =========== ===================== ===================================
        dtype          bytes/value error                 what else is stored
        ============== =========== ===================== ===================================
        float16        2           abs(x) / 2**11        infinities, NaN; beyond 65504 infinite
        bfloat16       2           abs(x) / 2**8         infinities, NaN
        float8_e4m3    1           abs(x) / 2**4         NaN; below m / 28672 error m / 458752
        int8           1           m / 254
        int4           1/2         m / 14
        ============== =========== ===================== ===================================

        ``float8_e4m3`` is E4M3 of OFP8 (Open Compute Project, 2023), of which the greatest value
        is 448. Zeros stay zeros.

        Parameters
        ----------
        dtype : str
            One of the table.
        per : str
            The values that have a scale of float32 in common: those of a ``"row"`` or of a
            ``"column"``. float16 and bfloat16 have none.
        read_as : str
            The dtype that rows are read as: ``"float32"``, ``"float16"`` or ``"bfloat16"``.
        progress : bool or function
            True shows a bar of tqdm when it takes more than two seconds; a function is called with
            the rows that are done and in all.

        Raises
        ------
        TypeError
            For features that are no floats.
        ValueError
            For another ``dtype``, ``per`` or ``read_as``; for features that are quantized or not on
            the CPU; for infinities, and NaN but in float8_e4m3, with the row.
        """
        check_choices(dtype, per, read_as)
        known = self._open_array()
        if self._quantization is not None:
            raise ValueError(
                f"quantize: expected features that are not quantized, got {self!r}; quantize the "
                "original features"
            )
        if self._where() >= 0:
            raise ValueError(
                f"quantize: expected features on the CPU, got {self!r}; quantize before to, pin, "
                "cache and share"
            )
        return Features._from_array(*quantize_rows(known, dtype, per, read_as, progress))

    def _quantize_in_file(self, dtype: str, folder: Path, progress: Progress) -> Features:
        """Returns what ``quantize(dtype)`` does, in pages of a file in the folder."""
        room = file_room(folder)
        return Features._from_array(
            *quantize_rows(self._open_array(), dtype, "row", "float32", progress, room)
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """(N, ...): the number of rows, and the shape of one."""
        known, scheme = self._open_array(), self._quantization
        return known.shape if scheme is None else (len(known), *scheme.shape)

    @property
    def dtype(self) -> str:
        """NumPy's name of the dtype that rows are read as, or ``"bfloat16"``."""
        known, scheme = self._open_array(), self._quantization
        return known.dtype if scheme is None else scheme.read_as

    @property
    def stored_dtype(self) -> str:
        """The dtype that rows are stored as: ``dtype``, or that of ``quantize``."""
        known, scheme = self._open_array(), self._quantization
        return known.dtype if scheme is None else scheme.dtype

    @property
    def device(self) -> str:
        """The device that reads the rows: ``"cpu"``, or the GPU that has or pins them."""
        return devices.name(self._where())

    @property
    def pinned(self) -> bool:
        """True if a device reads them in page-locked host memory."""
        self._open_array()
        return self._pins is not None

    @property
    def cached(self) -> int:
        """The number of rows that a cache on the device has room for; 0 without one."""
        self._open_array()
        return 0 if self._cache is None else self._cache.table.places

    @property
    def nbytes(self) -> int:
        """Bytes of all rows as they are stored, with their scales."""
        known, scheme = self._open_array(), self._quantization
        scales = None if scheme is None else scheme.scales
        return known.nbytes + (0 if scales is None else scales.nbytes)

    def __len__(self) -> int:
        return len(self._open_array())

    def __getitem__(self, ids: Any) -> Any:
        """The rows of ``ids``: see ``read``."""
        return self.read(ids)

    def read(self, ids: Any, out: Any = None) -> Any:
        """The rows of ``ids``, shape [len(ids), ...], in their order.

        Parameters
        ----------
        ids : int32 or int64, shape [n]
            Rows in [0, N), where the features are or on the CPU.
        out : array of shape [n, ...], optional
            Contiguous, of this dtype and on this device, to be written to, and returned.

        Returns
        -------
        torch.Tensor or Array
            A tensor for ids that are one, else an ``Array``; on the device of the features. On a
            GPU it is complete for work in torch's current stream, and torch allocates it.

        Raises
        ------
        TypeError, ValueError
            For ids or ``out`` of another dtype, shape or device.
        IndexError
            For an id that is no row.
        """
        place = self._where()
        if place < 0:
            return self._reading(ids, out, prompt=True).wait()
        return self._read_on_device(ids, out, place)

    def read_async(self, ids: Any, *, threads: int = 0) -> PendingRead:
        """Starts to read rows on the CPU, and returns a pending read.

        Parameters
        ----------
        ids : int32 or int64, shape [n]
            Ids of rows, which must not change until the read has ended.
        threads : int
            The most cores that read; 0 for all that are idle.

        Returns
        -------
        PendingRead
            Its ``wait()`` returns the rows.
        """
        threads = integer(threads, "threads", 0, _MOST_THREADS)
        if self._where() >= 0:
            raise ValueError(
                f"read_async: expected features on the CPU, got ones on {self.device}, "
                "where read() waits for nothing"
            )
        return self._reading(ids, None, threads=threads)

    def update(self, values: Any, ids: Any) -> None:
        """Writes ``values``, shape [n, ...] or one row, into the rows of ``ids``.

        They are written into the array of the features, and into the copies of ``pin`` and
        ``cache`` of these features; for a repeated id one of its values stays. Files are read-only:
        ValueError.
        """
        known = self._open_array()
        if self._quantization is not None:
            raise ValueError(
                "update: expected features that are not quantized, got ones of "
                f"{self.stored_dtype}; update the original features, and quantize them again"
            )
        if known.readonly or self._in_file():
            raise ValueError("update: expected features that can be written to, got read-only ones")
        if known._device < 0 and is_tensor(ids):
            ids = ids.cpu()
        scatter_rows(known, values, ids)
        global _updates
        _updates += 1
        for each in list(self._copies):
            each._renew(ids)

    def _renew(self, ids: Any) -> None:
        """Copies the rows of ``ids`` anew from the array that they were copied of."""
        pins, known = self._pins, self._array
        if pins is None or known is None:
            return
        if pins.copies:
            at = memories.address_of(memoryview(pins.copies[0]))
            shape = len(known), self._row_bytes()
            scatter_rows(_bytes(at, shape, pins.copies[0]), _read_bytes(known, shape, ids), ids)
        if self._cache is not None:
            self._cache.table.refresh(self._ids(ids, devices.CPU), pins.addresses[0])

    def to(self, device: Any) -> Features:
        """A copy on the device, complete on return; these where they are there already.

        CudaError where the device cannot be used or has no room.
        """
        index = devices.parse(device)
        known = self._open_array()
        if index == known._device and self._pins is None:
            return self
        if index < 0:
            return Features._from_array(known.cpu(), self._quantization)
        if known._device >= 0 and known._device != index:
            known = known.cpu()
        devices.require(index)
        made = Features._from_array(_copy_to_device(known.cpu(), index), self._quantization)
        made._prepare()
        made._host = self
        return made

    def share(
        self, devices: Iterable[Any], *, replicate: float = 0.0, graph: Graph | None = None
    ) -> tuple[Features, ...]:
        """Returns the rows in the memory of several GPUs, each of which reads all of them.

        The layout is that of ``Graph.share``: a part for each GPU, and a copy of a share of the
        rows for all. They are read-only.

        Parameters
        ----------
        devices, replicate
            See ``Graph.share``.
        graph : Graph, optional
            The graph whose nodes have the rows: all GPUs have copies of the rows of nodes with most
            out-edges, in units of 2 MiB or more. Without it they have copies of the first rows.

        Returns
        -------
        tuple of Features
            One for each device, in their order.

        Raises
        ------
        TypeError, ValueError, CudaError
            For the reasons of ``Graph.share``; ValueError for a graph with another number of nodes.
        """
        known = self._open_array().cpu()
        group, heat = (
            shared_arrays.device_group(devices, replicate),
            row_access_counts(graph, known),
        )
        made = []
        for place in range(len(group.devices)):
            shared = group.array_for(place, known, heat)
            made.append(self._shared_as(shared, len(group.devices)))
        return tuple(made)

    def _prepare(self) -> None:
        """Has the scales where the rows are read, which a graph of launches cannot bring there."""
        if self._quantization is not None:
            self._scales = self._quantization.scales_on(self._where())

    def _shared_as(self, values: Array, num_devices: int) -> Features:
        """Returns these rows as so many devices share them."""
        made = Features._from_array(values, self._quantization)
        made._prepare()
        made._host, made._shared = self, num_devices
        return made

    def pin(self, device: Any = "cuda") -> Features:
        """Returns the rows page-locked in place, for reads by the GPU ``device`` over its link.

        Pages of a file are copied first. They stay locked as long as the returned features live.
        CudaError if the system does not allow it.
        """
        return self._pinned_for(device, "pin")

    def _pinned_for(self, device: Any, what: str) -> Features:
        index = devices.parse(device)
        if index < 0:
            raise ValueError(f"device: expected a CUDA device to {what} for, got {device!r}")
        known = self._open_array()
        if known._device >= 0:
            raise ValueError(
                f"features: expected ones on the CPU to {what}, got ones on {self.device}"
            )
        devices.require(index)
        made = Features._from_array(known, self._quantization)
        made._pins = device_graph.pin([known], index)
        made._prepare()
        made._copies = self._copies
        made._copies.add(made)
        return made

    def cache(
        self,
        device: Any = "cuda",
        *,
        rows: int | None = None,
        bytes: int | None = None,
        policy: Policy = "degree",
        graph: Graph | None = None,
        epochs: int | None = None,
    ) -> Features:
        """Returns the rows page-locked, as ``pin`` does, the most read of them also on the GPU.

        The choice of rows changes only the speed of reads, never their values: one launch reads a
        row from the GPU's memory if it is cached, and else over the link. If the memory is not
        enough the cache gets half as many rows, as often as need be, and a warning of the logger
        ``"pygsampler"`` has the number.

        Parameters
        ----------
        device : str, int or torch.device
            The GPU.
        rows, bytes : int
            The number of rows of the cache; or the bytes of the GPU's memory that it takes in all,
            with 4 for each row of the features. One of them.
        policy : str or callable
            ``"degree"``: rows of the nodes with most out-edges. A sampler goes from a node to its
            in-neighbors, so these rows are read most often (PaGraph, Lin et al., SoCC 2020).

            ``"presampled"``: rows that were read most in ``epochs`` (1) sampled epochs, other than
            those that are trained on (GNNLab, Yang et al., EuroSys 2022).

            ``"exact"``: rows that are going to be read most in the next ``epochs`` (1) epochs.
            Batches are functions of their numbers, so these are sampled before they are trained
            on, and the cache changes where that saves more reads over the link than it costs.

            ``"lru"``: rows that were read lately. A row that is read and is not cached replaces the
            least recently used of 8 rows that are chosen at random.

            A function of the graph that gives a score for each row, shape [N]: rows of the highest
            scores.
        graph : Graph, optional
            For ``"degree"`` and functions. Without it the cache is filled when a loader takes it,
            from the loader's graph, and caches of other policies at the start of its first epoch.
            The first of several loaders decides.
        epochs : int, optional
            The number of epochs that are counted, for ``"presampled"`` and ``"exact"``.

        Raises
        ------
        TypeError, ValueError
            For wrong arguments, and features on a GPU.
        CudaError
            If the GPU cannot be used, or the system does not allow to page-lock.
        """
        plan = CacheOptions.checked(rows, bytes, policy, epochs)
        if graph is not None and not is_homogeneous(graph):
            raise TypeError(f"graph: expected a Graph, got {describe(graph)}")
        made = self._cached_for(device, plan)
        if graph is not None:
            cache = made._cache
            assert cache is not None
            if not cache.wants_graph:
                raise ValueError(f"graph: expected None for {cache.policy!r}, got {graph!r}")
            cache.fill(graph)
        return made

    def _cached_for(self, device: Any, plan: CacheOptions) -> Features:
        known = self._open_array()
        if known._device < 0:
            # Before pages are locked, since it may be refused.
            plan.places(len(known), self._row_bytes())
        made = self._pinned_for(device, "cache")
        _need_torch()
        return made._with_cache(plan)

    def _with_cache(self, plan: CacheOptions) -> Features:
        """Returns these rows, which are page-locked, with a cache on their device."""
        pins, known = self._pins, self._open_array()
        assert pins is not None
        made = Features._from_array(known, self._quantization)
        made._pins, made._scales, made._copies = pins, self._scales, self._copies
        made._counts = self._counts
        made._copies.add(made)
        about = pins.device, len(known), self._row_bytes(), pins.addresses[0]
        made._cache = FeatureCache(plan, *about)
        return made

    def stats(self) -> dict[str, Any]:
        """Returns the counts of reads: ``reads``, ``rows`` and ``bytes``.

        ``reads`` is the number of calls and batches. ``bytes`` are by the place that was read:
        ``{"cpu": ...}``, ``{"pinned": ...}`` or ``{"cuda:0": ...}``. With a cache there is also
        ``hits``, the rows that were cached, for which the call waits for the GPU.
        """
        reads, rows = self._counts
        row, known = self._row_bytes(), {"reads": reads, "rows": rows}
        if self._cache is not None:
            hits = self._cache.table.count()
            tiers = {self.device: hits * row, "pinned": (rows - hits) * row}
            return {**known, "hits": hits, "bytes": tiers}
        tier = "pinned" if self._pins is not None else self.device
        return {**known, "bytes": {tier: rows * row}}

    @property
    def miss_rate(self) -> float:
        """The share of the rows read that were not in the cache; 0 where none was read.

        Without a cache all of them.
        """
        stats = self.stats()
        return 1 - stats.get("hits", 0) / stats["rows"] if stats["rows"] else 0.0

    def close(self) -> None:
        """Lets go of the array: what was read stays."""
        self._array = self._pins = self._host = self._cache = self._scales = None

    def __repr__(self) -> str:
        if self._array is None:
            return "Features(closed)"
        pinned = ", pinned" if self._pins is not None else ", shared" if self._shared else ""
        if (cache := self._cache) is not None:
            pinned = f", cached={cache.table.places}, policy={cache.policy!r}"
        stored = "" if self._quantization is None else f", stored={self.stored_dtype}"
        about = f"shape={self.shape}, dtype={self.dtype}{stored}"
        return f"Features({about}, device={self.device}{pinned})"

    def __reduce__(self) -> tuple[Any, ...]:
        if self._shared:
            raise TypeError(
                "Features: expected unshared features to pickle, got ones that devices "
                "share; pickle the original features"
            )
        if (cache := self._cache) is not None:
            rows = cache.cached_rows()
            held = None if rows is None else rows.numpy().tobytes()
            return _cached, (self._on_host(), self._where(), tuple(cache.plan), held)
        if self._pins is not None:
            return _pinned, (self._on_host(), self._where())
        if self._where() >= 0:
            return _placed, (self.to("cpu") if self._host is None else self._host, self._where())
        if self._quantization is not None and not self._in_file():
            return _quantized, (self._open_array(), self._quantization)
        return Features._from_array, (self._open_array(), self._quantization)

    def _file_arrays(self, name: str) -> dict[str, Array]:
        """Returns the arrays by which a graph file keeps these, as ``open`` reads them."""
        known = self._open_array().cpu()
        return {name: known, **scheme_arrays(self._quantization, name)}

    def _on_host(self) -> Features:
        """Returns the rows as the host reads them, which are page-locked here."""
        return Features._from_array(self._open_array(), self._quantization)

    def _open_array(self) -> Array:
        known = self._array
        if known is None:
            raise ClosedError("features: expected open ones, got ones that were closed")
        if has_moved(known._owner, known._address):
            # By share_memory_, or when it was sent to another process.
            known = self._array = Features.from_tensor(known._owner)._open_array()
        return known

    def _where(self) -> int:
        known = self._open_array()
        return known._device if self._pins is None else self._pins.device

    @property
    def _is_external(self) -> bool:
        """True if a device reads them outside of its memory, at least in part."""
        return self._pins is not None or self._shared > 1

    @property
    def _writes(self) -> tuple[int, int]:
        """Counts of writes: by ``update`` to any features, and by torch to the tensor."""
        try:
            return _updates, getattr(self._open_array()._owner, "_version", 0)
        except RuntimeError:
            # Torch counts none of tensors of inference_mode.
            return _updates, 0

    def _in_file(self) -> bool:
        return hasattr(self._open_array()._owner, "identity")

    def _row_bytes(self) -> int:
        """Bytes of a row as it is stored."""
        known = self._open_array()
        return KINDS[known.dtype].size * math.prod(known.shape[1:])

    def _read_all(self) -> torch.Tensor:
        """All rows where they are, as a tensor: the array itself unless it is quantized."""
        if self._quantization is None:
            return self._open_array().torch()
        import torch

        rows: torch.Tensor = self.read(torch.arange(len(self), device=self.device))
        return rows

    def _ids(self, ids: Any, place: int) -> IdView:
        return as_ids(ids, "ids", place if place >= 0 else None)

    def _part(self, ids: IdView, out: int = 0) -> GatherPart:
        """Returns what is to be gathered, for whoever reads these."""
        self._count(ids.length)
        return self._described(ids, out)

    def _count(self, num_rows: int, times: int = 1) -> None:
        """Counts a read of some rows, or several reads."""
        self._counts[0] += times
        self._counts[1] += times * num_rows

    def _described(self, ids: IdView, out: int) -> GatherPart:
        known = self._open_array()
        table = known._address if self._pins is None else self._pins.addresses[0]
        cache = None if self._cache is None else self._cache.table
        about = ids, table, len(known), self._row_bytes(), known, out, cache, self._quantization
        return GatherPart(*about, known._device >= 0)

    def _shown(self, memory: memories.Memory, start: int, count: int) -> Array:
        """The rows that a job has put into a memory."""
        known, scheme = self._open_array(), self._quantization
        if scheme is None:
            dtype, bits, shape = known.dtype, known._bits, (count, *known.shape[1:])
        else:
            dtype, shape = scheme.read_as, (count, *scheme.shape)
            bits = 8 * KINDS[dtype].size
        made = Array._from_address(memory.data + start, math.prod(shape), bits, memory)
        made._shown_as(dtype, shape)
        return made

    def _reading(self, ids: Any, out: Any, threads: int = 0, prompt: bool = False) -> PendingRead:
        view = self._ids(ids, devices.CPU)
        to = None if out is None else self._out(out, view.length, devices.CPU)
        part = self._part(view, 0 if to is None else to._address)
        job = GatherJob([part], threads=threads, prompt=prompt)
        return PendingRead(self._shown, job, view.length, is_tensor(ids), out)

    def _read_on_device(self, ids: Any, out: Any, place: int) -> Any:
        """Reads rows on a device, by one launch, and waits for it only to find wrong ids."""
        torch = _need_torch()
        there = torch.device("cuda", place)
        view = self._ids(ids, place)
        if view.device < 0:
            moved = Array._of_view(view).torch().to(there)
            view = as_ids(moved, "ids", place)
        if out is None:
            made = self._empty(view.length, place)
        else:
            made = out
            self._out(out, view.length, place)
        bad = torch.full((1,), -1, dtype=torch.int64, device=there)
        part = self._part(view, made.data_ptr())
        if part.row:
            gather_on_device(place, [part], bad.data_ptr())
        else:
            # Nothing is copied, and there is no kernel that does so.
            check_rows(Array._of_view(view).torch(), len(self))
        wrong = int(bad)
        if wrong >= 0:
            found = int(Array._of_view(view).torch()[wrong])
            raise IndexError(f"ids[{wrong}]: expected an integer in [0, {len(self)}), got {found}")
        return made if out is not None or is_tensor(ids) else _of_cuda(made)

    def _device_rows(self, ids: Any, place: int) -> tuple[torch.Tensor, GatherPart]:
        """Room for the rows of ids on a device, and what is to be gathered into it."""
        rows, part = self._device_room(ids, place)
        self._count(part.ids.length)
        return rows, part

    def _device_room(self, ids: Any, place: int) -> tuple[torch.Tensor, GatherPart]:
        """Returns room on a device for rows that are read and counted later, and their part."""
        view = as_ids(ids, "ids", place)
        rows = self._empty(view.length, place)
        return rows, self._described(view, rows.data_ptr())

    def _empty(self, count: int, place: int) -> torch.Tensor:
        """Room for so many rows on a device, in torch's current stream there."""
        import torch

        dtype: torch.dtype = getattr(torch, self.dtype)
        there = torch.device("cuda", place)
        return torch.empty((count, *self.shape[1:]), dtype=dtype, device=there)

    def _out(self, out: Any, count: int, place: int) -> Array:
        """The caller's array for so many rows."""
        dtype, shape = self.dtype, (count, *self.shape[1:])
        expected = f"out: expected a contiguous {dtype} array of shape {shape}"
        if is_tensor(out):
            fits = out.is_contiguous()
        else:
            fits = out.flags.c_contiguous if hasattr(out, "flags") else isinstance(out, Array)
        if not fits:
            raise ValueError(f"{expected}, got {describe(out)}")
        to = Features.from_tensor(out)._open_array()
        if to.dtype != dtype or to.shape != shape:
            raise ValueError(f"{expected}, got {to.dtype} of shape {to.shape}")
        if to._device != place:
            raise ValueError(f"{expected} on {devices.name(place)}, got one on {to.device}")
        if to.readonly:
            raise ValueError(f"{expected}, got a read-only one")
        if is_tensor(out) and out.requires_grad:
            raise ValueError(f"{expected}, got one that requires a gradient")
        return to


def _need_torch() -> Any:
    """Returns torch, which allocates on a GPU, and chooses rows for a cache there."""
    try:
        import torch
    except ImportError:
        raise ImportError(
            "Features: expected PyTorch to allocate on a GPU, found none; pip install torch"
        ) from None
    return torch


def _of_cuda(tensor: Any) -> Array:
    """A view of a tensor on a GPU."""
    name = str(tensor.dtype).removeprefix("torch.")
    if name not in KINDS:
        raise TypeError(f"features: expected bool, integers or floats, got {tensor.dtype}")
    tensor = tensor.detach().contiguous()
    bits, index = 8 * KINDS[name].size, tensor.device.index
    values = Array._from_address(tensor.data_ptr(), tensor.numel(), bits, tensor, device=index)
    values._shown_as(name, tuple(tensor.shape))
    return values


def _bytes(address: int, shape: tuple[int, int], owner: object) -> Array:
    """Rows at an address as bytes."""
    values = Array._from_address(address, math.prod(shape), 8, owner)
    values._shown_as("uint8", shape)
    return values


def _read_bytes(values: Array, shape: tuple[int, int], ids: Any) -> Any:
    return Features._from_array(_bytes(values._address, shape, values)).read(ids)


def _placed(host: Features, device: int) -> Features:
    return host.to(device)


def _quantized(stored: Array, quantization: Quantization) -> Features:
    # The bytes of a pickle lie anywhere.
    return Features._from_array(at_lines(stored), quantization)


def row_access_counts(graph: Graph | None, values: Array) -> shared_arrays.EdgeAccessCounts | None:
    """Returns counts of how often the rows of a graph's nodes are read."""
    if graph is None:
        return None
    if not is_homogeneous(graph):
        raise TypeError(f"graph: expected a Graph, got {describe(graph)}")
    if graph.num_nodes != len(values):
        raise ValueError(
            f"graph: expected one with {len(values)} nodes, a row for each, got {graph!r}"
        )
    return shared_arrays.EdgeAccessCounts(graph._source._on_cpu(), per_row=True)


def _pinned(host: Features, device: int) -> Features:
    return host.pin(device)


def _cached(host: Features, device: int, plan: tuple[Any, ...], held: bytes | None) -> Features:
    made = host._cached_for(device, CacheOptions(*plan))
    if held and made._cache is not None:
        import torch

        made._cache.take(torch.frombuffer(bytearray(held), dtype=torch.int64))
    return made
