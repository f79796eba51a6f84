"""Approvals end with what an automation or its template sends: in the transaction of the change, also of a seed file."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asyncpg import IntegrityConstraintViolationError
from msgspec.structs import replace
from tests.automations.conftest import WORLD, approve_all, perform, rule
from tests.privacy.conftest import Run, run
from tests.web.api.conftest import Service

from largesse.automations.service import change_automation, change_template
from largesse.customers.actor import Actor
from largesse.templates.store import TemplateContent, lock_template

__all__ = ["run"]


@pytest.fixture
def approved(service: Service, automation: Callable[..., int]) -> int:
    """An automation that Bea has approved. Approvers are mailed from now on."""
    automation_id = automation(asks_approval=True)
    approve_all(service)
    service.sql("DELETE FROM people_mails")
    return automation_id


async def change(actor: Actor, template_id: int, **changes: Any) -> None:
    async with actor.transaction() as transaction:
        before = await lock_template(transaction.connection, actor.customer_id, template_id)
    assert before is not None
    values = {name: getattr(before, name) for name in TemplateContent.__struct_fields__}
    await change_template(actor, template_id, replace(TemplateContent(**values), **changes))


def is_approved(service: Service) -> bool:
    return service.sql("SELECT approved_by FROM automations")[0][0] is not None


def asked(service: Service) -> int:
    return len(service.sql("SELECT FROM people_mails WHERE kind = 'automation_asked'"))


@pytest.mark.usefixtures("approved")
def test_a_change_that_fails_ends_no_approval(service: Service) -> None:
    with pytest.raises(IntegrityConstraintViolationError):
        perform(service, change, service.ids["templates"]["welcome"], value_minor=-1)
    assert is_approved(service)
    assert asked(service) == 0


def test_an_automation_that_its_person_saves_unchanged_keeps_its_approval(service: Service, approved: int) -> None:
    same = rule(service, asks_approval=True)
    perform(service, change_automation, approved, same)
    assert is_approved(service)
    assert asked(service) == 0
    perform(service, change_automation, approved, replace(same, cap=5))
    assert not is_approved(service)
    assert asked(service) == 1


def test_a_change_ends_the_approval_unless_only_the_name_differs(
    service: Service, automation: Callable[..., int], approved: int
) -> None:
    template = service.ids["templates"]["welcome"]
    [(copy,)] = service.sql(
        """
        INSERT INTO templates (customer_id, key, of_people, created_at, name, product_id, gift_name, value_minor, currency, country)
        SELECT customer_id, 'copy', true, created_at, 'Copy', product_id, gift_name, value_minor, currency, country FROM templates
        WHERE id = $1 RETURNING id
        """,
        template,
    )
    automation(name="Copy", template_id=copy, asks_approval=True)
    approve_all(service)
    service.sql("DELETE FROM people_mails")
    perform(service, change, template, name="Hello")
    assert is_approved(service)
    perform(service, change, template, message="Thank you, {first_name|you}", environment="staging")
    still = service.sql("SELECT id = $1, approved_by IS NOT NULL FROM automations ORDER BY id", approved)
    assert [tuple(row) for row in still] == [(True, False), (False, True)], "the other template sends what it sent"
    assert asked(service) == 1
    service.sql("UPDATE automations SET ended_at = clock_now()")
    service.sql("UPDATE templates SET removed_at = clock_now() WHERE key = 'copy'")
    service.sql("UPDATE templates SET of_people = false, name = 'Welcome'")


@pytest.mark.usefixtures("approved")
def test_a_seed_file_that_changes_what_a_template_sends_ends_the_approval(
    service: Service, run: Run, tmp_path: Path
) -> None:
    service.sql("UPDATE templates SET of_people = false")
    file = tmp_path / "world.yaml"
    world = WORLD.replace("Hello {first_name", "Dear {first_name")
    for text, is_kept in ((world, False), (world, True), (world.replace("name: Welcome,", "name: Hello,"), True)):
        file.write_text(text)
        run("load", str(file))
        assert is_approved(service) is is_kept
        approve_all(service)
    assert asked(service) == 1
