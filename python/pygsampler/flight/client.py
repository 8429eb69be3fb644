"""``Client``: asks a server for samples."""

from __future__ import annotations

import json
import logging
import time
from array import array
from collections import deque
from collections.abc import Generator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow
from pyarrow import flight

from pygsampler._arrays.array import Array
from pygsampler._arrays.ids import as_ids
from pygsampler._engine.checks import boolean, describe, integer
from pygsampler._engine.limits import MAX_BATCH, MAX_EPOCH
from pygsampler._loader.stream import _shuffled
from pygsampler._sampling.plan import Plan
from pygsampler._sampling.sampler import Sampler
from pygsampler.errors import ClosedError
from pygsampler.flight.errors import decode_error, is_busy
from pygsampler.flight.registry import plan_entry
from pygsampler.flight.results import decode_result
from pygsampler.flight.ticket import Ticket
from pygsampler.walks.visits import Visits

if TYPE_CHECKING:
    from types import TracebackType

logger = logging.getLogger("pygsampler.flight")

# The first and the longest pause before a busy server is asked again, in seconds.
_PAUSE, _LONGEST_PAUSE = 0.005, 0.5


class Client:
    """Samples of a graph that a ``Server`` has. It may be used from many threads at once.

    Parameters
    ----------
    location : str
        ``"grpc://host:port"``, or ``"grpc+tls://host:port"``.
    token : str, optional
        The server's.
    root_cert : path or bytes, optional
        A PEM file of the certificates that are trusted, or what is in one, where the server's is
        not signed by one of the system's.
    timeout : float
        Seconds for an answer, waiting for a busy server included.

    Raises
    ------
    TypeError, ValueError
        For an argument of another type or value.
    """

    def __init__(
        self,
        location: str,
        *,
        token: str | None = None,
        root_cert: str | PathLike[str] | bytes | None = None,
        timeout: float = 60.0,
    ) -> None:
        if not isinstance(location, str) or not location.startswith(("grpc://", "grpc+tls://")):
            raise ValueError(
                f"location: expected 'grpc://host:port' or 'grpc+tls://host:port', got "
                f"{describe(location)}"
            )
        if not isinstance(timeout, (int, float)):
            raise TypeError(f"timeout: expected seconds, got {describe(timeout)}")
        if not timeout > 0:
            raise ValueError(f"timeout: expected seconds > 0, got {timeout!r}")
        self.location = location
        self._timeout = float(timeout)
        self._headers = []
        if token is not None:
            if not isinstance(token, str):
                # Not what it is: it is a secret.
                raise TypeError(f"token: expected a str, got {type(token).__name__}")
            if not token.isascii():
                raise ValueError("token: expected characters of ASCII, got others")
            self._headers.append((b"authorization", b"Bearer " + token.encode("ascii")))
        options: dict[str, Any] = {}
        if root_cert is not None:
            if not isinstance(root_cert, (str, PathLike, bytes)):
                raise TypeError(
                    f"root_cert: expected a path or bytes of PEM, got {describe(root_cert)}"
                )
            known = root_cert if isinstance(root_cert, bytes) else Path(root_cert).read_bytes()
            options["tls_root_certs"] = known
        try:
            self._flight: Any = flight.FlightClient(location, **options)
        except pyarrow.ArrowException as error:
            raise ValueError(f"location: expected an address, got {location!r}: {error}") from None

    def about(self) -> dict[str, Any]:
        """Facts about the server's graph, under the names of its arguments.

        They are ``num_nodes``, ``num_edges`` (by type, of a heterogeneous graph), ``dtype``,
        ``edge_types`` and the limits.

        Raises
        ------
        ConnectionError, PermissionError, TimeoutError
            As ``sample``.
        """

        def ask(options: Any) -> Any:
            (answer,) = self._flight.do_action(flight.Action("about", b""), options)
            return json.loads(answer.body.to_pybytes())

        about: dict[str, Any] = self._request(ask)
        return about

    def sample(
        self,
        sampler: Sampler[Any] | Plan | Mapping[str, Any],
        seeds: Any,
        *,
        seed: int | None = None,
        epoch: int | None = None,
        batch: int | None = None,
        exclude: Any = None,
        seed_time: Any = None,
    ) -> Any:
        """Samples the server's graph as ``sampler.sample`` does: the same arrays, byte for byte.

        Parameters
        ----------
        sampler : Sampler, Plan or mapping
            ``PGSampler``, ``RandomWalk``, ``MetaPathWalk``, ``PinSAGE``, ``KHop``,
            ``LayerSample``, ``HGTSampler``, ``LaborSampler`` or a program's;
            or a plan, such as ``sampler.plan``, or its fields.
        seeds : int32 or int64, shape [N], or a mapping of types to such
            Seeds for the sampler, on the CPU.
        seed : int, optional
            The seed of a plan, by default 0. A sampler has its own.
        epoch, batch : int, optional
            See ``sampler.sample``. For a plan the default is 0.
        exclude, seed_time : optional
            As for ``PGSampler.sample``.

        Returns
        -------
        MiniBatch, Subgraph, MiniBatch, Walks, Visits or StepSamples
            On the CPU.

        Raises
        ------
        TypeError, ValueError, IndexError, NotImplementedError, MemoryError, Error
            For the reasons of ``sampler.sample``, and for requests above the server's limits.
        PermissionError
            Without the server's token.
        ConnectionError
            If no server answers, or no server with a trusted certificate.
        TimeoutError
            After ``timeout`` seconds.
        """
        ticket = self._ticket(sampler, seeds, seed, epoch, batch, exclude, seed_time)
        return self._answer(ticket)

    def stream(
        self,
        sampler: Sampler[Any],
        seeds: Any = None,
        *,
        batch_size: int = 1024,
        shuffle: bool = False,
        epoch: int | None = None,
        prefetch: int = 4,
    ) -> Generator[Any, None, None]:
        """Streams batches of all seeds of a homogeneous graph, as ``pygsampler.stream`` does.

        Parameters
        ----------
        sampler : Sampler
            As that of ``sample``.
        seeds : int32 or int64, shape [N], optional
            Default: all nodes.
        batch_size, shuffle, epoch
            As those of ``pygsampler.stream``, whose batches these are.
        prefetch : int
            Requests on their way while one batch is used, at least 1.

        Yields
        ------
        object
            As ``sample``.

        Raises
        ------
        TypeError, ValueError, IndexError, PermissionError, ConnectionError, TimeoutError
            As ``sample``.
        """
        if not isinstance(sampler, Sampler):
            raise TypeError(f"sampler: expected a Sampler, got {describe(sampler)}")
        plan_entry(sampler)
        size = integer(batch_size, "batch_size", 1)
        depth = integer(prefetch, "prefetch", 1, 256)
        number = sampler.epoch if epoch is None else integer(epoch, "epoch", 0, MAX_EPOCH)
        ids = None if seeds is None else Array._of_view(as_ids(seeds, "seeds"))
        mixed = boolean(shuffle, "shuffle")
        return self._batches(sampler, ids, size, mixed, number, depth)

    def _batches(
        self,
        sampler: Sampler[Any],
        ids: Array | None,
        size: int,
        mixed: bool,
        epoch: int,
        depth: int,
    ) -> Generator[Any, None, None]:
        count = len(ids) if ids is not None else self.about()["num_nodes"]
        if not isinstance(count, int):
            raise TypeError("seeds: expected a homogeneous graph, got a heterogeneous one")
        if mixed:
            ids = _shuffled(ids, count, sampler.seed, epoch)
        pool = ThreadPoolExecutor(depth, "pygsampler-flight")
        coming: deque[Future[Any]] = deque()
        try:
            for step in range(-(-count // size)):
                first, end = step * size, min((step + 1) * size, count)
                chosen = array("q", range(first, end)) if ids is None else ids[first:end]
                ticket = self._ticket(sampler, chosen, None, epoch, step, None, None)
                coming.append(pool.submit(self._answer, ticket))
                if len(coming) > depth:
                    yield coming.popleft().result()
            while coming:
                yield coming.popleft().result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _ticket(
        self,
        sampler: Any,
        seeds: Any,
        seed: int | None,
        epoch: int | None,
        batch: int | None,
        exclude: Any,
        seed_time: Any,
    ) -> Ticket:
        path: tuple[Any, ...] = ()
        if isinstance(sampler, Mapping):
            plan, spans = sampler if isinstance(sampler, Plan) else Plan(**sampler), False
            seed = integer(0 if seed is None else seed, "seed", 0, (1 << 64) - 1)
            epoch = integer(0 if epoch is None else epoch, "epoch", 0, MAX_EPOCH)
            batch = integer(0 if batch is None else batch, "batch", 0, MAX_BATCH)
        else:
            plan, path, spans = plan_entry(sampler)
            if seed is not None:
                raise ValueError(f"seed: expected None for a sampler, which has one, got {seed!r}")
            seed = sampler.seed
            epoch = sampler._numbers.chosen_epoch(epoch)
            batch = sampler._numbers.chosen_batch(batch)
        return Ticket.from_request(plan, path, spans, seed, epoch, batch, seeds, seed_time, exclude)

    def _answer(self, ticket: Ticket) -> Any:
        text, rows = ticket.written()

        def get(options: Any) -> Any:
            if rows is None:
                return _read_result(self._flight.do_get(flight.Ticket(text), options))
            descriptor = flight.FlightDescriptor.for_command(text)
            writer, reader = self._flight.do_exchange(descriptor, options)
            with writer:
                writer.begin(rows.schema)
                writer.write_batch(rows)
                writer.done_writing()
                return _read_result(reader)

        made = self._request(get)
        if isinstance(made, Visits):
            # The message does not name the node type of the seeds. Walks along edge types have one.
            kind, ids = None, ticket.seeds
            if isinstance(ids, Mapping):
                ((kind, ids),) = ids.items()
            made._by(as_ids(ids, "seeds"), kind)
        return made

    def _request(self, ask: Any) -> Any:
        """Returns the answer to a request, which is repeated while the server is busy."""
        end, pause = time.monotonic() + self._timeout, _PAUSE
        while True:
            if self._flight is None:
                raise ClosedError("Client: expected an open one, got a closed one")
            left = max(end - time.monotonic(), 0.001)
            try:
                return ask(flight.FlightCallOptions(timeout=left, headers=self._headers))
            except (flight.FlightError, pyarrow.ArrowException) as error:
                if not is_busy(error) or time.monotonic() + pause >= end:
                    if is_busy(error):
                        raise TimeoutError(
                            f"{self.location}: expected an answer within {self._timeout:g} s, got "
                            "that the server is busy"
                        ) from None
                    raise decode_error(error, self.location) from None
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def close(self) -> None:
        """Ends the connection."""
        client, self._flight = self._flight, None
        if client is not None:
            client.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self.location!r})"


def _read_result(reader: Any) -> Any:
    return decode_result(reader.schema, (chunk.data for chunk in reader))
