"""Who may ask, how much, and what becomes of a server that is asked for nonsense."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flight_graphs import typed, untyped
from partners import partner

import pygsampler as pgs
from pygsampler.samplers import layer_wise

pyarrow = partner("pyarrow")

from pyarrow import flight  # noqa: E402

from pygsampler.flight import Client, Server  # noqa: E402
from pygsampler.flight.ticket import ARRAYS, Ticket  # noqa: E402
from tests.support.assertions import content  # noqa: E402
from tests.support.research import HAS_RESEARCH  # noqa: E402

TOKEN = "a-token-of-24-characters"
UNIFORM = pgs.PGSampler([3, 2], seed=1)


def plain(**fields: Any) -> dict[str, Any]:
    """A ticket of a client in another language."""
    plan = {"family": "neighbor", "fanouts": [3, 2]}
    return {"version": 1, "plan": plan, "seed": 1, "epoch": 0, "batch": 0, "seeds": [5], **fields}


def asked(location: str, ticket: Any, rows: Any = None) -> Any:
    """What Flight's own client gets."""
    text = ticket if isinstance(ticket, bytes) else json.dumps(ticket).encode()
    options = flight.FlightCallOptions(timeout=20)
    with flight.connect(location) as raw:
        if rows is None:
            return raw.do_get(flight.Ticket(text), options).read_all()
        writer, reader = raw.do_exchange(flight.FlightDescriptor.for_command(text), options)
        with writer:
            writer.begin(rows.schema)
            writer.write_batch(rows)
            writer.done_writing()
            return reader.read_all()


def test_a_token() -> None:
    with Server(untyped(), token=TOKEN) as server:
        with Client(server.location, token=TOKEN) as client:
            assert len(client.sample(UNIFORM, [5, 3]).output_nodes) == 2
        for wrong in (None, "another-of-24-characters", TOKEN[:-1], ""):
            with Client(server.location, token=wrong) as client:
                with pytest.raises(PermissionError, match=r"expected the server's"):
                    client.sample(UNIFORM, [5])
                with pytest.raises(PermissionError):
                    client.about()
        with flight.connect(server.location) as raw:
            for call in (raw.list_flights, raw.list_actions):
                with pytest.raises(flight.FlightUnauthenticatedError):
                    list(call())


@pytest.mark.parametrize("token", ["short", "with a blank in the middle", "umlauts-wär-e-möglich"])
def test_tokens_that_are_none(token: str) -> None:
    with pytest.raises(ValueError, match=r"token: expected at least 16 characters of ASCII"):
        Server(untyped(), token=token)


def test_addresses_that_others_can_reach() -> None:
    for host in ("0.0.0.0", "::", "192.168.7.7", "a.name"):
        with pytest.raises(ValueError, match=r"token: expected one to listen on .*, got none"):
            Server(untyped(), host=host)


def test_no_certificate_there(caplog: pytest.LogCaptureFixture) -> None:
    with Server(untyped(), host="0.0.0.0", token=TOKEN) as server:
        assert "in the clear" in caplog.text
        with Client(f"grpc://127.0.0.1:{server.port}", token=TOKEN) as client:
            assert client.about()["num_nodes"] == untyped().num_nodes


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A self-made certificate of this machine, and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs openssl (apt-get install openssl)")
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-days", "2", "-subj", "/CN=localhost", "-keyout", key, "-out", cert]
    command += ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run(command, check=True, capture_output=True)
    return cert, key


