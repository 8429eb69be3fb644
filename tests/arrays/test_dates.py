"""Dates and spans of every library are the same nanoseconds, wherever times are taken."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from functools import partial
from typing import Any

import numpy as np
import pytest
from partners import partner

import pygsampler as pgs
from pygsampler._arrays.datetimes import as_nanoseconds, as_numpy_dates, datetime_kind
from pygsampler.samplers import Temporal

DAY = 86_400 * 10**9
# 2024-03-01T12:00 in UTC, and that a day later.
NOON = 1_709_294_400 * 10**9
NOONS = [NOON, NOON + DAY]
BERLIN = timezone(timedelta(hours=1))


def nanoseconds(value: Any) -> Any:
    found = as_nanoseconds(as_numpy_dates(value, "x"), "x")
    return found.tolist() if hasattr(found, "tolist") else found


def of_pandas(make: Callable[[Any], Any]) -> Callable[[], Any]:
    return lambda: make(partner("pandas"))


def of_arrow(make: Callable[[Any], Any]) -> Callable[[], Any]:
    return lambda: make(partner("pyarrow"))


PAIR = [datetime(2024, 3, 1, 12), datetime(2024, 3, 2, 12)]
NAMES = ["2024-03-01T12:00", "2024-03-02 12:00:00"]


@pytest.mark.parametrize(
    "make",
    [
        lambda: datetime(2024, 3, 1, 12),
        lambda: datetime(2024, 3, 1, 13, tzinfo=BERLIN),
        lambda: "2024-03-01T12",
        lambda: " 2024-03-01 12:00:00.000000000 ",
        lambda: "2024-03-01T12:00Z",
        lambda: "2024-03-01T13:30:00+01:30",
        lambda: "2024-03-01T07:00:00-0500",
        lambda: np.str_("2024-03-01T12:00"),
        lambda: np.array("2024-03-01T12:00"),
        lambda: np.datetime64("2024-03-01T12:00"),
        lambda: np.array(datetime(2024, 3, 1, 12)),
        of_pandas(lambda pd: pd.Timestamp("2024-03-01T12:00")),
        of_pandas(lambda pd: pd.Timestamp("2024-03-01T13:00", tz="Europe/Berlin")),
        of_arrow(lambda pa: pa.scalar(PAIR[0], pa.timestamp("ms"))),
        of_arrow(lambda pa: pa.scalar(PAIR[0], pa.timestamp("us", "UTC"))),
    ],
)
def test_one_date_of_every_library_is_the_same_moment(make: Callable[[], Any]) -> None:
    assert nanoseconds(make()) == NOON


@pytest.mark.parametrize(
    "make",
    [
        lambda: PAIR,
        lambda: tuple(PAIR),
        lambda: NAMES,
        lambda: [
            moment.astimezone(BERLIN) for moment in (at.replace(tzinfo=timezone.utc) for at in PAIR)
        ],
        lambda: np.array(PAIR, object),
        lambda: np.array(NAMES),
        lambda: np.array(PAIR, "datetime64[us]"),
        lambda: [np.datetime64(PAIR[0], "ns"), np.datetime64(PAIR[1], "s")],
        of_pandas(lambda pd: pd.Series(PAIR, index=[7, 8])),
        of_pandas(lambda pd: pd.Series(PAIR).dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")),
        of_pandas(lambda pd: pd.DatetimeIndex(PAIR)),
        of_pandas(lambda pd: pd.DatetimeIndex(PAIR, tz="UTC").tz_convert("US/Eastern")),
        of_pandas(lambda pd: pd.Series(NAMES, index=[7, 8])),
        of_pandas(lambda pd: pd.Series(PAIR, dtype=object)),
        of_pandas(lambda pd: [pd.Timestamp(at) for at in PAIR]),
        of_arrow(lambda pa: pa.array(PAIR, pa.timestamp("s"))),
        of_arrow(lambda pa: pa.array(PAIR, pa.timestamp("ns", "Europe/Berlin"))),
        of_arrow(lambda pa: pa.chunked_array([pa.array([at]) for at in PAIR])),
        of_arrow(lambda pa: pa.array(NAMES)),
        of_arrow(lambda pa: pa.array(NAMES).dictionary_encode()),
    ],
)
def test_dates_of_every_library_are_the_same_moments(make: Callable[[], Any]) -> None:
    value = make()
    assert nanoseconds(value) == NOONS
    graph = pgs.Graph.from_coo([0, 1], [1, 0], edge_data={"t": value})
    assert graph.edata["t"].tolist() == NOONS
    assert graph.edata["t"].dtype == "int64"


@pytest.mark.parametrize(
    "make",
    [
        lambda: [date(2024, 3, 1), date(2024, 3, 2)],
        lambda: ["2024-03", "2024-03-02"],
        of_pandas(lambda pd: pd.Series([date(2024, 3, 1), date(2024, 3, 2)])),
        of_arrow(lambda pa: pa.array([date(2024, 3, 1), date(2024, 3, 2)])),
        of_arrow(lambda pa: pa.array([date(2024, 3, 1), date(2024, 3, 2)], pa.date64())),
    ],
)
def test_a_date_without_time_is_its_midnight(make: Callable[[], Any]) -> None:
    assert nanoseconds(make()) == [NOON - DAY // 2, NOON + DAY // 2]


@pytest.mark.parametrize(
    "make",
    [
        lambda: timedelta(days=1),
        lambda: np.timedelta64(24, "h"),
        of_pandas(lambda pd: pd.Timedelta("1D")),
        of_arrow(lambda pa: pa.scalar(timedelta(days=1))),
        *(partial(str, text) for text in ("1d", " 1 day ", "1D", "24h", "24 hours", "1440min")),
        *(partial(str, text) for text in ("1440m", "86400 sec", "86400000ms", "1.0d", "24.00h")),
    ],
)
def test_spans_of_every_library_are_windows(make: Callable[[], Any]) -> None:
    span = make()
    sampler = pgs.PGSampler([4], temporal=Temporal("t", window=span), seed=1)
    assert sampler.plan["window"] == DAY
    times = np.datetime64("2024-03-01") + np.arange(4)
    dated = pgs.Graph.from_coo([1, 2, 3, 4], [0] * 4, edge_data={"t": times})
    batch = sampler.sample(dated, [0], seed_time=date(2024, 3, 3))
    assert sorted(batch.blocks[0].edge_ids.tolist()) == [1, 2]
    numbers = pgs.Graph.from_coo([1], [0], edge_data={"t": [1]})
    text = r"^window: expected a number, as the times 't' are, got .*; give it in their unit, or"
    with pytest.raises(TypeError, match=text):
        sampler.sample(numbers, [0], seed_time=1)
    contexts = pgs.samplers.context(time=Temporal("t", window=span))
    found = contexts.sample(dated, [0], seed_time="2024-03-03").numpy()
    assert sorted(found.nodes[0][: found.lengths[0]].tolist()) == [0, 2, 3]
    with pytest.raises(TypeError, match=text):
        contexts.sample(numbers, [0], seed_time=1)


def test_spans_as_text_are_exact() -> None:
    for text, want in (
        ("1.5d", DAY * 3 // 2),
        ("0.000000001s", 1),
        ("0.1us", 100),
        ("2w", 14 * DAY),
    ):
        assert pgs.PGSampler([1], temporal=Temporal("t", window=text)).plan["window"] == want
    assert Temporal("t", window="3d") == Temporal("t", window=timedelta(days=3))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: ["2024-03-01", "soon"], r"^x\[1\]: expected a number, or a date as .* got 'soon'"),
        (lambda: ["2024-03-01", "2024-13-01"], r"^x\[1\]: expected a date, got '2024-13-01'"),
        (lambda: "20240301", "^x: expected a number, or a date as 2024-03-01"),
        (lambda: [PAIR[0], PAIR[1].replace(tzinfo=BERLIN)], r"^x\[1\]: .* all have a time zone or"),
        (lambda: [PAIR[0], None], r"^x\[1\]: expected a date, got None"),
        (lambda: [date(3000, 1, 1)], r"^x\[0\]: expected dates from 1678 to 2261.* got '3000"),
        (lambda: ["3000-01-01"], r"^x\[0\]: expected dates from 1678 to 2261.* got '3000"),
        (lambda: [PAIR[0], timedelta(1)], "^x: expected dates or spans, got some of both"),
        (of_pandas(lambda pd: pd.Series([PAIR[0], pd.NaT])), r"^x\[1\]: expected a time, got NaT"),
        (
            of_pandas(lambda pd: pd.Series([PAIR[0], pd.NaT]).dt.tz_localize("Europe/Berlin")),
            r"^x\[1\]: expected a time, got NaT",
        ),
        (of_pandas(lambda pd: [PAIR[0], pd.NaT]), r"^x\[1\]: expected a time, got NaT"),
        (of_pandas(lambda pd: pd.NaT), "^x: expected a time, got NaT"),
        (of_arrow(lambda pa: pa.array([PAIR[0], None])), r"^x\[1\]: expected a time, got NaT"),
    ],
)
def test_an_error_names_the_place_of_a_wrong_date(make: Callable[[], Any], text: str) -> None:
    with pytest.raises((TypeError, ValueError), match=text):
        nanoseconds(make())


def test_numbers_stay_as_they_are() -> None:
    values = np.arange(3)
    assert as_numpy_dates(values, "x") is values
    for value in (3, 2.5, None, [1, 2], np.int64(3), []):
        assert as_numpy_dates(value, "x") is value
        assert datetime_kind(value) == ""


def test_a_scalar_of_an_array_is_one_bound_for_all() -> None:
    torch = partner("torch")
    for times in (np.arange(6), np.arange(6.0), torch.arange(6), torch.arange(6.0)):
        graph = pgs.Graph.from_coo([1, 2, 3, 4, 5, 6], [0] * 6, edge_data={"t": times})
        sampler = pgs.PGSampler([-1], temporal="t")
        for bound in (times[2], times[:3].max(), 2):
            batch = sampler.sample(graph, [0], seed_time=bound)
            assert sorted(batch.blocks[0].edge_ids.tolist()) == [0, 1, 2]


def test_a_float_scalar_beside_integers_is_refused() -> None:
    graph = pgs.Graph.from_coo([1], [0], edge_data={"t": [1]})
    with pytest.raises(TypeError, match=r"expected integers, as the graph's times, got 1\.5"):
        pgs.PGSampler([1], temporal="t").sample(graph, [0], seed_time=np.float64(1.5))


def test_types_take_dates_as_one_bound_and_by_type() -> None:
    times = np.datetime64("2024-03-01") + np.arange(4)
    kind = ("user", "buys", "item")
    graph = pgs.Graph.from_coo(
        {kind: ([0, 1, 2, 3], [0] * 4)},
        num_nodes={"user": 4, "item": 1},
        edge_data={kind: {"t": times}},
    )
    sampler = pgs.PGSampler([4], temporal="t", seed=1)
    for bound in (date(2024, 3, 2), "2024-03-02", {"item": [date(2024, 3, 2)]}, times[1]):
        batch = sampler.sample(graph, {"item": [0]}, seed_time=bound)
        assert sorted(batch.blocks[0][kind].edge_ids.tolist()) == [0, 1]


def test_loaders_take_dates_of_every_library() -> None:
    partner("torch")
    from pygsampler.torch import DataLoader, LinkLoader

    times = np.datetime64("2024-03-01") + np.arange(4)
    graph = pgs.Graph.from_coo([1, 2, 3, 4], [0] * 4, edge_data={"t": times})
    sampler = pgs.PGSampler([4], temporal="t", seed=1)
    bounds: list[Any] = [date(2024, 3, 2), "2024-03-02", times[1], times[:2].max(), [times[1]]]
    for bound in [*bounds, ["2024-03-02"], [datetime(2024, 3, 2)]]:
        (batch,) = DataLoader(graph, [0], sampler, batch_size=1, seed_time=bound)
        assert sorted(batch.blocks[0].edge_ids.tolist()) == [0, 1]
    loader = LinkLoader(graph, [0, 1], sampler, batch_size=2, seed_time=date(2024, 3, 2))
    assert len([*loader]) == 1
    numbers = pgs.Graph.from_coo([1], [0], edge_data={"t": [1]})
    with pytest.raises(TypeError, match="seed_time: expected numbers, as the times 't' are, got"):
        DataLoader(numbers, [0], sampler, batch_size=1, seed_time="2024-03-02")


def test_loaders_take_a_series_whose_index_lacks_zero() -> None:
    partner("torch")
    pandas = partner("pandas")
    from pygsampler.torch import DataLoader

    graph = pgs.Graph.from_coo([1, 2, 3], [0] * 3, edge_data={"t": [1, 2, 3]})
    sampler = pgs.PGSampler([4], temporal="t", seed=1)
    times = pandas.Series([2], index=[17])
    (batch,) = DataLoader(graph, [0], sampler, batch_size=1, seed_time=times)
    assert sorted(batch.blocks[0].edge_ids.tolist()) == [0, 1]
    assert len(sampler.sample(graph, [0], seed_time=times).blocks[0].edge_ids) == 2


def test_units_that_are_mixed_are_one_time() -> None:
    # 1970-01-01T00:00:01 in three units, one number each.
    graph = pgs.Graph.from_coo(
        [1, 2], [0, 0], edge_data={"t": np.array([1_000_000, 2_000_000], "datetime64[us]")}
    )
    sampler = pgs.PGSampler([2], temporal="t", seed=1)
    for bound in (np.datetime64(1_000_000_000, "ns"), np.datetime64(1, "s"), "1970-01-01T00:00:01"):
        batch = sampler.sample(graph, [0], seed_time=bound)
        assert batch.blocks[0].edge_ids.tolist() == [0]
