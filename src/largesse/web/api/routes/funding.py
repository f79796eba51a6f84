"""GET /funding-accounts, and the entries of one."""

from datetime import UTC, datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from largesse.base.decoding import YEAR_AND_MONTH
from largesse.base.errors import NotFound
from largesse.base.money import label, to_number
from largesse.customers.restrictions import READ
from largesse.ledger.payment_sources import names_account
from largesse.ledger.statements import month_of, read_statement, statement_page
from largesse.ledger.store import FundingAccount, list_funding_accounts
from largesse.web.api.operation import ID_IN_PATH, Call, Operation
from largesse.web.api.shapes import shaped
from largesse.web.kit.asgi import Reply, encode_json
from largesse.web.kit.query import INT64
from largesse.web.kit.services import Services


class FundingAccountShape(msgspec.Struct, rename="camel"):
    """A funding account the key can draw from."""

    id: Annotated[int, Meta(description="Pass as `accountId` when sending")]
    name: Annotated[str, Meta(description="Name that people gave the account")]
    is_master: Annotated[bool, Meta(description="True for the customer's master float, false for a group account")]
    currency_id: Annotated[int, Meta(description="ISO 4217 numeric code of the currency held")]
    currency: Annotated[str, Meta(description="ISO code of the currency held")]
    balance: Annotated[float, Meta(description="Funds currently available, in the account currency")]
    label: Annotated[str, Meta(description="Display label with name, currency and balance")]


class AccountEntryShape(msgspec.Struct, kw_only=True, rename="camel"):
    """One entry of a funding account. Entries never change."""

    id: Annotated[int, Meta(description="Unique; ascends in an account", extra_json_schema={"format": "int64"})]
    creation_date: Annotated[datetime, Meta(tz=True, description="When it was made")]
    # No `enum`: generated clients would fail on a kind that a later release adds.
    kind: Annotated[
        str,
        Meta(
            description="`top_up`, `transfer` (from or to another account), `order`, `refund` or `correction`; later releases may add some",
            examples=["order"],
        ),
    ]
    amount: Annotated[float, Meta(description="Added to the balance; below 0 if it was taken", examples=[-10.0])]
    balance: Annotated[float, Meta(description="The balance after the entry", examples=[990.0])]
    order_reference: Annotated[str, Meta(description="The `reference` of the order, for `order` and `refund`")] | None
    external_reference: (
        Annotated[str, Meta(description="The order's idempotency key, or the reference of a top-up")] | None
    )


class EntriesQuery(msgspec.Struct, frozen=True):
    """Which entries to list: those of a month, or all of them."""

    month: (
        Annotated[
            str, Meta(description="Only the entries of this month (UTC)", examples=["2030-01"], pattern=YEAR_AND_MONTH)
        ]
        | None
    ) = None
    after: Annotated[
        int,
        Meta(
            ge=0,
            le=INT64,
            description="The `id` of the last entry you know: gives those after it",
            extra_json_schema={"format": "int64"},
        ),
    ] = 0
    limit: Annotated[int, Meta(ge=1, le=200, description="Entries to return at most")] = 100


async def _funding_accounts(services: Services, call: Call) -> Reply:
    if not names_account(call.principal.funding):
        return Reply(b"[]")
    async with services.database.connection(call.principal.scope) as connection:
        accounts = await list_funding_accounts(connection, call.principal)
    return Reply(encode_json([_shape(account) for account in accounts]))


def _shape(account: FundingAccount) -> FundingAccountShape:
    balance = label(account.balance_minor, account.currency)
    return shaped(
        FundingAccountShape,
        account,
        balance=to_number(account.balance_minor, account.currency),
        label=f"{account.name} ({account.currency}, {balance})",
    )


async def _entries(services: Services, call: Call) -> Reply:
    account_id, query, principal = call.id(), call.query, call.principal
    month = (
        (None, None) if query.month is None else month_of(datetime.strptime(query.month, "%Y-%m").replace(tzinfo=UTC))
    )
    async with services.database.connection(principal.scope) as connection:
        usable = await list_funding_accounts(connection, principal) if names_account(principal.funding) else []
        account = next((one for one in usable if one.id == account_id), None)
        if account is None:
            raise NotFound("There is no funding account with that id.")
        statement = await read_statement(connection, principal.customer_id, account_id, *month)
        entries = await statement_page(connection, statement, query.after, query.limit)
    currency = account.currency
    return Reply(
        encode_json(
            [
                shaped(
                    AccountEntryShape,
                    entry,
                    creation_date=entry.at,
                    amount=to_number(entry.amount_minor, currency),
                    balance=to_number(entry.balance_minor, currency),
                )
                for entry in entries
            ]
        )
    )


OPERATIONS = (
    Operation(
        "GET",
        "/funding-accounts",
        "listFundingAccounts",
        "List the funding accounts the key can draw from",
        _funding_accounts,
        "Funding",
        scope=READ,
        shape=list[FundingAccountShape],
        description="Accounts assigned to the key's service account and those open to all, of every currency. "
        "An empty array means that orders are invoiced: omit `accountId` when sending. If the customer pays from a balance, it means that no account "
        "is assigned to the service account: a send is then 400, and an administrator or the operator can assign one.",
        example=[
            {
                "id": 1,
                "name": "Acme float",
                "isMaster": True,
                "currencyId": 826,
                "currency": "GBP",
                "balance": 1000.0,
                "label": "Acme float (GBP, £1,000.00)",
            }
        ],
    ),
    Operation(
        "GET",
        "/funding-accounts/{id}/entries",
        "listFundingAccountEntries",
        "List the entries of a funding account",
        _entries,
        "Funding",
        scope=READ,
        shape=list[AccountEntryShape],
        query=EntriesQuery,
        path_types=ID_IN_PATH,
        problems=(NotFound,),
        description="Every change of the balance, oldest first. With `month`, they are those of the month's statement. Its opening balance is the first "
        "entry's `balance` less its `amount`; its closing balance is the last entry's `balance`. For the next page, pass the last `id` as `after`.",
        example=[
            {
                "id": 7,
                "creationDate": "2030-01-02T09:00:00Z",
                "kind": "order",
                "amount": -10.0,
                "balance": 990.0,
                "orderReference": "0WBQK7M2PXR4D9VA1C3E",
                "externalReference": "payroll-2030-01-1138",
            }
        ],
    ),
)
