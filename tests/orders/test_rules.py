"""Which orders of a batch are placed, whatever comes together in it."""

from collections import defaultdict
from copy import deepcopy
from itertools import count, product

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.orders.builder import NOW, build_order

from largesse.base import errors
from largesse.base.money import MAX_HELD_MINOR
from largesse.customers.access import KeyStatus, StaleCaller
from largesse.customers.principal import Principal
from largesse.ledger.own_accounts import OwnAccounts
from largesse.orders.order import Order
from largesse.orders.rules import AccountsGone, BatchContext, Decided, LedgerAccount, LockedAccount, decide

# By customer, environment and currency. The first are 91 and 92.
OWN = {
    key: OwnAccounts(receivable, receivable + 1)
    for key, receivable in zip(product((1, 2), ("production", "staging"), ("GBP", "EUR")), count(91, 2))
}


def make_order(
    *,
    customer: int = 1,
    service_account: int = 1,
    key: int = 1,
    environment: str = "production",
    account: int | None = 1,
    currency: str = "GBP",
    cost_minor: int = 100,
    codes: int = 1,
    external_reference: str | None = None,
) -> Order:
    principal = Principal(key, environment, customer, "Acme", "pro", "balance", service_account, "Bot", True)
    return build_order(
        principal,
        OWN[customer, environment, currency],
        account_id=account,
        currency=currency,
        cost_minor=cost_minor,
        codes=codes,
        external_reference=external_reference,
    )


def make_context(*held: int, **taken: str) -> BatchContext:
    """Accounts 1 and 2 of customer 1 (2 for service account 1 alone), 3 in staging, 4 in euro, 5 of customer 2.

    `held` are those that somebody else has locked."""

    def funding(
        number: int, customer: int, balance: int, *, to_all: bool = True, only: tuple[int, ...] = ()
    ) -> LedgerAccount:
        environment = "staging" if number == 3 else "production"
        currency = "EUR" if number == 4 else "GBP"
        return LedgerAccount(number, customer, environment, "funding", currency, balance, to_all, only)

    accounts = [
        funding(1, 1, 1000),
        funding(2, 1, 500, to_all=False, only=(1,)),
        funding(3, 1, 1000),
        funding(4, 1, 1000),
        funding(5, 2, 1000),
        *(
            LedgerAccount(number, customer, environment, kind, currency, 0, False, ())
            for (customer, environment, currency), own in OWN.items()
            for number, kind in ((own.receivable, "receivable"), (own.sales, "sales"))
        ),
    ]
    return BatchContext(
        now=NOW,
        transaction_id="1",
        locked=frozenset(account.id for account in accounts) - set(held),
        ids_left=1_000,
        transfer_ids=count(1),
        key_statuses={
            1: KeyStatus("pro", True),
            2: KeyStatus("pro", True),
            4: KeyStatus("pro", False),
            5: KeyStatus("starter", True),
        },
        people={},
        references={(1, "production", name): holder for name, holder in taken.items()},
        accounts={account.id: account for account in accounts},
    )


def refusal(order: Order, context: BatchContext | None = None) -> errors.Problem:
    decided = decide([order], context or make_context())
    assert decided.placed == decided.entries == []
    return decided.refusals[0]


@pytest.mark.parametrize(
    ("version", "changed", "is_placed"),
    [(7, None, True), (6, {2}, True), (6, {1, 2}, False), (6, None, False), (8, set(), False)],
)
def test_what_is_prepared_by_an_older_catalogue_is_placed_if_its_product_is_as_it_was(
    version: int, changed: set[int] | None, is_placed: bool
) -> None:
    context = make_context()
    context.catalogue_version = 7
    context.changed_products = None if changed is None else frozenset(changed)
    first, order = (
        msgspec.structs.replace(make_order(), remembered=(KeyStatus("pro", True), known)) for known in (6, version)
    )
    decided = decide([first, order], context)
    assert isinstance(decided.refusals[0], StaleCaller), "the process learns of the newer version"
    assert (decided.placed == [order]) == is_placed
    assert is_placed or isinstance(decided.refusals[1], StaleCaller)


