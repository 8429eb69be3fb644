"""``FeatureFetcher``: reads the rows of features and labels of each batch of a loader."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from pygsampler._arrays import devices
from pygsampler._arrays.ids import as_ids
from pygsampler._arrays.tensor_frames import FrameRows, frame_on, frame_tables, is_tensor_frame
from pygsampler._batch.block import Block
from pygsampler._batch.minibatch import MiniBatch, as_torch
from pygsampler._engine.checks import describe
from pygsampler._engine.progress import progress_counter
from pygsampler._features.features import Features
from pygsampler._features.gather import GatherJob, GatherPart
from pygsampler._features.read_counts import new_read_counts
from pygsampler._features.remote import PendingRows, RemoteFeatures

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    import torch

    from pygsampler._graph.graph import Graph
    from pygsampler._loader.cache_tuner import CacheTuner
    from pygsampler._loader.cuda_events import StepTimes

__all__ = ["FeatureFetcher"]

# The name of labels in a batch.
LABELS = "y"


class FeatureFetcher:
    """The features, labels and edge features of a loader, for its graph.

    They are read on the device of the batches: for a GPU, arrays on the CPU are page-locked, and
    labels are copied to the GPU.
    """

    __slots__ = (
        "__weakref__",
        "_caches",
        "_device",
        "_edges",
        "_frames",
        "_labels",
        "_nodes",
        "step_times",
    )

    # The step times of loops that read rows over a link; None before they are measured.
    step_times: StepTimes | None
    # By name, or by name and type, the frames whose tensors are read as features "tf.numerical".
    _frames: dict[Any, Any]

    def __init__(self, graph: Graph, features: Any, labels: Any, edge_features: Any) -> None:
        self._device, self._frames = graph._device, {}
        edges, nodes = graph._source._row_counts()
        taken = {} if labels is None else {LABELS: labels}
        self._nodes = self._checked_features(features, "features", nodes.number, "nodes", MiniBatch)
        self._edges = self._checked_features(
            edge_features, "edge_features", edges.number, "edges", Block
        )
        self._labels = self._checked_features(taken, "labels", nodes.number, "nodes", MiniBatch)
        check_names(features, labels)
        if edges.more and self._edges:
            self._check_edge_ids(graph)
        self._caches = list(self._cached(graph))
        self.step_times = None

    def __bool__(self) -> bool:
        return bool(self._nodes or self._labels or self._edges)

    def tables(self) -> Iterator[tuple[str, Features]]:
        """All that are read, by their names; those of edges are ``edge_features['e']``."""
        yield from self._nodes.items()
        yield from self._labels.items()
        for name, features in self._edges.items():
            yield _called("edge_features", name), features

    def label_tables(self) -> Iterator[tuple[str, Features]]:
        """Yields by node type its labels that are in reach."""
        return in_reach(("", labels) for labels in self._labels.values())

    def node_tables(self, kind: str) -> Iterator[tuple[str, Features]]:
        """Yields the features of the nodes of a type, by their names, that are in reach."""
        return in_reach((_called("features", name), each) for name, each in self._nodes.items())

    def give_caches(self, tuner: CacheTuner, graph: Graph, epoch: int, batches: int) -> bool:
        """Gives features of nodes that are read over the link the caches of ``tuner``.

        Returns whether there are any.
        """
        tables = {
            name: features
            for name, features in self._nodes.items()
            if features._pins is not None and features._cache is None
        }
        made = tuner.caches(tables, graph, self._device, epoch, batches)
        self._nodes.update(made)
        return bool(made)

    def external_tables(self) -> list[Features]:
        """Returns the features that a GPU reads outside of its memory."""
        return [features for _, features in self.tables() if features._is_external]

    def fill_caches(
        self,
        seed: int,
        epoch: int,
        batches: Callable[[int], Generator[MiniBatch, None, None]],
        steps: int,
    ) -> None:
        """Caches have the rows that they are to have in an epoch, which is about to begin.

        ``batches`` samples an epoch, of so many steps, without rows. A bar shows how far that is
        where it takes long; Ctrl-C leaves the caches as they were.
        """
        due = []
        for features, ids_of in self._caches:
            cache = features._cache
            if cache is not None and (wanted := set(cache.due(self, seed, epoch))):
                due.append((cache, ids_of, wanted))
        if not due:
            return
        counts = new_read_counts(self._device, [cache.table.rows for cache, _, _ in due])
        if counts is None:
            return
        epochs = sorted(set().union(*(wanted for _, _, wanted in due)))
        with progress_counter(True, steps * len(epochs), "counting reads", " batches") as report:
            for number in epochs:
                with closing(batches(number)) as sampled:
                    for batch in sampled:
                        for (_, ids_of, wanted), count in zip(due, counts, strict=True):
                            if number in wanted:
                                for ids in ids_of(batch):
                                    count.add(as_ids(ids, "ids", self._device))
                        report(1)
        for (cache, _, _), count in zip(due, counts, strict=True):
            cache.count(self, seed, epoch, count.result())

    def _cached(self, graph: Graph) -> Iterator[tuple[Features, _IdsOf]]:
        """Yields the features that have a cache, and a function that gives the rows a batch reads.

        A cache that waits for a graph is filled for this one first.
        """
        for named, where, ids_of in (
            (self._nodes, "features", _input_nodes),
            (self._labels, "labels", _output_nodes),
            (self._edges, "edge_features", _edge_ids),
        ):
            for name, features in named.items():
                cache = None if isinstance(features, RemoteFeatures) else features._cache
                if cache is None:
                    continue
                if cache.wants_graph:
                    if cache.policy == "degree" and where == "edge_features":
                        raise ValueError(
                            f"{_called(where, name)}: expected a cache of edges by another policy "
                            "than 'degree', which ranks nodes"
                        )
                    cache.fill(graph)
                yield features, ids_of

    def start(self, sampled: Any, threads: int) -> PendingFetch:
        """Begins to read the rows of a batch on the CPU."""
        batch = as_torch(sampled)
        wanted, coming = [], []
        for attach, name, features, ids in self._wanted(batch):
            if isinstance(features, RemoteFeatures):
                coming.append((attach, name, features.read_async(ids)))
            else:
                wanted.append((attach, name, features, ids))
        parts = [features._part(as_ids(ids, "ids")) for _, _, features, ids in wanted]
        return PendingFetch(batch, wanted, GatherJob(parts, threads=threads), coming)

    def attach_on_device(self, batch: MiniBatch) -> list[tuple[Features, torch.Tensor, GatherPart]]:
        """Attaches room for rows to a batch on a GPU, in torch's current stream.

        Returns the features, the room, and what to gather into it, and to count then.
        """
        rooms: list[tuple[Features, torch.Tensor, GatherPart]] = []
        for attach, name, features, ids in self._wanted(batch):
            rows, part = features._device_room(ids, self._device)
            rooms.append((features, rows, part))
            attach(name, rows)
        return rooms

    def attach_static(self, batch: MiniBatch, staged: MiniBatch | None) -> list[StaticRows]:
        """Attaches rows with fixed addresses to a static batch.

        Returns the parts to gather, and to count, whenever the batch has new ids, or the ``staged``
        one for features outside of the GPU's memory.
        """
        found: list[StaticRows] = []
        both = zip(self._wanted(batch), self._wanted(staged or batch), strict=True)
        for (attach, name, features, now), (_, _, _, ids) in both:
            rows, part = features._device_room(now, self._device)
            if part.cache is not None and part.cache.uses:
                raise ValueError(
                    f"features[{name!r}]: expected a cache that does not change while it is read "
                    "with static=True, got one of policy 'lru'"
                )
            attach(name, rows)
            ahead = None
            if staged is not None and features._is_external:
                wanted = ids.clone()
                early, part = features._device_room(wanted, self._device)
                ahead = RowsAhead(ids, wanted, early)
            found.append(StaticRows(features, part, rows, ahead))
        return found

    def _wanted(self, batch: Any) -> Iterator[tuple[Any, str, Any, torch.Tensor]]:
        """Yields for each array how to attach it, its name, the features, and the ids of rows."""
        frames = {
            name: FrameRows(frame, partial(batch._attach, name))
            for name, frame in self._frames.items()
        }
        for name, features in self._nodes.items():
            of_frame = frames.get(name.rpartition(".")[0]) if frames else None
            attach = batch._attach if of_frame is None else of_frame.add
            yield attach, name, features, batch.input_nodes
        for name, features in self._labels.items():
            yield batch._attach, name, features, batch.output_nodes
        for name, features in self._edges.items():
            for block in batch.blocks:
                yield block._attach, name, features, block.edge_ids

    def _checked_features(
        self, value_by_name: Any, where: str, num_rows: int, row_noun: str, kind: type
    ) -> dict[str, Any]:
        if value_by_name is None:
            return {}
        if not isinstance(value_by_name, Mapping):
            raise TypeError(
                f"{where}: expected a mapping of names to arrays, as {{'x': x}}, "
                f"got {describe(value_by_name)}"
            )
        found: dict[str, Any] = {}
        for name, value in value_by_name.items():
            check_name(name, where, kind)
            called = _called(where, name)
            if isinstance(value, RemoteFeatures):
                found[name] = self._checked_remote(value, called, num_rows, row_noun)
                continue
            if is_tensor_frame(value) and where == "features":
                for part, values in self._tables(name, value, called).items():
                    here = _called(where, part)
                    features = checked(values, here, num_rows, row_noun)
                    found[part] = place_features(features, here, self._device, False)
                continue
            features = checked(value, called, num_rows, row_noun)
            found[name] = place_features(features, called, self._device, where == "labels")
        return found

    def _tables(self, name: Any, frame: Any, called: str) -> dict[str, Any]:
        """Returns the tensors of a frame by the names of their features, and keeps the frame.

        ``name`` is the frame's, or a pair of that and a type.
        """
        tensors = frame_tables(frame, called)
        self._frames[name] = frame_on(frame, devices.name(self._device))
        prefix = name if isinstance(name, str) else name[0]
        return {f"{prefix}.{part}": values for part, values in tensors.items()}

    def _checked_remote(
        self, value: RemoteFeatures, called: str, num_rows: int, row_noun: str
    ) -> RemoteFeatures:
        if self._device >= 0:
            here = devices.name(self._device)
            raise ValueError(f"{called}: expected features on {here} or the CPU, got {value!r}")
        if len(value) < num_rows:
            raise ValueError(
                f"{called}: expected a row for each of {num_rows} {row_noun}, got {value!r}"
            )
        return value

    def _check_edge_ids(self, graph: Graph) -> None:
        """Checks that edge ids have rows, since a read on a GPU would not detect it."""
        ids = graph.edge_ids
        if self._device < 0 or ids is None or not len(ids):
            return
        most = int(ids.torch().max())
        for name, features in self._edges.items():
            if len(features) <= most:
                raise ValueError(
                    f"edge_features[{name!r}]: expected a row for each edge id up to {most}, "
                    f"got {len(features)}"
                )


class StaticRows(NamedTuple):
    """Rows of a static batch, and what is gathered for them."""

    features: Features
    part: GatherPart
    rows: torch.Tensor
    # None: they are gathered when the batch is put into its place.
    ahead: RowsAhead | None


class RowsAhead(NamedTuple):
    """Rows that are gathered ahead of a static batch, and copied to it."""

    # Ids of the staged batch, and a copy without those behind the end of an epoch.
    ids: torch.Tensor
    wanted: torch.Tensor
    rows: torch.Tensor


class PendingFetch:
    """A batch whose rows are on their way."""

    __slots__ = ("_batch", "_coming", "_job", "_wanted")

    def __init__(
        self,
        batch: MiniBatch,
        wanted: list[Any],
        job: GatherJob,
        pending: list[tuple[Any, str, PendingRows]],
    ) -> None:
        self._batch = batch
        self._wanted = wanted
        self._job = job
        self._coming = pending

    def result(self) -> MiniBatch:
        """The batch with its rows, waiting until they are there."""
        try:
            memory, starts = self._job.result()
        except IndexError as error:
            raise IndexError(f"{self._wrong()}: {error}") from None
        for (attach, name, features, ids), start in zip(self._wanted, starts, strict=True):
            attach(name, features._shown(memory, start, len(ids)).torch())
        for attach, name, rows in self._coming:
            attach(name, rows.wait())
        return self._batch

    def _wrong(self) -> str:
        """The name of the first that has an id without a row."""
        name: str
        for _, name, features, ids in self._wanted:
            if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < len(features):
                return name
        return "features"

    def done(self) -> bool:
        """True if ``result()`` would return, or raise, at once."""
        return self._job.done() and all(rows.done() for _, _, rows in self._coming)

    def span(self, timeout_ms: int = -1) -> tuple[float, float] | None:
        """Begin and end of the work, by the job's record."""
        return self._job.span(timeout_ms)

    def cancel(self) -> None:
        """Ends it: nothing reads the features for it afterwards."""
        self._job.cancel()
        for _, _, rows in self._coming:
            rows.cancel()


