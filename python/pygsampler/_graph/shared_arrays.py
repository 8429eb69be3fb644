"""``DeviceGroup``: arrays of graphs in pieces on several devices; each device sees all of them."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import ClassVar, NamedTuple, Protocol

from pygsampler._arrays import devices
from pygsampler._arrays.array import Array, _copy_to_device
from pygsampler._engine import library
from pygsampler._engine import memory as memories
from pygsampler._engine.checks import describe
from pygsampler._engine.handle import EngineHandle
from pygsampler._graph.degrees import out_degrees
from pygsampler._graph.relation_state import RelationState
from pygsampler.errors import CudaError

# The place of pieces of which each device has a copy.
EVERYONE = -1
# The most units of an array that is partly copied to all devices: few enough that descriptors and
# mappings cost little, and many enough that hot edges are told from cold ones.
_MOST_UNITS = 4096


class ArrayPiece(NamedTuple):
    """A part of an array: its bytes, and the place of the device that has it."""

    size: int
    place: int


class EdgeAccessCounts:
    """Counts how often batches read runs of edges of a graph on the CPU, or of rows of its nodes.

    The counts are computed when they are asked for.
    """

    __slots__ = ("_graph", "_rows", "_visits")

    def __init__(self, graph: RelationState, per_row: bool = False) -> None:
        self._graph = graph
        self._rows = per_row
        self._visits: Array | None = None

    def relative_counts(self, width: int, unit: int, count: int) -> array[float]:
        """Returns the relative read counts of ``count`` runs of ``unit`` bytes.

        An edge, or a row, has ``width`` bytes.
        """
        if self._visits is None:
            self._visits = out_degrees(self._graph)
        heat = array("d", bytes(8 * count))
        run = (width, unit) if self._rows else (0, unit // width)
        about = self._visits._address, *run, count, heat.buffer_info()[0]
        library.call("GraphAccess", self._graph._handle(), *about)
        return heat


def replicated_share(replicate: object) -> float:
    """The share of an array that each device has; TypeError, ValueError for none."""
    if isinstance(replicate, bool) or not isinstance(replicate, (int, float)):
        raise TypeError(f"replicate: expected a share from 0 to 1, got {describe(replicate)}")
    if not 0 <= replicate <= 1:
        raise ValueError(f"replicate: expected a share from 0 to 1, got {replicate}")
    return float(replicate)


def layout(
    nbytes: int,
    width: int,
    granularity: int,
    places: int,
    replicate: float,
    heat: EdgeAccessCounts | None,
) -> list[ArrayPiece]:
    """Cuts an array of ``nbytes``, with rows of ``width`` bytes, for ``places`` devices.

    Each device has a copy of the share that is read most, and the rest is divided into contiguous
    ranges of one size. Without ``heat`` the front is taken as read most. Sizes are multiples of the
    granularity; the last piece may reach beyond the array.
    """
    unit = granularity
    if replicate > 0:
        unit *= -(-nbytes // (granularity * _MOST_UNITS))
    units = max(-(-nbytes // unit), 1)
    shared = int(replicate * units + 0.5)
    hot: set[int] = set()
    if shared:
        order: Iterable[int] = range(units)
        if heat is not None:
            figures = heat.relative_counts(width, unit, units)
            # In the order of their places where they are alike: all processes choose the same.
            order = sorted(order, key=lambda u: -figures[u])
        hot = set(list(order)[:shared])
    pieces: list[ArrayPiece] = []
    dealt, rest = 0, units - len(hot)
    for u in range(units):
        place = EVERYONE
        if u not in hot:
            place = dealt * places // rest
            dealt += 1
        if pieces and pieces[-1].place == place:
            pieces[-1] = ArrayPiece(pieces[-1].size + unit, place)
        else:
            pieces.append(ArrayPiece(unit, place))
    return pieces


class SharedArrayBuilder(EngineHandle):
    """An array in the making at one place, as the engine has it."""

    __slots__ = ("_layout", "device", "place")

    _close_function: ClassVar[str] = "SharedClose"

    def __init__(self, device: int, place: int, pieces: Sequence[ArrayPiece], shared: bool) -> None:
        super().__init__()
        self.device, self.place = device, place
        words = array("q", [word for piece in pieces for word in piece])
        self._layout = words
        self._create("SharedNew", device, place, words.buffer_info()[0], len(pieces), int(shared))

    def share_pieces(self, other: SharedArrayBuilder) -> None:
        """Gives this place's pieces to another one's in this process."""
        self._call("SharedForward", other._number)

    def export(self, piece: int) -> int:
        """A file descriptor of a piece of this place's; the caller closes it."""
        descriptor: int = self._call("SharedExport", piece)
        return descriptor

    def take(self, piece: int, descriptor: int) -> None:
        """Takes another process's piece by its descriptor."""
        self._call("SharedImport", piece, descriptor)

    def map(self, values: Array) -> Array:
        """The array on the device, once all pieces are here; what is of this place is filled."""
        memory = memories.new("SharedMap", self._number, values._address, values.nbytes)
        made = Array._from_address(
            memory.data, values._length, values._bits, memory, readonly=True, device=self.device
        )
        made._shown_as(values._dtype, values.shape)
        return made

    def close(self) -> None:
        """Lets go of the pieces; what was mapped stays."""
        self._release()


