"""``share``: graphs and features in the memory of the GPUs of several processes of a machine."""

from __future__ import annotations

import os
import socket
import struct
import tempfile
import zlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, TypeVar

from pygsampler._arrays import devices
from pygsampler._arrays.array import Array, _copy_to_device
from pygsampler._engine import library, memory
from pygsampler._engine.checks import boolean, describe
from pygsampler._features.features import Features, row_access_counts
from pygsampler._graph.graph import Graph, is_homogeneous
from pygsampler._graph.relation import Relation
from pygsampler._graph.shared_arrays import (
    ArrayPiece,
    EdgeAccessCounts,
    GroupPlacement,
    SharedArrayBuilder,
    layout,
    replicated_share,
)
from pygsampler.distributed.process_group import ProcessGroup
from pygsampler.errors import CudaError

T = TypeVar("T")

# Descriptors of one message: the system takes 253, and a process may often have 1024 open.
_AT_ONCE = 64
_BOOT = Path("/proc/sys/kernel/random/boot_id")


def share(
    graph: Graph,
    group: Any = None,
    *,
    device: Any = "cuda",
    replicate: float = 0.0,
    prob: Iterable[str] = (),
    out_edges: bool = False,
    timeout: float = 300.0,
) -> Graph:
    """Returns the graph in the memory of the GPUs of all processes of a group, to sample here.

    Every process of the group calls it with the same graph, opened from one file by ``Graph.open``
    for example, and the same options. The arrays of edges are cut and laid out as by
    ``Graph.share``, a part for each process, and batches are byte for byte equal to batches of the
    whole graph on one GPU. Every sampler and loader that takes a graph on a GPU takes the result.

    Parameters
    ----------
    graph : Graph
        A graph on the CPU, or on a GPU with a CPU graph that it was copied from.
    group : torch.distributed.ProcessGroup, optional
        A group of processes on one machine; by default all processes. Over several machines,
        ``torch.distributed.new_subgroups()`` makes a group for each.
    device : device
        The device of this process. Two processes may have the same.
    replicate : float
        As for ``Graph.share``.
    prob : iterable of str
        Names of edge arrays that samplers will use as weights: their tables are shared too.
    out_edges : bool
        True if walks will go along out-edges: the graph by its out-edges is shared too.
    timeout : float
        Seconds after which a process that does not join is an error on the others. With ``group``
        it bounds only the exchange of descriptors: the group's own timeout bounds the rest.

    Notes
    -----
    Arrays that are computed from the graph later, and are not named here, are copied to each GPU,
    since perhaps only some of the processes need them.

    Raises
    ------
    TypeError, ValueError
        For other graphs, options or machines in some process than in the others.
    CudaError, RuntimeError
        If a GPU cannot read another GPU's memory or has no room, or a process is gone: in all
        processes, with the name of the process where it happened.
    TimeoutError
        If processes do not join within ``timeout``: it names their ranks.
    """
    if not is_homogeneous(graph):
        raise TypeError(f"graph: expected a Graph, got {describe(graph)}")
    index, part = _checked(device, replicate, timeout)
    host = graph._source._on_cpu()
    weights = _names(prob, host)
    wanted = boolean(out_edges, "out_edges")
    with _DescriptorChannel(group, timeout) as wires:
        peers = _ProcessDeviceGroup(wires, index, part)
        wires.require_equal("options", lambda: (part, weights, wanted))
        wires.require_equal("graph", lambda: _outline(host))
        made = Relation._later(host, index, False, GroupPlacement(peers, wires.rank))
        try:
            wires.each(made._handle)
            for name in weights:
                wires.each(lambda name=name: made._sampled_edges("prob", name)._handle())  # type: ignore[misc]
            if wanted:
                wires.each(lambda: made._transposed()._handle())
        except BaseException:
            made.close()
            raise
        finally:
            peers.wires = None
    return Graph._wrap(made, graph._on_cpu())


