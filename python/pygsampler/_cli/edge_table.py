"""Sampled edges as a table in a file: Arrow IPC or Parquet, through pyarrow.

The table has a row for each sampled edge: ``batch`` (int64, from 0), ``hop`` (int16, 0 at the
seeds), ``src`` and ``dst`` (int64, original ids, or names) and ``edge_id`` (int64, original id).
Rows are ordered by batch and hop, and then in the order of the block. For a heterogeneous graph
there are ``src_type``, ``relation`` and ``dst_type`` too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pygsampler._cli.atomic_file import atomic_write

if TYPE_CHECKING:
    from pygsampler._cli.labels import Labels

ARROW = (".arrow", ".feather", ".ipc")
PARQUET = (".parquet", ".pq")
# Rows that are written at once: small batches are gathered, since each piece has a header.
_ROWS = 1 << 18


class _EdgeWriter(Protocol):
    def write_table(self, table: Any) -> Any: ...

    def close(self) -> Any: ...


class EdgeTable:
    """Takes batches and writes their edges; holds about a quarter of a million rows at a time.

    ``labels`` are what nodes are called.
    """

    def __init__(self, writer: _EdgeWriter, schema: Any, labels: Labels) -> None:
        self._writer = writer
        self._schema = schema
        self._labels = labels
        self._pending: list[Any] = []
        self._rows = 0

    def add(self, number: int, batch: Any) -> None:
        """Appends the edges of the batch of that number, a MiniBatch or a MiniBatch."""
        import pyarrow as pa

        typed = isinstance(batch.input_nodes, Mapping)
        found = batch.input_nodes if typed else {None: batch.input_nodes}
        nodes = {kind: self._labels.arrow(kind, pa.array(ids)) for kind, ids in found.items()}
        for hop, blocks in enumerate(reversed(batch.blocks)):
            by_type: dict[tuple[str, ...], Any] = blocks if typed else {(): blocks}
            for edge_type, block in by_type.items():
                count = block.num_edges
                if not count:
                    continue
                src, dst = block.coo()
                of_src, of_dst = (edge_type[0], edge_type[2]) if typed else (None, None)
                columns = [
                    pa.repeat(pa.scalar(number, pa.int64()), count),
                    pa.repeat(pa.scalar(hop, pa.int16()), count),
                    nodes[of_src].take(pa.array(src)),
                    nodes[of_dst].take(pa.array(dst)),
                    pa.array(block.edge_ids).cast(pa.int64()),
                    *(pa.repeat(name, count) for name in edge_type),
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
def edge_table(
    path: Path, metadata: dict[str, Any], labels: Labels, with_types: bool = False
) -> Iterator[EdgeTable]:
    """Yields a table in the file ``path``, which is replaced once the block has ended well.

    ``metadata`` is stored in the schema's metadata as JSON, under "pygsampler".
    """
    import pyarrow as pa

    of_nodes = pa.string() if labels.text else pa.int64()
    types = [(name, pa.string()) for name in ("src_type", "relation", "dst_type") if with_types]
    schema = pa.schema(
        [
            ("batch", pa.int64()),
            ("hop", pa.int16()),
            ("src", of_nodes),
            ("dst", of_nodes),
            ("edge_id", pa.int64()),
            *types,
        ],
        metadata={"pygsampler": json.dumps(metadata)},
    )
    with atomic_write(path) as temporary:
        writer: _EdgeWriter
        if path.suffix in PARQUET:
            import pyarrow.parquet as pq

            # Ids hardly repeat: dictionaries of them took three times as long, for twice the size.
            plain = ["edge_id"] if labels.text else ["src", "dst", "edge_id"]
            delta = dict.fromkeys(plain, "DELTA_BINARY_PACKED")
            others = [name for name in schema.names if name not in plain]
            writer = pq.ParquetWriter(
                temporary, schema, use_dictionary=others, column_encoding=delta
            )
        else:
            writer = pa.ipc.new_file(str(temporary), schema)
        try:
            table = EdgeTable(writer, schema, labels)
            yield table
            table.flush()
        finally:
            writer.close()