class DeviceGroup(Protocol):
    """Devices that share arrays."""

    def array_for(self, place: int, values: Array, heat: EdgeAccessCounts | None) -> Array:
        """The array for the device at a place."""

    def pieces(self, values: Array) -> list[ArrayPiece]:
        """Returns the pieces that an array on the CPU was cut into."""


class GroupPlacement(NamedTuple):
    """A graph's place among the devices that share its arrays."""

    peers: DeviceGroup
    place: int

    def placer(self, host: RelationState) -> Callable[[Array], Array]:
        """Returns a function that places arrays of a CPU graph where this device finds them."""
        heat = EdgeAccessCounts(host)
        return lambda values: self.peers.array_for(self.place, values, heat)


class LocalDeviceGroup:
    """Devices of this process that share arrays, which are put there once for all of them."""

    __slots__ = ("_made", "devices", "granularity", "replicate")

    def __init__(self, indices: Sequence[int], replicate: float) -> None:
        self.devices = tuple(indices)
        self.replicate = replicate
        self.granularity = max(library.call("SharedUnit", device, 0) for device in self.devices)
        require_reach(self.devices)
        # By the id of the array on the CPU, which is kept, so that no other has it.
        self._made: dict[int, tuple[Array, list[ArrayPiece], list[Array]]] = {}

    def array_for(self, place: int, values: Array, heat: EdgeAccessCounts | None) -> Array:
        with library.handle_lock():
            found = self._made.get(id(values))
            if found is None:
                found = self._made[id(values)] = (values, *self._put(values, heat))
            return found[2][place]

    def pieces(self, values: Array) -> list[ArrayPiece]:
        """Returns the pieces that an array on the CPU was cut into."""
        return self._made[id(values)][1]

    def _put(
        self, values: Array, heat: EdgeAccessCounts | None
    ) -> tuple[list[ArrayPiece], list[Array]]:
        if not values.nbytes:
            return [], [_copy_to_device(values, device) for device in self.devices]
        width, places = values.nbytes // len(values), len(self.devices)
        pieces = layout(values.nbytes, width, self.granularity, places, self.replicate, heat)
        with ExitStack() as stack:
            making: list[SharedArrayBuilder] = []
            for place, device in enumerate(self.devices):
                making.append(SharedArrayBuilder(device, place, pieces, shared=False))
                stack.callback(making[-1].close)
            for own in making:
                for other in making:
                    own.share_pieces(other)
            return pieces, [own.map(values) for own in making]


def require_reach(indices: Sequence[int]) -> None:
    """Raises CudaError where a device cannot read the memory of another."""
    for device in sorted(set(indices)):
        for peer in sorted(set(indices)):
            if not library.call("SharedReach", device, peer):
                raise CudaError(
                    f"devices: expected ones that read each other's memory, got "
                    f"{devices.name(device)}, which cannot read that of {devices.name(peer)} "
                    "(no NVLink between them, and no peer access over PCIe); graph.to(device) "
                    "gives each a copy, graph.pin(device) reads the host's"
                )


def device_group(chosen: Iterable[object], replicate: object) -> LocalDeviceGroup:
    """Devices that a caller names, and the share of which each has a copy."""
    named = list(chosen)
    wanted = [devices.parse(device) for device in named]
    if len(wanted) < 2 or min(wanted) < 0:
        raise ValueError(f"devices: expected two CUDA devices or more, got {named!r}")
    share = replicated_share(replicate)
    for index in wanted:
        devices.require(index)
    return LocalDeviceGroup(wanted, share)
