"""Carries on erasures, and registers the addresses of open requests and of erasures under way for key rotation."""

import structlog

from largesse.audit.service import Acting, by_worker
from largesse.customers.actor import worker_actor
from largesse.db.pool import DATABASE_AWAY
from largesse.db.scope import WORKER
from largesse.encryption.columns import sealed_column
from largesse.jobs.registry import Old, PeriodicTask, RoomTasks, WorkerContext
from largesse.privacy.erasing import job_context, take_step
from largesse.privacy.erasing_store import find_due_job, postpone
from largesse.privacy.requests import request_context

_EVERY_S = 2.0
_AGAIN_S = 60.0

log = structlog.get_logger(__name__)

REQUESTS = sealed_column(
    "privacy_requests",
    "sealed_email",
    {"id": "int"},
    lambda vault: vault.emails,
    lambda row: request_context(row["id"]),
)
JOBS = sealed_column(
    "erasure_jobs", "sealed_email", {"id": "int"}, lambda vault: vault.emails, lambda row: job_context(row["id"])
)


async def carry_on(context: WorkerContext) -> bool:
    """Takes a step of the first due erasure. One that fails is tried again after a minute, so that it holds up no other."""
    async with context.database.connection(WORKER) as connection:
        job_id = await find_due_job(connection)
        if job_id is None:
            return False
        acting = Acting(by_worker("privacy"), await context.open_chains(connection))
    try:
        await take_step(worker_actor(context.database, acting), context.vault, job_id)
    except DATABASE_AWAY:
        raise
    except Exception:
        log.exception("erasure.failed", job=job_id)
        async with context.database.transaction(WORKER) as connection:
            await postpone(connection, job_id, _AGAIN_S)
    return True


TASKS = RoomTasks(
    periodic=(PeriodicTask("erase_people", carry_on, every_s=_EVERY_S),),
    retention=(Old("erasure_jobs", "ended_at", 30),),
)
