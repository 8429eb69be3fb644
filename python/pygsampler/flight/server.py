"""``Server``: answers for a graph over Arrow Flight."""

from __future__ import annotations

import ctypes
import hashlib
import hmac
import ipaddress
import itertools
import json
import logging
import threading
import weakref
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow
from pyarrow import flight

from pygsampler._engine import library
from pygsampler._engine.checks import boolean, describe, integer
from pygsampler._graph.graph import Graph, is_heterogeneous
from pygsampler._graph.metapath import resolved
from pygsampler._graph.schema import check_by_type, relation_name
from pygsampler.flight.errors import busy, denied, encode_error
from pygsampler.flight.limits import Limits, Most
from pygsampler.flight.registry import sampler_from_plan
from pygsampler.flight.results import SentResult
from pygsampler.flight.ticket import VERSION, Ticket
from pygsampler.programs._language.text import arrays, operator_arrays

if TYPE_CHECKING:
    from types import TracebackType

    from pygsampler._graph.schema import EdgeType
    from pygsampler._sampling.plan import Plan

logger = logging.getLogger("pygsampler.flight")

# The most bytes of a ticket's JSON, and of its arrays beyond 24 bytes per seed.
_LONGEST_TICKET = 1 << 20
# Forms of a graph that are made for requests (by weights, times, metapaths, ...) and kept with it.
_MOST_FORMS = 32
# The fields of plans that name arrays which forms are made by.
_OF_FORMS = ("prob", "mask", "time", "edge_types", "weight")
_SHORTEST_TOKEN = 16


class Server:
    """Serves samples of a graph to remote clients, from its construction until ``close()``.

    A request is a ticket: a sampler's plan, the seed, epoch and batch, and the seeds. Its answer is
    the result of the sampler, as Arrow record batches; docs/guide/flight.md has the format of both,
    for clients in any language, and ``Client`` is the client in Python. Requests that cannot be
    answered return errors, and the server continues.

    Parameters
    ----------
    graph : Graph
        The graph, which stays open; a graph on a GPU is sampled there.
    host : str
        The address to listen on. Others than loopback ones take a ``token``.
    port : int
        0 takes a free port.
    token : str, optional
        The token that clients must send, 16 characters or more of ASCII without blanks.
    cert, key : path, optional
        PEM files of the certificate and its private key: TLS. Without them all data is sent
        unencrypted, the token too.
    max_seeds : int
        Seeds of a request at most.
    max_edges : int
        Edges that a plan may draw at worst, which bounds the memory of sampling a batch: from seeds
        and fanouts, where -1 is all edges of the graph, or of the node with most.
    max_bytes : int
        Bytes of a result at most, below 2 GiB.
    max_requests : int, optional
        Requests that are answered at once; other clients are asked to repeat theirs. By default two
        for each thread of the engine.
    programs : bool
        True runs programs that clients send. The memory of a program is known only when it runs.

    Raises
    ------
    TypeError, ValueError
        For an argument of another type or value, and for an address that others can reach without
        a token.
    OSError
        Where the address cannot be listened on, or a file not be read.
    """

    def __init__(
        self,
        graph: Graph,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        token: str | None = None,
        cert: str | PathLike[str] | None = None,
        key: str | PathLike[str] | None = None,
        max_seeds: int = 1 << 16,
        max_edges: int = 1 << 26,
        max_bytes: int = 1 << 28,
        max_requests: int | None = None,
        programs: bool = False,
    ) -> None:
        if not isinstance(graph, Graph):
            raise TypeError(f"graph: expected a Graph, got {describe(graph)}")
        if not isinstance(host, str):
            raise TypeError(f"host: expected an address, got {describe(host)}")
        integer(port, "port", 0, 65535)
        digest = None if token is None else _digest(_checked_token(token))
        if (cert is None) != (key is None):
            raise ValueError("cert, key: expected both or none, got one of them")
        if not _is_loopback(host):
            if token is None:
                raise ValueError(
                    f"token: expected one to listen on {host!r}, which other machines may reach, "
                    "got none"
                )
            if cert is None:
                logger.warning("the token goes in the clear on %s: there is no certificate", host)
        if max_requests is None:
            max_requests = 2 * library.get_num_threads()
        limits = Limits(max_seeds, max_edges, max_bytes, max_requests).check()
        self._answers = _ResultBuilder(graph, limits, boolean(programs, "programs"))
        tls = None if cert is None or key is None else [(_read(cert), _read(key))]
        scheme = "grpc" if tls is None else "grpc+tls"
        shown = f"[{host}]" if ":" in host else host
        # Who may come is asked before anything of a request is looked at.
        middleware = {} if digest is None else {"token": _Token(digest)}
        try:
            self._flight = _Flight(
                f"{scheme}://{shown}:{port}",
                tls_certificates=tls,
                middleware=middleware,
                answers=self._answers,
            )
        except pyarrow.ArrowException as error:
            raise OSError(
                f"{shown}:{port}: expected an address to listen on, got {error}"
            ) from None
        self.location = f"{scheme}://{shown}:{self._flight.port}"
        self._closed = False

    @property
    def port(self) -> int:
        """The port that the server listens on."""
        port: int = self._flight.port
        return port

    def close(self, grace: float = 5.0) -> None:
        """Ends the service. The graph stays open.

        Parameters
        ----------
        grace : float
            Seconds that requests which are being answered have; new ones are refused.
        """
        if self._closed:
            return
        self._closed = True
        # Flight waits for clients that do not read their answers, for as long as they like.
        # To leave its block, rather than shutdown(): else the end of the interpreter does it again.
        ending = threading.Thread(target=self._flight.__exit__, args=(None,) * 3, daemon=True)
        ending.start()
        ending.join(grace)
        if ending.is_alive():
            logger.warning("requests are left that clients do not read the answers of")
            # Its destructor would wait for them.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._flight))

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Server({self._answers.graph!r}, {self.location!r})"