def share_features(
    features: Features,
    group: Any = None,
    *,
    device: Any = "cuda",
    replicate: float = 0.0,
    graph: Graph | None = None,
    timeout: float = 300.0,
) -> Features:
    """Rows in the memory of the GPUs of all processes of a group, for this one to read.

    Every process of the group calls it with the same rows, as ``Features.open`` gives them of one
    file, and the same options.

    Parameters
    ----------
    features : Features
        On the CPU.
    group, device, timeout
        As for ``share``.
    replicate, graph
        As for ``Features.share``.

    Raises
    ------
    TypeError, ValueError, CudaError, RuntimeError
        As ``share``.
    """
    if not isinstance(features, Features):
        raise TypeError(f"features: expected Features, got {describe(features)}")
    index, part = _checked(device, replicate, timeout)
    values = features._open_array().cpu()
    heat = row_access_counts(graph, values)
    with _DescriptorChannel(group, timeout) as wires:
        peers = _ProcessDeviceGroup(wires, index, part)
        wires.require_equal("options", lambda: (part, heat is None))
        wires.require_equal(
            "features", lambda: (str(values.dtype), values.shape, _end_checksums(values))
        )
        shared = wires.each(lambda: peers.array_for(wires.rank, values, heat))
        return features._shared_as(shared, wires.size)


def _checked(device: Any, replicate: Any, timeout: Any) -> tuple[int, float]:
    """The index of a device, and the share of which it has a copy."""
    part = replicated_share(replicate)
    index = devices.parse(device)
    if index < 0:
        raise ValueError('device: expected a CUDA device, got "cpu"')
    if not timeout > 0:
        raise ValueError(f"timeout: expected seconds > 0, got {timeout!r}")
    devices.require(index)
    return index, part


def _names(prob: Any, host: Relation) -> list[str]:
    """The names of edge arrays in ``prob``; TypeError, ValueError for others."""
    if isinstance(prob, str):
        raise TypeError(f"prob: expected names of edge arrays, got one name, {prob!r}")
    found = list(prob)
    for place, name in enumerate(found):
        if not isinstance(name, str):
            raise TypeError(f"prob[{place}]: expected a name, got {describe(name)}")
        host._edge_array(f"prob[{place}]", name)
    return found


def _outline(host: Relation) -> tuple[Any, ...]:
    """Returns facts that tell one graph from another, without reading all of it."""
    sums = [_end_checksums(part) for part in host._open()[:3] if part is not None]
    return host.num_nodes, host.num_edges, host.dtype, sums


def _end_checksums(values: Array) -> list[int]:
    """Checksums of an array's first and last MiB."""
    most = min(values.nbytes, 1 << 20)
    places = values._address, values._address + values.nbytes - most
    return [zlib.crc32(memory.memory_view(place, most)) for place in places]


