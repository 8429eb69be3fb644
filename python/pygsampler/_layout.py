"""The words that describe a batch: HEADER_WORDS of 64 bits, then WORDS for each block.

Where a batch is on the CPU they stand at the start of its memory. Of one on a device they are on
the host, and the same room at the start of its memory is not used. Offsets are in bytes from that
start.
"""

from __future__ import annotations

HEADER_WORDS = 16
MAGIC = 0x50475342
# In the header.
ID_BITS, EDGE_ID_BITS, HOPS, NUM_OUTPUT, NODES, NUM_NODES = 1, 2, 3, 4, 5, 6
OUTPUT_NODES, OUTPUT_INDEX, SIZE, TREES = 7, 8, 9, 10
# Of a block: how many sources, destinations and edges, then where its three arrays are
# and which of the vertices is the first destination.
WORDS = 8
NUM_SRC, NUM_DST, NUM_EDGES, INDPTR, INDICES, EDGE_IDS, FIRST_DST = range(7)
FIRST_OFFSET, OFFSETS = INDPTR, 3


def num_words(hops: int) -> int:
    """How many words describe a batch."""
    return HEADER_WORDS + WORDS * hops
