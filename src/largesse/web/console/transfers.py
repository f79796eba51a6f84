"""Moving money between two accounts: asked for, shown with what both hold then, and done once."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.responses import Response

from largesse.base.errors import InsufficientBalance, InvalidRequest, NotFound
from largesse.base.i18n.templates import text
from largesse.ledger.accounts import SeenAccount, list_seen_accounts
from largesse.ledger.transfers import transfer
from largesse.web.console.context import Visit, typed_amount
from largesse.web.console.form import Form

_SAME = text("Choose another account than the one the money comes from.")
_OTHER_CURRENCY = text("This account is in %(currency)s, the other one is not.")
_HOLDS = text("%(account)s holds %(amount)s.")
_CHANGED = text("The accounts have changed meanwhile. Look at them, and try again.")


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A transfer that can be made, as far as can be seen."""

    source: SeenAccount
    target: SeenAccount
    amount_minor: int


async def ask(visit: Visit) -> Response:
    """The form; once it is filled in, what both accounts hold afterwards, and the button that moves the money."""
    visit.form = visit.form_of_address
    accounts = await _accounts(visit)
    wanted = _read(visit, accounts) if visit.query("amount") or visit.query("to") else None
    return _shown(visit, accounts, wanted)


async def make(visit: Visit) -> Response:
    """Moves the money, and goes back to the accounts."""
    accounts, person = await _accounts(visit), visit.person
    wanted = _read(visit, accounts)
    if wanted is None:
        return _shown(visit, accounts, None)
    try:
        async with visit.writing() as connection:
            made = await transfer(
                connection,
                visit.acting,
                customer_id=person.customer_id,
                environment=person.environment,
                from_id=wanted.source.id,
                to_id=wanted.target.id,
                amount_minor=wanted.amount_minor,
                made_by=person.user_id,
            )
    except (InsufficientBalance, InvalidRequest, NotFound):
        visit.form.error("amount", visit.say(_CHANGED))
        return _shown(visit, await _accounts(visit), None)
    said = visit.say(
        "%(amount)s went from %(source)s to %(target)s.",
        amount=visit.language.amount(made.amount_minor, made.currency),
        source=made.from_name,
        target=made.to_name,
    )
    return visit.see("/app/funding", said)


async def _accounts(visit: Visit) -> list[SeenAccount]:
    person = visit.person
    async with visit.database.connection(person.scope) as connection:
        return await list_seen_accounts(connection, person.customer_id, person.environment, user_id=None)


def _read(visit: Visit, accounts: list[SeenAccount]) -> _Wanted | None:
    """What was asked for; None, with what is wrong noted, where it cannot be."""
    form = visit.form
    source = _chosen(form, "from", _sources(accounts))
    target = _chosen(form, "to", _targets(accounts))
    if source is not None and target is not None:
        if source.id == target.id:
            form.error("to", visit.say(_SAME))
        elif source.currency != target.currency:
            form.error("to", visit.say(_OTHER_CURRENCY, currency=target.currency))
    amount_minor = 0 if source is None else typed_amount(visit, "amount", source.currency)
    if source is not None and amount_minor > source.balance_minor:
        held = visit.language.amount(source.balance_minor, source.currency)
        form.error("amount", visit.say(_HOLDS, account=source.name, amount=held))
    # The language may have changed since the amount was shown, and with it what the amount means.
    if form["amount_minor"] and form["amount_minor"] != str(amount_minor):
        form.error("amount", visit.say(_CHANGED))
    if form.errors or source is None or target is None:
        return None
    return _Wanted(source, target, amount_minor)


def _chosen(form: Form, name: str, offered: list[SeenAccount]) -> SeenAccount | None:
    chosen = form.choice(name, [str(one.id) for one in offered])
    return next((one for one in offered if str(one.id) == chosen), None)


def _sources(accounts: list[SeenAccount]) -> list[SeenAccount]:
    """What a closed account still got back may be moved out."""
    return [one for one in accounts if one.balance_minor]


def _targets(accounts: list[SeenAccount]) -> list[SeenAccount]:
    return [one for one in accounts if not one.is_closed]


def _shown(visit: Visit, accounts: list[SeenAccount], wanted: _Wanted | None) -> Response:
    def choices(offered: list[SeenAccount]) -> list[tuple[str, str]]:
        return [
            (str(one.id), f"{one.name} ({visit.language.amount(one.balance_minor, one.currency)})")
            for one in offered
        ]

    return visit.page(
        "transfer.html",
        status=422 if visit.form.errors else 200,
        sources=choices(_sources(accounts)),
        targets=choices(_targets(accounts)),
        wanted=wanted,
    )