class _ProcessDeviceGroup:
    """Devices of several processes that share arrays, of which this process has one."""

    def __init__(self, wires: _DescriptorChannel, device: int, replicate: float) -> None:
        # Until all that is to be shared has been; None from then on.
        self.wires: _DescriptorChannel | None = wires
        self.device = device
        self.replicate = replicate
        self._made: dict[int, tuple[Array, list[ArrayPiece], Array]] = {}
        unit, uuid = wires.each(
            lambda: (
                library.call("SharedUnit", device, 1),
                library.call("DeviceUUID", device),
            )
        )
        everyone = wires.gather((unit, uuid))
        self.granularity = max(unit for unit, _ in everyone)
        wires.each(lambda: self._reach([uuid for _, uuid in everyone]))

    def _reach(self, everyone: Sequence[str]) -> None:
        """Raises CudaError where this process's device cannot read another one's memory."""
        here = {
            library.call("DeviceUUID", device): device
            for device in range(library.call("DeviceCount"))
        }
        for rank, uuid in enumerate(everyone):
            peer = here.get(uuid)
            if peer is not None and not library.call("SharedReach", self.device, peer):
                raise CudaError(
                    f"devices: expected ones that read each other's memory, got "
                    f"{devices.name(self.device)}, which cannot read that of rank {rank}'s "
                    f"{devices.name(peer)} (no NVLink between them, and no peer access over "
                    "PCIe); graph.to(device) gives each a copy, graph.pin(device) reads the host's"
                )

    def array_for(self, place: int, values: Array, heat: EdgeAccessCounts | None) -> Array:
        with library.handle_lock():
            found = self._made.get(id(values))
            if found is not None:
                return found[2]
            if self.wires is None or not values.nbytes:
                return _copy_to_device(values, self.device)
            # Kept, so that no other has its id.
            found = self._made[id(values)] = values, *self._put(self.wires, place, values, heat)
            return found[2]

    def pieces(self, values: Array) -> list[ArrayPiece]:
        """Returns how an array of the CPU's was cut."""
        return self._made[id(values)][1]

    def _put(
        self, wires: _DescriptorChannel, place: int, values: Array, heat: EdgeAccessCounts | None
    ) -> tuple[list[ArrayPiece], Array]:
        width, places = values.nbytes // len(values), wires.size

        def split() -> list[ArrayPiece]:
            about = values.nbytes, width, self.granularity, places, self.replicate
            return layout(*about, heat) if wires.rank == 0 else []

        # One process counts, since all of them on one machine would do the same work.
        pieces = [ArrayPiece(*one) for one in wires.gather(wires.each(split))[0]]
        making: list[SharedArrayBuilder] = []
        try:

            def begin() -> None:
                making.append(SharedArrayBuilder(self.device, place, pieces, shared=True))

            wires.each(begin)
            own = making[0]
            wires.each(lambda: wires.swap(own, pieces))
            # Their parts are there when all have come out of this.
            return pieces, wires.each(lambda: own.map(values))
        finally:
            for one in making:
                one.close()


