"""Operations on templates: create, change and remove them."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext

from msgspec.structs import astuple

from largesse.base.errors import InvalidRequest, existing
from largesse.customers.actor import Actor, Transaction, require_same
from largesse.customers.roles import Right
from largesse.templates import store
from largesse.templates.store import Template, TemplateContent

MOST_TEMPLATES = 500
MAX_NAME = 200
MAX_EXPIRY_DAYS = 36_500


class TooManyTemplates(InvalidRequest, rule=f"A customer has at most {MOST_TEMPLATES} templates."):
    """The customer has the highest number of templates."""


async def create_template(actor: Actor, content: TemplateContent, *, of_order: bool = False) -> int:
    """Creates a template and returns its id. If it was made from an order (`of_order`), the audit log has only its name. Raises TooManyTemplates."""
    async with actor.transaction(Right.TEMPLATES) as transaction:
        if await store.count_templates(transaction.connection, actor.customer_id) >= MOST_TEMPLATES:
            raise TooManyTemplates
        template_id: int = await transaction.connection.fetchval(store.INSERT, actor.customer_id, *astuple(content))
        after = {"name": content.name} if of_order else _audited(content)
        await transaction.record("template.created", f"template {template_id}", after=after)
    return template_id


async def change_template(
    actor: Actor,
    template_id: int,
    content: TemplateContent,
    changing: Callable[[Transaction], AbstractAsyncContextManager[object]] = nullcontext,
    seen: Template | None = None,
) -> None:
    """Replaces the content of a template. Orders that were sent with it do not change. Raises NotFound, and ReadAgain if it is not `seen` any more.

    Makes the change inside the context that `changing` returns, for packages that depend on templates.
    """
    async with actor.transaction(Right.TEMPLATES) as transaction:
        async with changing(transaction):
            before = await _lock(transaction, template_id)
            require_same(seen, before)
            await transaction.connection.execute(store.UPDATE, actor.customer_id, template_id, *astuple(content))
        await transaction.record(
            "template.changed", f"template {template_id}", before=_audited(before), after=_audited(content)
        )


async def remove_template(actor: Actor, template_id: int) -> None:
    """Removes a template: it can no longer be sent. Orders that were sent with it do not change. Raises NotFound."""
    async with actor.transaction(Right.TEMPLATES) as transaction:
        before = await _lock(transaction, template_id)
        await transaction.connection.execute(store.REMOVE, actor.customer_id, template_id)
        await transaction.record("template.removed", f"template {template_id}", before=_audited(before))


async def _lock(transaction: Transaction, template_id: int) -> Template:
    return existing(
        await store.lock_template(transaction.connection, transaction.actor.customer_id, template_id),
        "There is no such template.",
    )


def _audited(content: TemplateContent) -> dict[str, object]:
    """Returns the data of a template for the audit log. Leaves out the message, which may name a person."""
    return {"name": content.name, "gift": content.gift_name, "value": content.value, "currency": content.currency}