@pytest.mark.parametrize(
    ("order", "problem"),
    [
        (make_order(key=3), errors.Unauthorized),
        (make_order(key=4), errors.Inactive),
        (make_order(key=5), errors.PlanRequired),
        (make_order(account=999), errors.InvalidRequest),
        (make_order(account=5), errors.InvalidRequest),
        (make_order(account=3), errors.InvalidRequest),
        (make_order(account=1, environment="staging"), errors.InvalidRequest),
        (make_order(account=2, service_account=2), errors.InvalidRequest),
        (make_order(account=91), errors.InvalidRequest),
        (make_order(account=92), errors.InvalidRequest),
        (make_order(account=4), errors.InvalidRequest),
        (make_order(cost_minor=1001), errors.InsufficientBalance),
        (make_order(cost_minor=334, codes=3), errors.InsufficientBalance),
        (make_order(external_reference="used"), errors.ReferenceUsed),
        # In the order of checks: key, reference, account, balance
        (make_order(external_reference="used", key=3), errors.Unauthorized),
        (make_order(external_reference="used", key=4), errors.Inactive),
        (make_order(external_reference="used", key=5), errors.PlanRequired),
        (make_order(external_reference="used", account=999), errors.ReferenceUsed),
        (make_order(external_reference="used", cost_minor=9999), errors.ReferenceUsed),
        (make_order(account=4, cost_minor=9999), errors.InvalidRequest),
    ],
)
def test_what_is_refused(order: Order, problem: type[errors.Problem]) -> None:
    assert type(refusal(order, make_context(used="HOLDER"))) is problem


@pytest.mark.parametrize(
    "order",
    [
        make_order(cost_minor=1000),
        make_order(cost_minor=200, codes=5),
        make_order(account=2, service_account=1),
        make_order(account=4, currency="EUR"),
        make_order(account=None, cost_minor=10**12),
        make_order(external_reference="free"),
        make_order(customer=2, account=5, external_reference="used"),
        make_order(account=3, environment="staging", external_reference="used"),
    ],
)
def test_what_is_placed(order: Order) -> None:
    decided = decide([order], make_context(used="HOLDER"))
    assert (decided.placed, decided.refusals) == ([order], {})


@pytest.mark.parametrize("account", [None, 1])
@pytest.mark.parametrize(
    "sales",
    [
        992,
        OWN[2, "production", "GBP"].sales,
        OWN[1, "staging", "GBP"].sales,
        OWN[1, "production", "EUR"].sales,
        OWN[1, "production", "GBP"].receivable,
    ],
)
def test_accounts_that_a_crash_took_are_not_used(sales: int, account: int | None) -> None:
    """An id may belong to no account, or to one of another customer, currency, environment or kind."""
    assert isinstance(refusal(make_order(account=account).with_own_accounts(OwnAccounts(91, sales))), AccountsGone)


def test_an_order_on_invoice_needs_its_receivable_account() -> None:
    gone = OwnAccounts(992, 92)
    assert isinstance(refusal(make_order(account=None).with_own_accounts(gone)), AccountsGone)
    assert decide([make_order().with_own_accounts(gone)], make_context()).placed, "a balance pays"


def test_an_order_waits_for_accounts_that_are_locked() -> None:
    assert isinstance(decide([make_order()], make_context(92)).refusals[0], LockedAccount)


def test_a_used_reference_tells_its_holder() -> None:
    refused = refusal(make_order(external_reference="used"), make_context(used="HOLDER"))
    assert refused.holder == "HOLDER"


def test_an_order_pays_from_its_account_into_sales() -> None:
    decided = decide([make_order(cost_minor=30, codes=4), make_order(account=None)], make_context())
    entries = [(p.account_id, p.transfer_id, p.order_id, p.amount_minor, p.balance_minor) for p in decided.entries]
    assert entries == [(1, 1, 1, -120, 880), (92, 1, 1, 120, 120), (91, 2, 2, -100, -100), (92, 2, 2, 100, 220)]


