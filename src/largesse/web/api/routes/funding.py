"""GET /funding-accounts."""

from typing import Annotated

import msgspec
from msgspec import Meta

from largesse.base.money import label, to_number
from largesse.customers.restrictions import READ
from largesse.ledger.payment_sources import names_account
from largesse.ledger.store import FundingAccount, list_funding_accounts
from largesse.web.api.operation import Call, Operation
from largesse.web.api.shapes import shaped
from largesse.web.kit.replies import Reply, encode_json
from largesse.web.kit.services import Services


class FundingAccountShape(msgspec.Struct, rename="camel"):
    """A funding account the key can draw from."""

    id: Annotated[int, Meta(description="Pass as `accountId` when sending")]
    name: str
    is_master: Annotated[bool, Meta(description="True for the customer's master float, false for a group account")]
    currency_id: Annotated[int, Meta(description="ISO 4217 numeric code of the currency held")]
    currency: Annotated[str, Meta(description="ISO code of the currency held")]
    balance: Annotated[float, Meta(description="Funds currently available, in the account currency")]
    label: Annotated[str, Meta(description="Display label with name, currency and balance")]


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
)
