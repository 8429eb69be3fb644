"""Sampled edges as a table in a file: Arrow IPC or Parquet, through pyarrow.

The table has a row for each sampled edge: ``batch`` (int64, from 0), ``hop`` (int16, 0 at the
seeds), ``src`` and ``dst`` (int64, original ids) and ``edge_id`` (int64, original id). Rows are
ordered by batch and hop, and stand in the order of the block.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pygsampler.cli.files import replacing

if TYPE_CHECKING:
    from pygsampler.minibatch import MiniBatch

ARROW = (".arrow", ".feather", ".ipc")
PARQUET = (".parquet", ".pq")
# Rows that are written at once: small batches are gathered, since each piece has a header.
_ROWS = 1 << 18


class _Writer(Protocol):
    def write_table(self, table: Any) -> Any: ...

    def close(self) -> Any: ...


class EdgeTable:
    """Takes batches and writes their edges; holds about a quarter of a million rows at a time.

    ``node_ids`` is the graph's map to original ids, or None where they are the graph's own.
    """

    def __init__(self, writer: _Writer, schema: Any, node_ids: Any) -> None:
        self._writer = writer
        self._schema = schema
        self._node_ids = node_ids
        self._pending: list[Any] = []
        self._rows = 0

    def add(self, number: int, batch: MiniBatch) -> None:
        """Appends the edges of the batch of that number."""
        import pyarrow as pa

        nodes = pa.array(batch.input_nodes).cast(pa.int64())
        if self._node_ids is not None:
            nodes = self._node_ids.take(nodes)
        for hop, block in enumerate(reversed(batch.blocks)):
            count = block.num_edges
            if not count:
                continue
            src, dst = block.coo()
            columns = [
                pa.repeat(pa.scalar(number, pa.int64()), count),
                pa.repeat(pa.scalar(hop, pa.int16()), count),
                nodes.take(pa.array(src)),
                nodes.take(pa.array(dst)),
                pa.array(block.edge_ids).cast(pa.int64()),
            ]
            self._pending.append(pa.record_batch(columns, schema=self._schema))
            self._rows += count
        if self._rows >= _ROWS:
            self.flush()

    def flush(self) -> None:
        """Writes what is held."""
        import pyarrow as pa

        if self._pending:
            table = pa.Table.from_batches(self._pending, self._schema).combine_chunks()
            self._pending, self._rows = [], 0
            self._writer.write_table(table)


@contextmanager
def edge_table(path: Path, about: dict[str, Any], node_ids: Any) -> Iterator[EdgeTable]:
    """A table in the file ``path``, which is there once the block has ended well.

    ``about`` is kept in the schema's metadata as JSON, under "pygsampler".
    """
    import pyarrow as pa

    schema = pa.schema(
        [
            ("batch", pa.int64()),
            ("hop", pa.int16()),
            ("src", pa.int64()),
            ("dst", pa.int64()),
            ("edge_id", pa.int64()),
        ],
        metadata={"pygsampler": json.dumps(about)},
    )
    ids = None if node_ids is None else pa.array(node_ids)
    with replacing(path) as temporary:
        writer: _Writer
        if path.suffix in PARQUET:
            import pyarrow.parquet as pq

            # Ids hardly repeat: dictionaries of them took three times as long, for twice the size.
            delta = dict.fromkeys(("src", "dst", "edge_id"), "DELTA_BINARY_PACKED")
            writer = pq.ParquetWriter(
                temporary, schema, use_dictionary=["batch", "hop"], column_encoding=delta
            )
        else:
            writer = pa.ipc.new_file(str(temporary), schema)
        try:
            table = EdgeTable(writer, schema, ids)
            yield table
            table.flush()
        finally:
            writer.close()
