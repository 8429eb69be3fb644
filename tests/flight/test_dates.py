"""Dates and spans that go to a server: it alone knows what the times of its graph are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from partners import partner

import pygsampler as pgs

partner("pyarrow")

from pyarrow import flight  # noqa: E402

from pygsampler.flight import Client, Server  # noqa: E402
from pygsampler.samplers import Temporal  # noqa: E402
from tests.support.assertions import content  # noqa: E402

NODES, EDGES = 400, 6000
FIRST, DAY = np.datetime64("2024-03-01"), 86_400 * 10**9
# More seeds go as arrays beside the ticket.
MANY, AT = np.arange(300), FIRST + np.arange(300) % 9
AGES = np.random.default_rng(4).integers(0, 9, EDGES)
ENDS = np.random.default_rng(5).integers(0, NODES, (2, EDGES))
CITES = ("paper", "cites", "paper")


def graph_of(times: Any) -> pgs.Graph:
    return pgs.Graph.from_coo(*ENDS, num_nodes=NODES, edge_data={"t": times})


def typed_of(times: Any) -> pgs.Graph:
    return pgs.Graph.from_coo(
        {CITES: tuple(ENDS)}, num_nodes={"paper": NODES}, edge_data={CITES: {"t": times}}
    )


DATED, NUMBERED = graph_of(FIRST + AGES), graph_of(AGES)


@pytest.fixture(scope="module")
def dated() -> Iterator[Client]:
    with Server(DATED) as server, Client(server.location) as client:
        yield client


@pytest.fixture(scope="module")
def numbered() -> Iterator[Client]:
    with Server(NUMBERED) as server, Client(server.location) as client:
        yield client


@pytest.mark.parametrize("window", [None, np.timedelta64(2, "D"), 2 * DAY])
@pytest.mark.parametrize("count", [3, 300])
def test_dates_of_a_graph_with_dates(dated: Client, count: int, window: Any) -> None:
    sampler = pgs.PGSampler([4, 3], temporal=Temporal("t", window=window), seed=2)
    at = AT[:count].astype("datetime64[h]")
    want = content(sampler.sample(DATED, MANY[:count], seed_time=at, epoch=1, batch=5))
    numbers = at.astype("datetime64[ns]").astype(np.int64)
    for given in (at, numbers, at.tolist(), [str(moment) for moment in at]):
        made = dated.sample(sampler, MANY[:count], seed_time=given, epoch=1, batch=5)
        assert content(made) == want
    one = sampler.sample(DATED, MANY[:3], seed_time=at[2], epoch=1, batch=5)
    assert content(dated.sample(sampler, MANY[:3], seed_time=at[2], epoch=1, batch=5)) == content(
        one
    )


@pytest.mark.parametrize("given", [AT[:3], AT, AT[0]], ids=["few", "many", "one"])
def test_dates_beside_numbers(numbered: Client, given: Any) -> None:
    sampler = pgs.PGSampler([3], temporal="t", seed=1)
    text = r"^seed_time: expected numbers, as the times 't' are, got datetime64\[ns\]"
    with pytest.raises(TypeError, match=text):
        numbered.sample(sampler, MANY[: np.size(given)], seed_time=given)


def test_spans(dated: Client, numbered: Client) -> None:
    days = pgs.PGSampler([3], temporal="t", seed=1)
    with pytest.raises(TypeError, match=r"^seed_time: expected dates .* got timedelta64\[ns\]"):
        dated.sample(days, [1], seed_time=np.timedelta64(1, "D"))
    within = pgs.PGSampler([3], temporal=Temporal("t", window=np.timedelta64(1, "D")), seed=1)
    with pytest.raises(TypeError, match=r"^window: expected a number, as the times 't' are, got"):
        numbered.sample(within, [1], seed_time=3)
    # A plan is of numbers.
    assert len(numbered.sample(within.plan, [1], seed_time=3).output_nodes) == 1


def test_dates_by_type() -> None:
    sampler = pgs.PGSampler([4, 3], temporal=Temporal("t", window=np.timedelta64(2, "D")), seed=2)
    graph = typed_of(FIRST + AGES)
    for count in (3, 300):
        seeds, at = {"paper": MANY[:count]}, {"paper": AT[:count]}
        want = content(sampler.sample(graph, seeds, seed_time=at, epoch=0, batch=0))
        with Server(graph) as server, Client(server.location) as client:
            assert content(client.sample(sampler, seeds, seed_time=at, epoch=0, batch=0)) == want
    plain = pgs.PGSampler([4, 3], temporal="t", seed=2)
    with Server(typed_of(AGES)) as server, Client(server.location) as client:
        with pytest.raises(TypeError, match=r"^seed_time\['paper'\]: expected numbers, as the"):
            client.sample(plain, seeds, seed_time=at)
        with pytest.raises(TypeError, match=r"^window: expected a number, as the times 't' are"):
            client.sample(sampler, {"paper": [1]}, seed_time={"paper": [3]})


@pytest.mark.parametrize(
    ("dates", "text"),
    [
        (3, "dates: expected an object of dtypes by field, got"),
        ({"seeds": "datetime64[ns]"}, "dates: expected seed_time and window, got str 'seeds'"),
        ({"seed_time": "datetime64[D]"}, r"dates\['seed_time'\]: expected 'datetime64\[ns\]' or"),
        ({"seed_time": ["datetime64[ns]"]}, r"dates\['seed_time'\]: expected 'datetime64"),
        ({"seed_time": {"a": "datetime64[ns]"}}, "expected dtypes as seed_time has lists"),
        ({"window": "datetime64[ns]"}, r"dates\['window'\]: expected 'timedelta64\[ns\]', got"),
    ],
)
def test_tickets_of_wrong_dates(dated: Client, dates: Any, text: str) -> None:
    ticket = {
        "version": 1,
        "plan": {"family": "temporal", "fanouts": [3], "time": "t"},
        "seeds": [5],
        "seed_time": [int(AT[0].astype("datetime64[ns]").astype(np.int64))],
    }
    with flight.connect(dated.location) as raw:

        def ask(**fields: Any) -> Any:
            written = json.dumps({**ticket, **fields}).encode()
            return raw.do_get(flight.Ticket(written)).read_all()

        assert ask(dates={"seed_time": "datetime64[ns]"}).num_rows == 2
        with pytest.raises(flight.FlightServerError, match=text):
            ask(dates=dates)


def test_a_window_of_a_plan_without_time(dated: Client) -> None:
    ticket = {
        "version": 1,
        "plan": {"family": "neighbor", "fanouts": [3]},
        "seeds": [5],
        "dates": {"window": "timedelta64[ns]"},
    }
    with flight.connect(dated.location) as raw:
        text = "dates: expected no window for a plan without time"
        with pytest.raises(flight.FlightServerError, match=text):
            raw.do_get(flight.Ticket(json.dumps(ticket).encode())).read_all()