def test_tls(certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    with Server(untyped(), token=TOKEN, cert=cert, key=key) as server:
        assert server.location.startswith("grpc+tls://127.0.0.1:")
        with Client(server.location, token=TOKEN, root_cert=cert) as client:
            expected = content(UNIFORM.sample(untyped(), [5, 3], batch=0))
            assert content(client.sample(UNIFORM, [5, 3], batch=0)) == expected
        with Client(server.location, token=TOKEN, root_cert=cert.read_bytes()) as client:
            assert content(client.sample(UNIFORM, [5, 3], batch=0)) == expected
        for location in (server.location, server.location.replace("+tls", "")):
            refused = pytest.raises((ConnectionError, TimeoutError), match=r"expected an answer")
            with Client(location, token=TOKEN, timeout=5) as client, refused:
                client.about()
    with pytest.raises(ValueError, match=r"cert, key: expected both or none"):
        Server(untyped(), cert=cert)


def test_limits() -> None:
    about: dict[str, Any] = {"max_seeds": 50, "max_bytes": 4000, "max_edges": 1000}
    with Server(untyped(), **about) as server, Client(server.location) as client:
        client.sample(UNIFORM, range(9))
        with pytest.raises(ValueError, match=r"at most 50 a request \(max_seeds\), got 51"):
            client.sample(UNIFORM, range(51))
        with pytest.raises(ValueError, match=r"at most 4000 bytes \(max_bytes\), got \d+"):
            client.sample(UNIFORM, range(50))
        with pytest.raises(ValueError, match=r"at most 1000 edges .* up to 1010 of 10 seeds"):
            client.sample(pgs.RandomWalk(101), range(10))
        with pytest.raises(ValueError, match=r"plan: expected one without a program"):
            client.sample(layer_wise.labor(fanouts=[2]), [5])
        assert client.about()["max_bytes"] == 4000


def test_the_worst_case_bounds_what_is_drawn() -> None:
    from pygsampler.flight.limits import Most

    graphs = [(untyped(), list(range(150))), (typed(), {"paper": range(60), "author": range(30)})]
    options: list[dict[str, Any]] = [
        *({"replace": replace} for replace in (False, True)),
        *({"disjoint": True, "frontier": frontier} for frontier in ("all", "new")),
    ]
    for graph, seeds in graphs:
        most = Most(graph)
        for fanouts in ([-1], [3, 2], [-1, 3], [2, -1], [0, 2, 2]):
            for option in options:
                sampler = pgs.PGSampler(fanouts, seed=1, **option)
                count = 150 if graph is untyped() else 90
                batch: Any = sampler.sample(graph, seeds)
                assert batch.num_edges <= most.edges(sampler.plan, count), (sampler, graph)
    walkers: list[Any] = [pgs.RandomWalk(5, walks_per_seed=2), pgs.walks.MultiRW(3, 7)]
    if HAS_RESEARCH:
        walkers += [pgs.research.KHop([3, 2, 2]), pgs.research.LayerSample([3, 4])]
    for walker in walkers:
        made: Any = walker.sample(untyped(), range(30))
        assert made.num_edges == Most(untyped()).edges(walker.plan, 30)


def test_what_a_sampler_refuses(client: Client) -> None:
    refused = TypeError, ValueError, IndexError, NotImplementedError
    for sampler, seeds, about, error in (
        (UNIFORM, [203], {}, r"seeds\[0\]: expected an id in \[0, 203\), got 203"),
        (pgs.PGSampler([2], prob="no"), [5], {}, r"prob: expected the name of an edge array"),
        (UNIFORM, [5], {"exclude": [10**6]}, r"exclude\[0\]"),
        (UNIFORM, [5], {"seed_time": 3}, r"seed_time: expected none"),
        (pgs.RandomWalk(3), [5], {"exclude": [1]}, r"exclude: expected None for walks"),
        (pgs.samplers.HGTSampler([2]), [5], {}, r"graph: expected a heterogeneous graph"),
        (UNIFORM, {"paper": [5]}, {}, r"seeds"),
    ):
        with pytest.raises(refused, match=error) as e:
            client.sample(sampler, seeds, **about)  # type: ignore[arg-type]
        with pytest.raises(type(e.value)):
            sampler.sample(untyped(), seeds, **about)
    with pytest.raises(ValueError, match="plan: expected one that makes batches"):
        client.sample({"family": "rows"}, [5])


def test_what_a_client_refuses(client: Client) -> None:
    class Own(pgs.PGSampler):
        pass

    for sampler in (Own([2]), untyped(), pgs.walks.RestartNeighbors("y", {1: 2})):
        with pytest.raises(TypeError, match=r"sampler: expected a plan, or one of the package's"):
            client.sample(sampler, [5])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"seeds.*: expected an integer"):
        client.sample(UNIFORM, [0.5])
    with pytest.raises(ValueError, match=r"location: expected 'grpc://host:port'"):
        Client("http://127.0.0.1:1")
    wrong: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"root_cert": 5}, TypeError, "root_cert: expected a path or bytes of PEM, got int 5"),
        ({"token": b"secret"}, TypeError, r"token: expected a str, got bytes$"),
        ({"token": "\N{BULLET}" * 16}, ValueError, "token: expected characters of ASCII"),
        ({"timeout": "60"}, TypeError, "timeout: expected seconds, got str '60'"),
        ({"timeout": 0}, ValueError, "timeout: expected seconds > 0, got 0"),
    ]
    for options, kind, text in wrong:
        with pytest.raises(kind, match=text):
            Client("grpc://127.0.0.1:1", **options)
    refused = pytest.raises(ConnectionError, match=r"grpc://127.0.0.1:1: expected an answer")
    with Client("grpc://127.0.0.1:1", timeout=5) as nobody, refused:
        nobody.about()
    with pytest.raises(pgs.errors.ClosedError):
        nobody.about()