@pytest.mark.parametrize("full", [91, 92])
@pytest.mark.parametrize("left_minor", [99, 100])
def test_an_order_that_the_ledger_cannot_hold_is_refused(full: int, left_minor: int) -> None:
    """An order beyond 64 bits failed as it was written, with 500."""
    context = make_context()
    context.accounts[full].balance_minor = (left_minor - MAX_HELD_MINOR) * (1 if full == 91 else -1)
    decided = decide([make_order(account=None)], context)
    assert [type(one) for one in decided.refusals.values()] == [errors.InvalidRequest] * (left_minor < 100)


orders = st.builds(
    make_order,
    customer=st.sampled_from([1, 2]),
    service_account=st.sampled_from([1, 2]),
    key=st.sampled_from([1, 1, 1, 2, 3]),
    environment=st.sampled_from(["production", "production", "staging"]),
    account=st.sampled_from([1, 1, 1, 2, 3, 4, 5, 91, 92, 999, None]),
    currency=st.sampled_from(["GBP", "GBP", "EUR"]),
    cost_minor=st.integers(1, 400),
    codes=st.integers(1, 4),
    external_reference=st.none() | st.sampled_from("abcdef"),
)


@given(st.lists(orders, max_size=30))
def test_money_is_neither_made_nor_lost_and_no_balance_falls_below_zero(batch: list[Order]) -> None:
    context = make_context(a="HOLDER")
    before = {number: account.balance_minor for number, account in context.accounts.items()}
    decided = decide(batch, context)
    transfers: dict[int, int] = defaultdict(int)
    for entry in decided.entries:
        transfers[entry.transfer_id] += entry.amount_minor
        before[entry.account_id] += entry.amount_minor
        assert entry.balance_minor == before[entry.account_id]
        if context.accounts[entry.account_id].kind == "funding":
            assert entry.balance_minor >= 0
    assert set(transfers.values()) <= {0}
    assert len(transfers) == len(decided.placed)
    assert before == {number: account.balance_minor for number, account in context.accounts.items()}
    charged = sum(order.total_minor for order in decided.placed)
    assert charged == sum(p.amount_minor for p in decided.entries if p.amount_minor > 0)


@pytest.mark.slow
@given(st.lists(orders, max_size=30))
def test_every_order_is_placed_or_refused_and_no_reference_twice(batch: list[Order]) -> None:
    decided = decide(batch, make_context(a="HOLDER"))
    placed = [order.reference for order in decided.placed]
    refused = [batch[at].reference for at in decided.refusals]
    assert sorted(placed + refused) == sorted(order.reference for order in batch)
    taken = [order.reference_key for order in decided.placed if order.reference_key is not None]
    assert len(taken) == len(set(taken))
    assert (1, "production", "a") not in taken


@pytest.mark.slow
@given(st.lists(orders, max_size=20))
def test_a_refused_order_changes_nothing_for_its_neighbours(batch: list[Order]) -> None:
    context = make_context(a="HOLDER")
    whole = decide(batch, deepcopy(context))
    rest = [order for at, order in enumerate(batch) if at not in whole.refusals]
    alone = decide(rest, deepcopy(context))
    assert alone.refusals == {}
    assert _balances(alone) == _balances(whole)


@given(st.lists(orders, max_size=20), st.integers(0, 20))
def test_one_batch_decides_as_two_that_follow_each_other(batch: list[Order], cut: int) -> None:
    together, apart = make_context(), make_context()
    whole = decide(batch, together)
    first, second = decide(batch[:cut], apart), decide(batch[cut:], apart)
    assert whole.placed == first.placed + second.placed
    assert together.accounts == apart.accounts


def _balances(decided: Decided) -> list[tuple[int, int, int]]:
    return [(p.account_id, p.amount_minor, p.balance_minor) for p in decided.entries]