class _ResultBuilder:
    """The builder of answers to requests for a graph."""

    def __init__(self, graph: Any, limits: Limits, programs: bool) -> None:
        self.graph, self.limits, self._programs = graph, limits, programs
        self._most = Most(graph)
        self._edge_types: dict[str, Any] = {}
        data: list[Any] = [graph.edata, graph.ndata]
        if is_heterogeneous(graph):
            self._edge_types = {relation_name(kind): kind for kind in graph.edge_types}
            data = [*graph.edata.values(), *graph.ndata.values()]
        self._names = {name for named_ in data for name in named_}
        self._free = threading.Semaphore(limits.requests)
        self._forms: set[Any] = set()
        self._lock = threading.Lock()

    def acquire_slot(self) -> RequestSlot:
        """The right to be answered; an error where all are taken."""
        if not self._free.acquire(blocking=False):
            raise busy(self.limits.requests)
        return RequestSlot(self._free)

    def describe_graph(self) -> dict[str, Any]:
        """Describes the graph that is served, for clients."""
        graph = self.graph
        typed = is_heterogeneous(graph)
        edges = (
            {relation_name(kind): count for kind, count in graph.num_edges.items()} if typed else 0
        )
        return {
            "version": VERSION,
            "num_nodes": dict(graph.num_nodes) if typed else graph.num_nodes,
            "num_edges": edges if typed else graph.num_edges,
            "dtype": graph.dtype,
            "edge_types": graph.edge_types if typed else None,
            "programs": self._programs,
            **{f"max_{name}": value for name, value in self.limits._asdict().items()},
        }

    def result(self, ticket: Ticket) -> SentResult:
        """Returns the result that a ticket asks for."""
        self.limits.check_seeds(ticket.num_seeds)
        plan = ticket.plan
        if plan["family"] == "program" and not self._programs:
            raise ValueError("plan: expected one without a program (programs=False), got one")
        if plan["family"] == "rows":
            raise ValueError("plan: expected one that makes batches, got one of whole rows")
        self._most.check(plan, ticket.num_seeds, self.limits)
        path = resolved(ticket.metapath, tuple(self._edge_types.values()))
        self._check_form(plan, path)
        sampler = sampler_from_plan(plan, ticket.seed, path, ticket.spans)
        more: dict[str, Any] = {}
        if ticket.seed_time is not None:
            if plan.get("time") is None:
                raise ValueError("seed_time: expected none for a plan without time, got some")
            more["seed_time"] = ticket.seed_time
        if ticket.exclude is not None:
            more["exclude"] = self._by_edge_type(ticket.exclude)
        result = sampler.sample(
            self.graph, ticket.seeds, epoch=ticket.epoch, batch=ticket.batch, **more
        )
        sent = SentResult(result if self.graph.device == "cpu" else result.cpu())
        self.limits.check_bytes(sent.num_bytes)
        return sent

    def _by_edge_type(self, exclude: Any) -> Any:
        if not isinstance(exclude, dict):
            return exclude
        return check_by_type(exclude, "exclude", tuple(self._edge_types.values()))

    def _check_form(self, plan: Plan, path: tuple[EdgeType, ...]) -> None:
        """Checks the number of derived graphs, which are as large as the graph and stay in memory.

        Plans with arrays or edge types that do not exist derive no graph: their samplers report
        that.
        """
        names = [plan.get(name) for name in _OF_FORMS]
        code = plan.get("code")
        if code is not None:
            names += [*itertools.chain(*arrays(code)), *operator_arrays(code, "features")]
        if not self._names.issuperset(filter(None, names)):
            return
        if not self._edge_types.keys() >= set(map(relation_name, path)):
            return
        second = plan.get("p", 1) != 1 or plan.get("q", 1) != 1
        types = tuple(dict.fromkeys(path)), path[:1]
        key = plan["family"] == "walk", plan.get("direction"), second, *names, types
        with self._lock:
            if key not in self._forms and len(self._forms) >= _MOST_FORMS:
                raise ValueError(
                    f"plan: expected one by weights, times, directions and types of one of "
                    f"{_MOST_FORMS} requests before, got other ones"
                )
            self._forms.add(key)