class _DescriptorChannel:
    """A process group, and a socket to each of its processes on this machine, for descriptors."""

    def __init__(self, group: Any, timeout: float) -> None:
        self._group = ProcessGroup("share", group, timeout)
        self._timeout = timeout
        self.rank, self.size = self._group.rank, self._group.size
        self._sockets: dict[int, socket.socket] = {}
        # The error that all processes have been told of.
        self._known: Exception | None = None

    def __enter__(self) -> _DescriptorChannel:
        try:
            self._meet()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _meet(self) -> None:
        machines = self.gather((_machine(), socket.gethostname()))
        if len({machine for machine, _ in machines}) > 1:
            hosts = ", ".join(sorted({host for _, host in machines}))
            raise ValueError(
                f"group: expected processes of one machine, got some of {hosts}; "
                "torch.distributed.new_subgroups() makes a group for each"
            )
        # Nobody but this user's processes gets into the folder.
        with ExitStack() as stack:
            folder, door = self.each(lambda: self._open_door(stack))
            paths = self.gather(folder)
            self.each(lambda: self._connect(paths, door))

    def __exit__(self, *error: object) -> None:
        self._hang_up()
        self._group.close()

    def gather(self, mine: Any) -> list[Any]:
        """Returns the values of all processes."""
        return self._group.gather(mine)

    def require_equal(self, what: str, mine: Callable[[], object]) -> None:
        """Raises ValueError in all processes where one of them has another."""
        everyone = self.gather(self.each(mine))
        for rank, theirs in enumerate(everyone):
            if theirs != everyone[0]:
                raise ValueError(
                    f"{what}: expected the same in all processes, got {theirs} of rank {rank} and "
                    f"{everyone[0]} of rank 0"
                )

    def each(self, work: Callable[[], T]) -> T:
        """Runs this process's part of a step of all processes; if one fails, all raise.

        Steps nest: a process that fails informs the others at the end of the next step, whichever
        it is for them, and an error that all know is not sent again.
        """
        error: Exception | None = None
        try:
            mine = work()
        except Exception as failed:
            if failed is self._known:
                raise
            error = failed
        outcomes = self.gather(None if error is None else (type(error).__name__, str(error)))
        for rank, outcome in enumerate(outcomes):
            if outcome is not None and error is None:
                kind, text = outcome
                error = (CudaError if kind == "CudaError" else RuntimeError)(f"rank {rank}: {text}")
        if error is not None:
            self._known = error
            raise error
        return mine

    def swap(self, builder: SharedArrayBuilder, pieces: Sequence[ArrayPiece]) -> None:
        """Gives this process's pieces to all others, and takes theirs.

        One process after another gives, so that nobody waits for one that waits itself.
        """
        failed: Exception | None = None
        for rank in range(self.size):
            numbers = [i for i, piece in enumerate(pieces) if piece.place == rank]
            for at in range(0, len(numbers), _AT_ONCE):
                some = numbers[at : at + _AT_ONCE]
                if rank == self.rank:
                    self._give(builder, some)
                    continue
                try:
                    self._take(builder, rank, some)
                except (TimeoutError, ConnectionError):
                    # The others hear of it at once, and not at the end of their patience.
                    self._hang_up()
                    raise
                except Exception as error:
                    # The others go on: what they send is read, and they are told afterwards.
                    failed = failed or error
        if failed is not None:
            raise failed

    def _hang_up(self) -> None:
        for one in self._sockets.values():
            one.close()
        self._sockets.clear()

    def _give(self, builder: SharedArrayBuilder, piece_numbers: Sequence[int]) -> None:
        descriptors: list[int] = []
        try:
            descriptors.extend(builder.export(number) for number in piece_numbers)
            for one in self._sockets.values():
                socket.send_fds(one, [struct.pack("<q", piece_numbers[0])], descriptors)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _take(self, builder: SharedArrayBuilder, rank: int, piece_numbers: Sequence[int]) -> None:
        try:
            text, descriptors, _, _ = socket.recv_fds(self._sockets[rank], 8, _AT_ONCE)
        except TimeoutError:
            raise TimeoutError(
                f"share: expected rank {rank} within {self._timeout:g} seconds, got nothing"
            ) from None
        try:
            if len(text) < 8:
                raise ConnectionError(f"share: expected rank {rank}, which is gone")
            (first,) = struct.unpack("<q", text)
            if first != piece_numbers[0] or len(descriptors) != len(piece_numbers):
                raise ConnectionError(
                    f"share: expected {len(piece_numbers)} descriptors of rank {rank} from piece "
                    f"{piece_numbers[0]} on, got {len(descriptors)} from {first} on; a limit of "
                    "open files (ulimit -n) drops those beyond it"
                )
            for number, descriptor in zip(piece_numbers, descriptors, strict=True):
                builder.take(number, descriptor)
        except CudaError as error:
            raise CudaError(
                f"{error}; that is memory of rank {rank}, which this process may be unable to "
                "reach, as where CUDA_VISIBLE_DEVICES hides that rank's device"
            ) from None
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _open_door(self, stack: ExitStack) -> tuple[str, socket.socket]:
        """Opens a socket, and returns the address by which this process can be called, and it."""
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="pygsampler-"))
        path = str(Path(folder) / "share")
        door = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        door.bind(path)
        door.listen(self.size)
        door.settimeout(self._timeout)
        return path, door

    def _connect(self, paths: Sequence[str], door: socket.socket) -> None:
        """A socket to each process: this one calls those of lower ranks."""
        for rank in range(self.rank):
            one = self._sockets[rank] = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            one.settimeout(self._timeout)
            try:
                one.connect(paths[rank])
                one.send(struct.pack("<q", self.rank))
            except OSError as error:
                raise RuntimeError(
                    f"share: expected rank {rank} at {paths[rank]}, which this process cannot "
                    f"reach ({error}); all processes need one folder for temporary files (TMPDIR)"
                ) from None
        for _ in range(self.rank + 1, self.size):
            one, _address = door.accept()
            one.settimeout(self._timeout)
            (rank,) = struct.unpack("<q", one.recv(8))
            self._sockets[rank] = one


def _machine() -> str:
    """Returns a text that tells this machine from others."""
    with suppress(OSError):
        return _BOOT.read_text().strip()
    return socket.gethostname()
