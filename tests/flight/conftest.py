from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from flight_graphs import typed, untyped


@pytest.fixture(scope="session")
def server() -> Iterator[Any]:
    """Of a graph without types, on loopback, for all."""
    from pygsampler.flight import Server

    with Server(untyped(), programs=True) as served:
        yield served


@pytest.fixture(scope="session")
def client(server: Any) -> Iterator[Any]:
    from pygsampler.flight import Client

    with Client(server.location) as one:
        yield one


@pytest.fixture(scope="session")
def typed_client() -> Iterator[Any]:
    from pygsampler.flight import Client, Server

    with Server(typed()) as served, Client(served.location) as one:
        yield one
