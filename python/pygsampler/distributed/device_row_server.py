"""``DeviceRowServer``, ``HeteroDeviceRowServer``: answer questions for rows of a part by a GPU."""

from __future__ import annotations

from array import array
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from pygsampler._graph.graph import HeteroGraph
from pygsampler._graph.schema import number_of
from pygsampler.distributed.device_rows import MOST_HOPS, DeviceRows
from pygsampler.distributed.hetero_partition import HeteroPartition
from pygsampler.distributed.hetero_row_server import HeteroRowServer
from pygsampler.distributed.row_server import PLANS, RowServer
from pygsampler.samplers.neighbor import PGSampler

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pygsampler._sampling.plan import Plan
    from pygsampler.distributed.hetero_partition import HeteroShard
    from pygsampler.distributed.messages import RowRequest
    from pygsampler.distributed.partition import Partition, Shard


class DeviceRowServer(RowServer):
    """Draws rows of neighbors, uniformly and by weight, on a GPU, which also has the shard.

    ``RowServer`` answers all other requests.
    """

    def __init__(
        self,
        partition: Partition,
        shard: Shard,
        out: Partition | None,
        out_shard: Shard | None,
        device: int,
    ) -> None:
        super().__init__(partition, shard, out, out_shard)
        self._rows = DeviceRows(shard, partition.edge_id_bits)
        self._there = self._rows.graph().to(device)
        self._samplers = _Samplers()

    def _sample_rows(self, question: RowRequest) -> memoryview:
        plan = self._sampler(question.document, question.seed)._plan
        if not _is_for_device(plan, question.hop):
            return super()._sample_rows(question)
        hop = question.hop

        def fanouts() -> list[Any]:
            given = plan["fanouts"]
            return [given[len(given) - 1 - hop], *[0] * hop]

        made = self._samplers.sampler_for(question, plan, fanouts).sample(
            self._there,
            _node_ids(question),
            epoch=question.epoch,
            batch=question.batch,
            exclude=self._rows.excluded(question),
        )
        return self._rows.answer(question, made.blocks[0], made.input_nodes)


class HeteroDeviceRowServer(HeteroRowServer):
    """The same of the relations of a part; all else is answered as by ``HeteroRowServer``."""

    def __init__(self, partition: HeteroPartition, shard: HeteroShard, device: int) -> None:
        super().__init__(partition, shard)
        self._types = partition.edge_types
        self._rows = [
            DeviceRows(own, width) for own, width in zip(shard.relations, self._widths, strict=True)
        ]
        rows = zip(self._types, (own.graph() for own in self._rows), strict=True)
        self._there = HeteroGraph(dict(rows), partition.num_nodes).to(device)
        self._samplers = _Samplers()

    def _sample_rows(self, question: RowRequest) -> memoryview:
        plan = self._sampler(question.document, question.seed)._plan
        hop, relation = divmod(question.hop, len(self._types))
        if not _is_for_device(plan, hop):
            return super()._sample_rows(question)
        kind = self._types[relation]

        def fanouts() -> list[Any]:
            given = plan["fanouts"]
            own = given[len(given) - 1 - hop]
            if not isinstance(own, int):
                own = number_of(own, kind, plan["default_fanout"])
            none = dict.fromkeys(self._types, 0)
            return [{**none, kind: own}, *[none] * hop]

        exclude = self._rows[relation].excluded(question)
        made: Any = self._samplers.sampler_for(question, plan, fanouts).sample(
            self._there,
            {kind[2]: _node_ids(question)},
            epoch=question.epoch,
            batch=question.batch,
            exclude=None if exclude is None else {kind: exclude},
        )
        return self._rows[relation].answer(
            question, made.blocks[0][kind], made.input_nodes[kind[0]]
        )


class _Samplers:
    """The samplers whose batches have, as outermost blocks, the rows of a question's hop."""

    def __init__(self) -> None:
        self._made: OrderedDict[tuple[str, int, int], PGSampler] = OrderedDict()

    def sampler_for(
        self, question: RowRequest, plan: Plan, fanouts: Callable[[], Sequence[Any]]
    ) -> PGSampler:
        """Returns the sampler of a question of a plan; ``fanouts`` has the outermost hop first."""
        key = question.document, question.seed, question.hop
        made = self._made.get(key)
        if made is None:
            about = {name: plan[name] for name in ("replace", "prob", "mask", "edge_weights")}
            made = self._made[key] = PGSampler(fanouts(), seed=question.seed, **about)
            if len(self._made) > PLANS:
                self._made.popitem(last=False)
        self._made.move_to_end(key)
        return made


def _is_for_device(plan: Plan, hop: int) -> bool:
    known = plan["family"] == "neighbor" or plan["family"] == "typed"
    return known and not plan["disjoint"] and hop < MOST_HOPS


def _node_ids(question: RowRequest) -> array[int]:
    return array("i" if question.bits == 32 else "q", bytes(question.vertices))


def row_server(partition: Partition, rank: int, device: int) -> RowServer | HeteroRowServer:
    """Returns the server that answers for a part, on the CPU or on that device."""
    if isinstance(partition, HeteroPartition):
        if device < 0:
            return HeteroRowServer(partition, partition.shard(rank))
        return HeteroDeviceRowServer(partition, partition.shard(rank), device)
    out, shard = partition.out, partition.shard(rank)
    behind = None if out is None else out.shard(rank)
    if device < 0:
        return RowServer(partition, shard, out, behind)
    return DeviceRowServer(partition, shard, out, behind, device)