HOSTILE: list[Any] = [
    *(b"", b"\xff\xfe", b"null", b"[]", b"{}", b"{" * 100_000, b"[" * 100_000, b"1" * 5000),
    *({}, {"version": 2}, {"version": 1}, plain(plan=None), plain(plan=[]), plain(plan={})),
    *(plain(plan={"family": 3}), plain(plan={"family": "no"}), plain(plan={"self": 1})),
    *(plain(plan={"family": "typed", "fanouts": 7}), plain(plan={"family": "typed"})),
    plain(plan={"family": "neighbor", "fanouts": [1] * 300}),
    plain(plan={"family": "neighbor", "fanouts": [10**30]}),
    plain(plan={"family": "neighbor", "fanouts": [2**31 - 1] * 20, "replace": True}),
    plain(plan={"family": "neighbor", "fanouts": [-1] * 99, "disjoint": True}, seeds=[9] * 999),
    plain(plan={"family": "walk", "length": 10**6, "walks_per_seed": 10**9}),
    plain(plan={"family": "walk", "length": 2, "roots": 4096}),
    plain(plan={"family": "khop", "fanouts": [2**20] * 16}),
    plain(plan={"family": "khop", "fanouts": None, "sizes": None}),
    plain(plan={"family": "program", "code": []}),
    plain(plan={"family": "program", "code": ["%0 = seeds", "return blocks %7"]}),
    plain(plan={"family": "neighbor", "fanouts": [2], "prob": "x" * 70_000}),
    *(plain(seed=value) for value in (-1, 2**64, 1.5, "1", None, True)),
    *(plain(epoch=value) for value in (-1, 2**24, "1", [])),
    *(plain(batch=value) for value in (-1, 2**40, {})),
    *(plain(seeds=value) for value in (None, 5, "5", [None], [[5]], [5.5], [2**70], [-1], [True])),
    *(plain(seeds=value) for value in ({"a": [1]}, {"a": 1}, {}, ["5"])),
    *(plain(exclude=value) for value in (5, ["1"], [-1], {"a": [1]}, [2**63])),
    *(plain(seed_time=value) for value in (True, "now", [[1]], {"a": 1})),
    plain(plan={"family": "temporal", "fanouts": [2], "time": "t"}, seed_time=["x"]),
    plain(plan={"family": "temporal", "fanouts": [2], "time": "t"}, seed_time=[1] * 7),
    *(plain(metapath=value) for value in (5, ["a"], [["a", "b"]], [[1, 2, 3]])),
    *(plain(metapath=[["a", "b", "c"]]), plain(nonsense=1), plain(version="1")),
    plain(metapath=[["a", "b", "a"]], plan={"family": "walk", "length": 2}),
    plain(metapath=[["a", "b", "a"]], plan={"family": "walk", "length": 0, "top_visits": 3}),
]


@pytest.fixture(scope="module")
def hardened() -> Any:
    with Server(untyped(), programs=True) as server:
        yield server.location


@pytest.mark.parametrize("place", range(len(HOSTILE)))
def test_hostile_tickets(hardened: str, place: int) -> None:
    with pytest.raises(flight.FlightServerError) as error:
        asked(hardened, HOSTILE[place])
    kind, text = json.loads(error.value.extra_info)
    assert kind in ("TypeError", "ValueError", "IndexError", "OverflowError", "MemoryError")
    assert ("expected" in text or "Expecting" in text) and "Traceback" not in text, text
    # The next one is answered.
    assert asked(hardened, plain()).num_rows == 3