_Batches: TypeAlias = "Generator[MiniBatch, None, None]"
_IdsOf = Callable[[MiniBatch], "list[torch.Tensor]"]


def _input_nodes(batch: MiniBatch) -> list[torch.Tensor]:
    return [batch.input_nodes]


def _output_nodes(batch: MiniBatch) -> list[torch.Tensor]:
    return [batch.output_nodes]


def _edge_ids(batch: MiniBatch) -> list[torch.Tensor]:
    return [block.edge_ids for block in batch.blocks]


def in_reach(tables: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Features]]:
    """Yields what is not elsewhere."""
    return (pair for pair in tables if not isinstance(pair[1], RemoteFeatures))


def check_names(features: Any, labels: Any) -> None:
    """Raises ValueError for features that are called what labels are."""
    if labels is not None and isinstance(features, Mapping) and LABELS in features:
        raise ValueError(f"features: expected another name, since labels= uses it, got {LABELS!r}")


def check_name(name: Any, where: str, kind: type) -> None:
    """Raises ValueError for what cannot be an attribute of batches or blocks of that class."""
    if not isinstance(name, str) or not name.isidentifier() or name.startswith("_"):
        raise ValueError(f"{where}: expected names of attributes, got {name!r}")
    if hasattr(kind, name) or name in kind.__annotations__:
        raise ValueError(f"{where}: expected names that batches do not have, got {name!r}")


