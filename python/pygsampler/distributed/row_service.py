"""``RowService``: a thread that asks other processes for rows of their parts, and answers them."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import threading
from array import array
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, InvalidStateError
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from pygsampler._engine import library, memory
from pygsampler._sampling.plan import Plan
from pygsampler.distributed.exchange import Exchange, Message
from pygsampler.distributed.messages import (
    FEATURES,
    RowReply,
    RowRequest,
    concatenate,
    read_replies,
)
from pygsampler.distributed.row_server import along_out_edges
from pygsampler.errors import ClosedError, Error

if TYPE_CHECKING:
    from pygsampler.distributed.hetero_row_server import HeteroRowServer
    from pygsampler.distributed.partition import Partition
    from pygsampler.distributed.row_server import RowServer
    from pygsampler.distributed.temporal import PartitionTimes

logger = logging.getLogger("pygsampler.distributed")

# Words that say what a question asks, before where each part's nodes begin; as in Go.
_ASK_WORDS = 5
# The longest single wait in the engine.
_WAIT_MS = 1000
# The time that the end of the interpreter waits for a round, in seconds.
_LAST_ROUND = 3.0
# With nothing to ask, the processes meet this often, in seconds: first, and at last.
_IDLE, _LONGEST_IDLE = 0.0002, 0.005


class RowFetch:
    """Rows of a node array on their way: for each part, in order, numbers of its own rows."""

    def __init__(self, name: str, bits: int, ids: Sequence[bytes]) -> None:
        self.name, self.bits, self.ids = name, bits, ids
        self.rows: Future[list[memoryview]] = Future()

    def questions(self) -> Iterator[tuple[int, RowRequest]]:
        """Yields the parts that are asked, each with its question."""
        for part, ids in enumerate(self.ids):
            if ids:
                count = len(ids) // (self.bits // 8)
                about = self.name, 0, FEATURES, 0, 0, self.bits, count
                yield part, RowRequest(*about, ids, b"", b"", b"")


class _PendingRequest(NamedTuple):
    """A job on its way."""

    number: int
    document: str
    seed: int
    when: tuple[int, int]
    exclude: Sequence[bytes]  # of each relation; empty: none


# Questions for each part, the jobs that ask with the parts that they ask, and fetches.
_Round: TypeAlias = (
    "tuple[list[list[RowRequest]], list[tuple[_PendingRequest, list[int]]], list[RowFetch]]"
)


class RowService:
    """Fetches the rows that batches of a partitioned graph request, in a separate thread."""

    def __init__(
        self,
        exchange: Exchange,
        owner: RowServer | HeteroRowServer | None,
        relations: Sequence[Partition],
        out: Sequence[Partition],
        times: Callable[[str], PartitionTimes],
    ) -> None:
        """Creates the service of ``relations`` and of their reverses ``out``, which may be empty.

        ``times`` returns the kind of times of a name; ``owner`` answers requests for this process's
        part.
        """
        self.bounds, self._out_bounds = (
            array("q", [bound for each in parts for bound in each.bounds])
            for parts in (relations, out)
        )
        self._of_relations = [relation.arrays["edges"] for relation in relations]
        arrays: dict[str, Any] = {}
        for each in self._of_relations:
            arrays.update(each)
        self._arrays, self._owner = arrays, owner
        self.times = times
        self._parts, self._relations = exchange.size, len(relations)
        self._exchange = exchange
        self._wake = threading.Condition()
        self._new: list[_PendingRequest] = []
        self._jobs: list[_PendingRequest] = []
        self._fetches: list[RowFetch] = []
        self._flying: list[RowFetch] = []
        self._leaving = self._ending = False
        self._process = os.getpid()
        self._failed: str | None = None
        self._generation = library.generation()
        self._thread = threading.Thread(target=self._run, name="pygsampler-parts", daemon=True)
        self._thread.start()
        # A thread that is within an exchange when the interpreter ends would abort the process.
        atexit.register(self._at_exit)

    @property
    def part(self) -> int | None:
        """The part that this process has, or None."""
        return None if self._owner is None else self._exchange.rank

    # ---- what samplers ask of it ---------------------------------------------------------------

    def check(self, plan: Plan) -> None:
        """Refuses plans of arrays that the parts do not have, and any where nobody answers."""
        self.check_open()
        for kind in ("prob", "mask", "edge_types"):
            name = plan.get(kind)
            if name is not None:
                self._array_description(kind, name)

    def check_arrays(self, names: Sequence[str], weight: str | None) -> None:
        """Refuses names of edge arrays that the parts do not have, or not with a number an edge."""
        for kind, name in [*(("edata", name) for name in names), ("weight", weight)]:
            if name is not None and (shape := self._array_description(kind, name)["shape"]):
                raise ValueError(
                    f"{kind}: expected an edge array with a number for each edge, got {name!r} "
                    f"with {tuple(shape)}"
                )

    def _array_description(self, kind: str, name: str) -> Any:
        """Returns the facts about the edge array of that name."""
        if name not in self._arrays:
            have = ", ".join(map(repr, self._arrays)) or "none"
            raise ValueError(
                f"{kind}: expected the name of an edge array of the graph ({have}), got {name!r}"
            )
        return self._arrays[name]

    def bounds_of(self, plan: Plan) -> array[int]:
        """Returns where parts begin whose rows a plan reads; ValueError where there are none."""
        if not along_out_edges(plan):
            return self.bounds
        if not self._out_bounds:
            raise ValueError(
                "direction: expected 'in' for parts without out-edges, got 'out'; partition(..., "
                "out_edges=True) and pygsampler partition --out-edges write them"
            )
        return self._out_bounds

    def check_open(self) -> None:
        """Error where nobody answers."""
        if self._generation != library.generation():
            raise Error(
                "graph: expected a partitioned graph that this process has opened, got one of its "
                "parent process; a fork does not inherit the exchange"
            )
        if self._failed is not None:
            raise Error(self._failed)
        if self._leaving:
            raise ClosedError("graph: expected an open one, got a closed one")

    def check_relation(self, place: int, prob: str | None) -> None:
        """Raises ValueError for a relation without weights of that name."""
        relation = self._of_relations[place]
        if prob is not None and prob not in relation:
            have = ", ".join(map(repr, relation)) or "none"
            raise ValueError(
                f"prob: expected the name of an edge array of all types of the metapath ({have}), "
                f"got {prob!r}"
            )

    def register(
        self,
        number: int,
        document: str,
        seed: int,
        when: tuple[int, int],
        exclude: Sequence[bytes] = (),
    ) -> object:
        """Serves a job of the engine from now on; ``exclude`` are edges of each relation."""
        with self._wake:
            self._new.append(_PendingRequest(number, document, seed, when, exclude))
            self._wake.notify()
        return self

    def fetch(self, fetch: RowFetch) -> None:
        """Brings rows of a node array."""
        self.check_open()
        with self._wake:
            self._fetches.append(fetch)
            self._wake.notify()

    def close(self, timeout: float | None = None) -> None:
        """Leaves: this process asks nothing more, and answers until all others leave, too."""
        with self._wake:
            self._leaving = True
            self._wake.notify()
        if self._thread is not threading.current_thread():
            self._thread.join(timeout)
            if self._thread.is_alive():
                logger.warning("the other processes have not closed their graphs in %s s", timeout)
                return
        atexit.unregister(self._at_exit)

    def _at_exit(self) -> None:
        """Ends the thread of a graph that nobody has closed; the other processes fail."""
        if os.getpid() != self._process:
            return
        with self._wake:
            self._ending = True
            self._wake.notify()
        self._thread.join(_LAST_ROUND)

    # ---- the thread ----------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            idle = _IDLE
            given: list[Message] | None = []
            while not self._ending:
                # Jobs read the answers until they ask again, which is waited for here.
                questions, askers, fetches = self._questions()
                busy = bool(askers or fetches)
                if not busy and not self._exchange.together:
                    if self._rest(None):
                        return
                    continue
                # Its own part's rows take no way at all.
                here: list[RowReply] = []
                if self._owner is not None:
                    own, questions[self._exchange.rank] = questions[self._exchange.rank], []
                    here = [self._owner.reply(question) for question in own]
                given = self._exchange.ask(
                    [concatenate([q.message() for q in part]) for part in questions],
                    self._answers,
                    leaving=self._leaving and not busy,
                )
                if given is None:
                    return
                found = [
                    iter(read_replies(memoryview(message), len(part)))
                    for message, part in zip(given, questions, strict=True)
                ]
                if self._owner is not None:
                    found[self._exchange.rank] = iter(here)
                self._hand_out(askers, fetches, found)
                if busy or self._exchange.busy:
                    idle = _IDLE
                else:
                    idle = min(2 * idle, _LONGEST_IDLE)
                    self._rest(idle if self._exchange.together else None)
        except BaseException as error:
            self._fail(error)
        finally:
            with contextlib.suppress(Exception):
                self._exchange.close()

    def _rest(self, seconds: float | None) -> bool:
        """Waits for a job; True where there is none and none will come."""
        with self._wake:
            if not (self._new or self._fetches or self._leaving or self._ending):
                self._wake.wait(seconds)
            return self._leaving and not (self._new or self._jobs or self._fetches)

    def _questions(self) -> _Round:
        """Returns the questions of all jobs by part, and for each job which parts it asks."""
        with self._wake:
            self._jobs += self._new
            fetches = self._flying = self._fetches
            self._new, self._fetches = [], []
        parts, places = self._parts, self._parts * self._relations
        questions: list[list[RowRequest]] = [[] for _ in range(parts)]
        # In the order in which _hand_out takes the answers.
        for fetch in fetches:
            for part, question in fetch.questions():
                questions[part].append(question)
        askers: list[tuple[_PendingRequest, list[int]]] = []
        words = array("q", bytes(8 * (_ASK_WORDS + places + 1)))
        going: list[_PendingRequest] = []
        for job in self._jobs:
            if not self._wait_for_request(job, words):
                continue
            going.append(job)
            hop, bits, *addresses = words[:_ASK_WORDS]
            starts, width = words[_ASK_WORDS:], bits // 8
            asked: list[int] = []
            # The parts' rows of the first relation, then those of the second, and so on.
            for place in range(places):
                first, end = starts[place], starts[place + 1]
                if first == end:
                    continue
                relation, part = divmod(place, parts)
                vertices, subgraph_ids, limits = (
                    bytes(memory.memory_view(at + first * size, (end - first) * size))
                    if at
                    else b""
                    for at, size in zip(addresses, (width, width, 8), strict=True)
                )
                site = hop * self._relations + relation
                about = job.document, job.seed, site, *job.when, bits, end - first
                without = job.exclude[relation] if job.exclude else b""
                questions[part].append(RowRequest(*about, vertices, subgraph_ids, limits, without))
                asked.append(place)
            askers.append((job, asked))
        self._jobs = going
        return questions, askers, fetches

    def _wait_for_request(self, job: _PendingRequest, words: array[int]) -> bool:
        """Waits for a job's next question; False where it asks nothing more."""
        try:
            while not self._ending:
                state = library.call(
                    "JobAsks", job.number, _WAIT_MS, words.buffer_info()[0], len(words)
                )
                if state:
                    return bool(state == 1)
            return False
        except ClosedError:
            # It was cancelled, or is done, and its result has been taken.
            return False

    def _hand_out(
        self,
        askers: Sequence[tuple[_PendingRequest, list[int]]],
        fetches: Sequence[RowFetch],
        replies: Sequence[Iterator[RowReply]],
    ) -> None:
        """Gives jobs their answers, which stay until every job has asked again, or is done."""
        for fetch in fetches:
            came = [(part, next(replies[part])) for part, _ in fetch.questions()]
            wrong = [f"part {part}: {rows.error}" for part, rows in came if rows.error]
            if not fetch.rows.set_running_or_notify_cancel():
                continue
            if wrong:
                fetch.rows.set_exception(Error("; ".join(wrong)))
            else:
                fetch.rows.set_result([rows.rows for _, rows in came])
        for job, asked in askers:
            places = self._parts * self._relations
            list_ = array("q", bytes(16 * places))
            errors: list[str] = []
            for place in asked:
                part = place % self._parts
                rows = next(replies[part])
                list_[2 * place], list_[2 * place + 1] = rows.address, rows.size
                if rows.error:
                    errors.append(f"part {part}: {rows.error}")
            with contextlib.suppress(ClosedError):
                if errors:
                    library.call("JobFail", job.number, "; ".join(errors))
                else:
                    library.call("JobAnswer", job.number, list_.buffer_info()[0], places)

    def _answers(self, messages: Sequence[Message]) -> list[Message]:
        """Rows of this process's part, for all others that ask for some."""
        owner = self._owner
        assert owner is not None
        return [owner.answer(message) for message in messages]

    def _fail(self, error: BaseException) -> None:
        """Ends all jobs, and those to come, by what went wrong."""
        text = str(error).strip().splitlines()
        self._failed = (
            f"exchange: process {self._exchange.rank} of {self._exchange.size} could not go on: "
            f"{type(error).__name__}: {text[0] if text else ''}"
        )
        logger.error("%s", self._failed)
        with self._wake:
            jobs, self._new, self._jobs = self._jobs + self._new, [], []
            fetches, self._fetches = self._flying + self._fetches, []
        for fetch in fetches:
            # One that was cancelled takes nothing more, and one of the last round may be done.
            with contextlib.suppress(InvalidStateError):
                fetch.rows.set_exception(Error(self._failed))
        for job in jobs:
            with contextlib.suppress(Exception):
                library.call("JobFail", job.number, self._failed)