def test_hostile_arrays(hardened: str) -> None:
    def rows(**columns: Any) -> Any:
        usual = {"name": ["seeds"], "type": [None], "ids": [[5]], "numbers": [None]}
        return pyarrow.RecordBatch.from_pydict({**usual, **columns}, schema=ARRAYS)

    ticket = plain()
    del ticket["seeds"]
    assert asked(hardened, ticket, rows()).num_rows == 3
    bad = [
        rows(name=["other"]),
        rows(name=[None]),
        rows(ids=[None]),
        rows(ids=[[None, 5]]),
        rows(ids=[[-1]]),
        rows(type=["paper"]),
        rows(numbers=[[5.0]]),
        rows(name=["seeds"] * 2, type=[None] * 2, ids=[[5]] * 2, numbers=[None] * 2),
        rows(name=["seeds"] * 2, type=[None, "a"], ids=[[5]] * 2, numbers=[None] * 2),
        pyarrow.RecordBatch.from_pydict({"seeds": [5]}),
    ]
    for each in bad:
        with pytest.raises(flight.FlightServerError) as error:
            asked(hardened, ticket, each)
        assert json.loads(error.value.extra_info)[0] in ("TypeError", "ValueError", "IndexError")
    # Flight's own writer would not send these.
    with pytest.raises(pyarrow.ArrowInvalid):
        Ticket.read(json.dumps(ticket).encode(), _broken(rows()))
    with pytest.raises(flight.FlightServerError, match=r"got both"):
        asked(hardened, plain(), rows())
    with pytest.raises(flight.FlightServerError, match=r"arrays: expected at most \d+ bytes"):
        asked(hardened, ticket, rows(ids=[np.zeros(400_000, np.int64)]))
    with pytest.raises(flight.FlightServerError, match=r"ticket: expected at most 1048576 bytes"):
        asked(hardened, plain(seeds=[5] * 600_000))
    assert asked(hardened, ticket, rows()).num_rows == 3


def _broken(rows: Any) -> Any:
    """A list that says that it has more values than there are, which only its sender knows."""
    offsets = np.array([0, 3], np.int32)
    values = pyarrow.array([1, 2, 3], pyarrow.int64())
    buffers = [None, pyarrow.py_buffer(offsets)]
    ids = pyarrow.ListArray.from_buffers(
        rows.schema.field("ids").type, 1, buffers, children=[values]
    )
    made = pyarrow.RecordBatch.from_arrays([*rows.columns[:2], ids, rows.column(3)], schema=ARRAYS)
    offsets[:] = 1, -1_000_000
    return made


def test_random_tickets(hardened: str) -> None:
    """Bytes of a good ticket that were changed are answered, or refused."""
    text, rng = bytearray(json.dumps(plain()).encode()), random.Random(5)
    for _ in range(150):
        broken = bytearray(text)
        for _ in range(rng.randrange(1, 4)):
            broken[rng.randrange(len(broken))] = rng.randrange(32, 127)
        try:
            asked(hardened, bytes(broken))
        except flight.FlightServerError as error:
            assert "mistake of the server's" not in str(error), broken


def test_forms_are_bounded() -> None:
    """Requests cannot fill the memory with forms of the graph, and mistakes do not use them up."""
    walk = {"family": "walk", "length": 2}
    forms: list[dict[str, Any]] = [
        {**walk, "direction": direction, "prob": prob, **types, "p": p}
        for direction in ("in", "out")
        for prob in (None, "w", "t", "m", "k")
        for types in (
            {},
            {"edge_types": "k", "metapath": [0]},
            {"edge_types": "t", "metapath": [0]},
        )
        for p in (1, 2)
    ]
    with Server(untyped()) as server:
        for i in range(40):
            with pytest.raises(
                flight.FlightServerError, match=r"expected the name of an edge array"
            ):
                asked(server.location, plain(plan={**walk, "prob": f"name {i}"}))
        refused = r"weights, times, .* of one of 32 requests"
        for i, plan in enumerate(forms):
            if i < 32:
                asked(server.location, plain(plan=plan))
                continue
            with pytest.raises(flight.FlightServerError, match=refused):
                asked(server.location, plain(plan=plan))
        assert asked(server.location, plain(plan=forms[0])).num_rows == 1


def test_clients_at_the_same_time(client: Client, server: Server) -> None:
    def ask(place: int) -> None:
        sampler = pgs.PGSampler([3, 2], seed=place % 3)
        seeds = [(place * 7 + i) % 200 for i in range(20 + 300 * (place % 2))]
        given = client.sample(sampler, seeds, batch=place)
        assert content(given) == content(sampler.sample(untyped(), seeds, batch=place))

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(ask, range(200)))


def test_more_than_at_once() -> None:
    with Server(untyped(), max_requests=1) as server:
        turn = server._answers.acquire_slot()
        refused = pytest.raises(TimeoutError, match=r"the server is busy")
        with Client(server.location, timeout=1) as client, refused:
            client.sample(UNIFORM, [5])
        with pytest.raises(flight.FlightUnavailableError, match=r"at most 1 requests at once"):
            asked(server.location, plain())
        threading.Timer(0.1, turn.end).start()
        with Client(server.location) as client:
            # It asks again, until it is its turn.
            for _ in range(3):
                assert len(client.sample(UNIFORM, [5]).output_nodes) == 1


