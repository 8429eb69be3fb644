"""A service of samples over Arrow Flight, and its client.

For trainers that are not on the machine that has the graph, or not in Python. It needs pyarrow.
"""

try:
    import pyarrow.flight  # noqa: F401
except ImportError as error:
    raise ImportError("pygsampler.flight needs pyarrow: pip install pyarrow") from error

from pygsampler._engine.public_home import set_public_module
from pygsampler.flight.client import Client
from pygsampler.flight.server import Server

__all__ = ["Client", "Server"]

set_public_module(globals())


def __dir__() -> list[str]:
    return sorted(__all__)
