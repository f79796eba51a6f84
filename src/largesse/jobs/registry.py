"""What a package registers in its `tasks.py`: periodic tasks, retention and queues to measure.

`jobs/housekeeping.py` lists the packages, for the worker, the gauges and pruning. Encrypted columns register by `SealedTable`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from prometheus_client import Gauge

from largesse.db.pool import Connection, Database
from largesse.db.scope import WORKER
from largesse.db.shard_groups import Customers, ShardGroupRunner
from largesse.encryption.chain_keys import Chains, open_chains
from largesse.encryption.vault import Vault
from largesse.jobs.due_times import DueTimes
from largesse.jobs.notifier import POLL_S
from largesse.jobs.retention import Old, Waiting

Result = TypeVar("Result")


class WorkerContext:
    """What periodic tasks use. `wake` makes the loops with these names look for work now.

    `default_expiry_days` is the setting.
    """

    def __init__(
        self, database: Database, vault: Vault, wake: Callable[..., None], *, default_expiry_days: int = 365
    ) -> None:
        self.database = database
        self.vault = vault
        self.wake = wake
        self.default_expiry_days = default_expiry_days
        self.shard_groups = ShardGroupRunner(database)
        self._chains: Chains | None = None

    async def open_chains(self, connection: Connection) -> Chains:
        """Returns the chains. The first serving process of a new installation makes their keys, so this waits for them."""
        if self._chains is None or not self._chains.moves.has_keys:
            self._chains = await open_chains(connection, self.vault, keep=False)
        return self._chains

    async def in_shard_groups(
        self, waiting: str, step: Callable[[Connection, Customers], Awaitable[Result]]
    ) -> list[Result]:
        """Runs `step` in a transaction for each shard group with a customer that `waiting` finds; once if nothing is distributed."""

        async def run(customers: Customers) -> Result:
            async with self.database.transaction(WORKER) as connection:
                return await step(connection, customers)

        return await self.shard_groups.run(waiting, run)


@dataclass(frozen=True, slots=True)
class PeriodicTask:
    """A step that each worker repeats: at once if it returned True, otherwise after `every_s` seconds or when woken."""

    name: str
    step: Callable[[WorkerContext], Awaitable[bool]]
    every_s: float = POLL_S
    finishes: bool = False  # A worker that ends waits for the current step. It cancels the steps of other tasks.
    on_orders: bool = False  # New orders wake it.
    needs_mail_server: bool = False


@dataclass(frozen=True, slots=True)
class RoomTasks:
    """What a package registers. `gauges` show the number of waiting rows. The test lab brings `due_times` forward."""

    periodic: Sequence[PeriodicTask] = ()
    retention: Sequence[Old] = ()
    queues: Sequence[Waiting] = ()
    gauges: Sequence[tuple[Gauge, Waiting]] = ()
    due_times: Sequence[DueTimes] = ()