@pytest.mark.usefixtures("no_collections")
def test_refused_requests_are_not_counted() -> None:
    with Server(untyped(), max_requests=1) as server, Client(server.location, timeout=5) as client:
        for _ in range(3):
            with pytest.raises(IndexError, match=r"seeds\[0\]"):
                client.sample(UNIFORM, [203])
            with pytest.raises(ValueError, match="plan: expected one that makes batches"):
                client.sample({"family": "rows"}, [5])
        assert len(client.sample(UNIFORM, [5]).output_nodes) == 1


def test_failed_requests_are_not_counted_while_a_log_has_their_errors(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(ticket: Ticket) -> None:
        raise AssertionError

    with Server(untyped(), max_requests=1) as server, Client(server.location, timeout=5) as client:
        with monkeypatch.context() as patched:
            patched.setattr(server._answers, "result", fail)
            for _ in range(3):
                with pytest.raises(pgs.Error, match=r"a mistake of the server's \(see its log\)"):
                    client.sample(UNIFORM, [5])
        assert [record.message for record in caplog.records] == ["a request has failed"] * 3
        assert len(client.sample(UNIFORM, [5]).output_nodes) == 1


def test_a_client_that_leaves() -> None:
    """Its turn ends, whether it has read the answer or not."""
    wide = pgs.PGSampler([-1] * 6, seed=0)
    about = {"plan": json.loads(wide.plan.document), "seeds": list(range(200))}
    with Server(untyped(), max_requests=1) as server:
        for _ in range(3):
            with flight.connect(server.location) as raw:
                reader = raw.do_get(flight.Ticket(json.dumps(plain(**about)).encode()))
                reader.read_chunk()
                reader.cancel()
            with Client(server.location, timeout=10) as client:
                assert len(client.sample(UNIFORM, [5]).output_nodes) == 1


def test_the_end_with_a_client_that_does_not_read() -> None:
    n = 1 << 20
    graph = pgs.Graph.from_csc(np.arange(n + 1), np.arange(n))
    ticket = plain(plan={"family": "neighbor", "fanouts": [1]})
    del ticket["seeds"]
    rows = pyarrow.RecordBatch.from_pydict(
        {"name": ["seeds"], "type": [None], "ids": [np.arange(n)], "numbers": [None]}, schema=ARRAYS
    )
    server = Server(graph, max_seeds=n)
    with flight.connect(server.location) as raw:
        text = flight.FlightDescriptor.for_command(json.dumps(ticket).encode())
        writer, reader = raw.do_exchange(text)
        writer.begin(rows.schema)
        writer.write_batch(rows)
        writer.done_writing()
        assert reader.schema is not None
        start = time.monotonic()
        server.close(grace=0.2)
        assert time.monotonic() - start < 5
        reader.cancel()


def test_wrong_arguments() -> None:
    for about, error in (
        ({"port": 70000}, r"port: expected an integer from 0 to 65535"),
        ({"max_seeds": 0}, r"max_seeds: expected an integer >= 1"),
        ({"max_bytes": 1 << 31}, r"max_bytes: expected an integer from 1 to"),
        ({"programs": 1}, r"programs: expected True or False"),
        ({"host": 5}, r"host: expected an address"),
    ):
        with pytest.raises((TypeError, ValueError), match=error):
            Server(untyped(), **about)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"graph: expected a Graph"):
        Server([])  # type: ignore[arg-type]
    with (
        Server(untyped()) as server,
        pytest.raises(OSError, match=r"expected an address to listen"),
    ):
        Server(untyped(), port=server.port)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_command(tmp_path: Path, number: int) -> None:
    file, secret = tmp_path / "graph.pgs", tmp_path / "token"
    kind: Any = typed if number == signal.SIGINT else untyped
    kind().save(file)
    secret.write_text(TOKEN + "\n")
    command = [sys.executable, "-m", "pygsampler", "serve", str(file), "--port", "0", "--json"]
    environment = {**os.environ, "PYGSAMPLER_TOKEN": TOKEN}
    if number == signal.SIGTERM:
        del environment["PYGSAMPLER_TOKEN"]
        command += ["--token-file", str(secret)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert process.stdout is not None
        shown = "".join(iter(process.stdout.readline, "}\n")) + "}"
        location = json.loads(shown)["location"]
        with Client(location) as client, pytest.raises(PermissionError):
            client.about()
        seeds: Any = {"paper": [5, 3]} if kind is typed else [5, 3]
        with Client(location, token=TOKEN) as client:
            given = content(client.sample(UNIFORM, seeds, batch=0))
            assert given == content(UNIFORM.sample(kind(), seeds, batch=0))
        process.send_signal(number)
        _, complaints = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == 128 + number
    assert complaints.strip() in ("", "Aborted!")