def checked(value: Any, called: str, num_rows: int, row_noun: str) -> Features:
    """Features of an array with at least so many rows."""
    try:
        features = Features.from_tensor(value)
        count = len(features)
    except (TypeError, ValueError) as error:
        text = str(error).removeprefix("features: ")
        raise type(error)(f"{called}: {text}") from None
    if count < num_rows:
        raise ValueError(f"{called}: expected a row for each of {num_rows} {row_noun}, got {count}")
    if count > num_rows and "nodes" in row_noun:
        # Ids of edges may lie above their number, and those of nodes may not.
        raise ValueError(
            f"{called}: expected a row for each of {num_rows} {row_noun}, got {count}; "
            f"num_nodes={count} makes a graph of as many, [:{num_rows}] takes the first"
        )
    return features


def place_features(features: Features, called: str, device: int, copied: bool) -> Features:
    """The features where batches are: those on the CPU copied, or page-locked for a GPU."""
    place = features._where()
    if place == device:
        return features
    here = f"{called}: expected them on {devices.name(device)}"
    if device < 0:
        raise ValueError(
            f"{here}, where the batches are, got {features.device}; "
            "device='cuda' makes the batches there"
        )
    if place >= 0:
        raise ValueError(f"{here}, where the batches are, or on the CPU, got {features.device}")
    return features.to(device) if copied else features.pin(device)


def _called(where: str, name: str) -> str:
    return where if where == "labels" else f"{where}[{name!r}]"