class RequestSlot:
    """Counts as a request that is being answered for as long as it lives."""

    def __init__(self, free: threading.Semaphore) -> None:
        self.end = weakref.finalize(self, free.release)


class _Pieces:
    """The record batches of an answer. Flight lets go of it when the client has them, or left."""

    def __init__(self, sent: SentResult, slot: RequestSlot) -> None:
        self._turn = slot
        self._batches = sent.batches()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._batches)


class _Flight(flight.FlightServerBase):  # type: ignore[misc]
    """Flight's side of it. Its methods run in threads of gRPC's."""

    def __init__(self, location: str, *, answers: _ResultBuilder, **options: Any) -> None:
        self._answers = answers
        super().__init__(location, **options)

    def do_get(self, context: Any, ticket: Any) -> Any:
        with encode_error():
            turn = self._answers.acquire_slot()
            try:
                sent = self._answers.result(Ticket.read(_short(ticket.ticket)))
                return flight.GeneratorStream(sent.schema, _Pieces(sent, turn))
            except BaseException:
                # A logger, for one, may hold the error, and this frame by its traceback.
                turn.end()
                raise

    def do_exchange(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        with encode_error():
            text = _short(descriptor.command or b"")
            rows = self._arrays(reader)
            turn = self._answers.acquire_slot()
            try:
                sent = self._answers.result(Ticket.read(text, rows))
                writer.begin(sent.schema)
                for batch in sent.batches():
                    writer.write_batch(batch)
            finally:
                turn.end()

    def _arrays(self, reader: Any) -> Any:
        """Returns the record batch that a request sends with its ticket."""
        try:
            rows = reader.read_chunk().data
        except StopIteration:
            return None
        most = 3 * 8 * self._answers.limits.seeds + _LONGEST_TICKET
        if rows is not None and rows.nbytes > most:
            raise ValueError(f"arrays: expected at most {most} bytes, got {rows.nbytes}")
        for more in reader:
            raise ValueError(
                f"arrays: expected one record batch, got more: {more.data.num_rows} rows"
            )
        return rows

    def do_action(self, context: Any, action: Any) -> Any:
        with encode_error():
            if action.type != "about":
                raise ValueError(f"action: expected 'about', got {describe(action.type)}")
            return [json.dumps(self._answers.describe_graph()).encode()]

    def list_actions(self, context: Any) -> Any:
        return [("about", "What is served: the graph's sizes, and how much may be asked for.")]

    def list_flights(self, context: Any, criteria: Any) -> Any:
        self._no("list_flights")

    def get_flight_info(self, context: Any, descriptor: Any) -> Any:
        self._no("get_flight_info")

    def get_schema(self, context: Any, descriptor: Any) -> Any:
        self._no("get_schema")

    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        self._no("do_put")

    def _no(self, what: str) -> NoReturn:
        with encode_error():
            raise NotImplementedError(f"expected do_get, do_exchange or an action, got {what}")
        raise AssertionError


class _Token(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Lets those in who show the token."""

    def __init__(self, digest: bytes) -> None:
        super().__init__()
        self._digest = digest

    def start_call(self, info: Any, headers: Any) -> None:
        shown = headers.get("authorization", [])
        if len(shown) == 1:
            kind, _, token = shown[0].partition(" ")
            # Digests, so that the time says nothing of a length either.
            if kind.lower() == "bearer" and hmac.compare_digest(_digest(token), self._digest):
                return
        raise denied(
            "token: expected the server's (authorization: Bearer ...), got another or none"
        )


def _digest(token: str) -> bytes:
    return hashlib.blake2b(token.encode("utf-8", "surrogateescape")).digest()


def _checked_token(token: Any) -> str:
    if not isinstance(token, str):
        raise TypeError(f"token: expected a text, got {type(token).__name__}")
    if len(token) < _SHORTEST_TOKEN or not all("!" <= letter <= "~" for letter in token):
        raise ValueError(
            f"token: expected at least {_SHORTEST_TOKEN} characters of ASCII without blanks, got "
            f"{len(token)} characters"
        )
    return token


def _short(text: bytes) -> bytes:
    if len(text) > _LONGEST_TICKET:
        raise ValueError(
            f"ticket: expected at most {_LONGEST_TICKET} bytes, got {len(text)}; long lists go as "
            "arrays"
        )
    return text


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _read(path: str | PathLike[str]) -> bytes:
    return Path(path).read_bytes()
