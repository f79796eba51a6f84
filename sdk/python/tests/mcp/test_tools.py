"""What an assistant can do with a real Largesse: read, quote, and send a quoted order once."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from largesse_client import Largesse
from largesse_client.mcp.quotes import reference_of

SAM = {"email": "sam@example.com", "name": "Sam"}


@pytest.fixture
def account(world: Any) -> int:
    """The account that pays."""
    number: int = world.account
    return number


@pytest.fixture
def product(world: Any) -> int:
    """A product that can be sent at 10 pounds."""
    number: int = world.coffee
    return number


def balance(largesse: Largesse, account: int) -> Any:
    return next(one.balance for one in largesse.funding_accounts.list() if one.id == account)


async def test_it_says_what_it_can_do(in_process: Any) -> None:
    async with in_process() as tools:
        listed = {tool.name: tool for tool in (await tools.client.list_tools()).tools}
        assert set(listed) == {
            *("list_products", "list_collections", "list_templates", "list_wrappings", "list_funding_accounts"),
            *("quote_gift", "quote_collection", "quote_template", "send"),
            *("list_orders", "get_order", "get_codes", "list_deliveries", "resend", "cancel"),
        }
        for name, tool in listed.items():
            assert tool.description, name
            assert tool.annotations is not None
            is_reading = name not in {"send", "resend", "cancel"}
            assert tool.annotations.read_only_hint is is_reading, name
        assert "`notSendable`" in (tools.client.instructions or "")
        assert list(listed["send"].input_schema["properties"]) == ["quote"]
        assert listed["send"].input_schema["required"] == ["quote"]


@pytest.mark.slow
async def test_it_lists_quotes_sends_once_and_repeats_without_a_second_order(
    assistant: Any, largesse: Largesse, account: int, product: int
) -> None:
    async with assistant() as tools:
        products = (await tools.call("list_products", currency="GBP", amount="10"))["products"]
        assert product in {one["id"] for one in products}
        accounts = (await tools.call("list_funding_accounts"))["fundingAccounts"]
        assert account in {one["id"] for one in accounts}
        before, orders = balance(largesse, account), largesse.orders.newest(limit=50)
        delivery = {"recipients": [SAM, {"email": "kim@example.com"}], "account_id": account, "message": "Hi"}
        quoted = await tools.call("quote_gift", product_id=product, value="10", delivery=delivery)
        assert (quoted["totalCost"], quoted["currency"], quoted["recipientCount"]) == ("20.0", "GBP", 2)
        assert quoted["notSendable"] is None
        assert balance(largesse, account) == before
        assert largesse.orders.newest(limit=50) == orders

        sent = await tools.call("send", quote=quoted["quote"])
        assert sent["totalCost"] == "20.0"
        assert sent["externalReference"].startswith("mcp-")
        again = await asyncio.gather(*(tools.call("send", quote=quoted["quote"]) for _ in range(4)))
        assert again == [sent] * 4
        assert before - balance(largesse, account) == 20
        record = largesse.orders.newest(limit=1)[0]
        assert (record.reference, record.source_type) == (sent["reference"], "mcp")

        order = await tools.call("get_order", reference=sent["reference"])
        assert [one["email"] for one in order["recipients"]] == ["sam@example.com", "kim@example.com"]
        assert sent["reference"] in {one["reference"] for one in (await tools.call("list_orders"))["orders"]}
        deliveries = (await tools.call("list_deliveries", reference=sent["reference"]))["deliveries"]
        assert {one["email"] for one in deliveries} == {"sam@example.com", "kim@example.com"}
        assert (await tools.call("resend", reference=sent["reference"], email=SAM["email"]))["email"] == SAM["email"]
        cancelled = await tools.call("cancel", reference=sent["reference"])
        assert cancelled["refunded"] == "20.0"
        assert balance(largesse, account) == before


async def test_two_quotes_of_the_same_are_two_orders(in_process: Any, account: int, product: int) -> None:
    async with in_process() as tools:
        quotes = [(await _quote(tools, account, product))["quote"] for _ in range(2)]
        sent = [await tools.call("send", quote=quote) for quote in quotes]
    assert sent[0]["reference"] != sent[1]["reference"]


async def test_collections_and_templates_are_quoted_and_sent(in_process: Any, account: int) -> None:
    delivery = {"code_quantity": 1, "account_id": account}
    async with in_process() as tools:
        collections = (await tools.call("list_collections", currency="GBP"))["collections"]
        collection = next(one for one in collections if one["requiresValue"])
        value = collection["valuePoints"][0] if collection["valuePoints"] else "10"
        quoted = await tools.call("quote_collection", collection_id=collection["id"], value=value, delivery=delivery)
        assert (await tools.call("send", quote=quoted["quote"]))["giftSelectionType"] == "gifts"
        templates = (await tools.call("list_templates"))["templates"]
        template = next(one for one in templates if one["currency"] == "GBP")
        quoted = await tools.call("quote_template", template_id=template["id"], delivery=delivery)
        assert (await tools.call("send", quote=quoted["quote"]))["totalCost"] == quoted["totalCost"]


@pytest.mark.slow
async def test_without_a_quote_nothing_is_sent(assistant: Any, largesse: Largesse, account: int, product: int) -> None:
    orders = largesse.orders.newest(limit=50)
    async with assistant() as tools:
        assert "quote" in await tools.refusal("send")
        for quote in ("", "x", "a" * 128):
            assert "Nothing was placed" in await tools.refusal("send", quote=quote)
        # A genuine quote, but for a request that this server has not quoted.
        elsewhere = largesse.quote.gift(product, value=10, code_quantity=1, account_id=account)
        told = await tools.refusal("send", quote=elsewhere.quote)
        assert (
            "Nothing was placed: this `quote` is not stored here. It is more than a day old, from before a restart"
            in told
        )
        # The quoted request cannot be changed either.
        quoted = await _quote(tools, account, product)
        more = {"codeQuantity": 50, "delivery": {"code_quantity": 50}}
        told = await tools.refusal("send", quote=quoted["quote"], **more)
        assert "send has no argument 'codeQuantity', 'delivery'. It has quote." in told
        assert (await tools.call("send", quote=quoted["quote"]))["codeCount"] == 1
    assert len([one for one in largesse.orders.newest(limit=50) if one not in orders]) == 1


async def test_all_that_is_wrong_is_told(in_process: Any, account: int, product: int) -> None:
    async with in_process() as tools:
        told = await tools.refusal(
            "quote_gift",
            product_id=product,
            value="10.001",
            delivery={"recipients": [{"email": "sam@-example.com"}, {"email": "Sam"}], "account_id": 2_000_000},
        )
        assert " 3 more are wrong: see below. [400" in told.splitlines()[0], told
        assert [line.split("` ")[0] for line in told.splitlines()[1:]] == [
            "- `value",
            "- `delivery.recipients[0].email",
            "- `delivery.recipients[1].email",
            "- `delivery.account_id",
        ], told
        assert "`errors`" not in told, told
        told = await tools.refusal(
            "quote_gift",
            product_id=0,
            value="-1",
            country="GBR",
            delivery={"recipients": [{"email": " "}], "account_id": account},
        )
        wrong = ["product_id", "value", "country", "delivery.recipients[0].email"]
        assert [line.split("` ")[0] for line in told.splitlines()[1:]] == [f"- `{name}" for name in wrong], told


@pytest.mark.parametrize(
    ("tool", "gift", "delivery", "named"),
    [
        ("quote_gift", {"product_id": 2_000_000}, {"code_quantity": 1}, "product_id"),
        ("quote_template", {"template_id": 2_000_000}, {"code_quantity": 1}, "template_id"),
        ("quote_collection", {"collection_id": 2_000_000}, {"code_quantity": 1}, "collection_id"),
        ("quote_gift", {}, {"code_quantity": 1, "account_id": 2_000_000}, "delivery.account_id"),
        ("quote_gift", {}, {"recipients": [{"email": "sam@-example.com"}]}, "delivery.recipients[0].email"),
        ("quote_gift", {}, {}, "delivery.recipients` or `delivery.code_quantity"),
    ],
)
async def test_errors_name_the_arguments_of_the_tool(
    in_process: Any, account: int, product: int, tool: str, gift: dict[str, int], delivery: Any, named: str
) -> None:
    given = {"delivery": {"account_id": account} | delivery}
    async with in_process() as tools:
        told = await tools.refusal(tool, **(gift or {"product_id": product, "value": 10}), **given)
    assert told.startswith(f"Error executing tool {tool}: `{named}` "), told


async def test_what_is_misspelt_is_refused(in_process: Any, account: int, product: int) -> None:
    async with in_process() as tools:
        delivery = {"code_quantity": 1, "account_id": account, "mesage": "Hi", "sender": "Ada"}
        told = await tools.refusal("quote_gift", product_id=product, value=10, delivery=delivery)
        assert "mesage" in told
        assert "sender" in told
        told = await tools.refusal(
            "quote_gift", product_id=product, delivery={"recipients": [{"email": "a@b.example", "quantitiy": 2}]}
        )
        assert "quantitiy" in told
        told = await tools.refusal("quote_gift", product_id=product, valeu=10, delivery={"code_quantity": 1})
        assert "quote_gift has no argument 'valeu'. It has product_id, delivery, value, country." in told


async def test_wrong_arguments_are_named_in_plain_words(in_process: Any, account: int, product: int) -> None:
    """Without the links and type names of the library that reads them, and without the values."""
    async with in_process() as tools:
        assert await tools.refusal("send") == "send: `quote` is required"
        for limit in (51, "51"):
            assert (
                await tools.refusal("list_orders", limit=limit)
                == "list_orders: `limit` must be less than or equal to 50"
            )
        assert await tools.refusal("list_orders", limit="many") == "list_orders: `limit` must be a valid integer"
        assert (
            await tools.refusal("quote_template", template_id=1, delivery=1)
            == "quote_template: `delivery` must be an object"
        )
        delivery = {
            "recipients": [{"email": "a@b.example", "quantitiy": 2}, {"quantity": 0}],
            "message": "x" * 257,
            "send_at": "2030-01-01T00:00:00",
            "reminder_days": [1, 2, 3, 4],
        }
        told = await tools.refusal("quote_gift", product_id=product, value="a lot", delivery=delivery)
        assert told.splitlines() == [
            "quote_gift: 7 arguments are wrong:",
            "- `delivery.recipients[0].quantitiy` is unknown",
            "- `delivery.recipients[1].email` is required",
            "- `delivery.recipients[1].quantity` must be greater than or equal to 1",
            "- `delivery.message` must have at most 256 characters",
            "- `delivery.send_at` must have an offset, such as 2030-12-24T09:00:00Z",
            "- `delivery.reminder_days` must have at most 3 items",
            "- `value` must be a valid decimal",
        ]


@pytest.mark.parametrize(("setting", "shown"), [("", False), ("no", False), ("yes", True)])
async def test_pins_are_shown_only_when_asked_for(
    in_process: Any, account: int, product: int, setting: str, shown: bool
) -> None:
    async with in_process(LARGESSE_MCP_SHOW_PINS=setting) as tools:
        sent = await tools.call("send", quote=(await _quote(tools, account, product))["quote"])
        read = await tools.call("get_codes", reference=sent["reference"])
        for answer in (sent, read):
            (code,) = answer["codes"]
            assert set(code) - {"pin"} == {"code", "redemptionUrl"}
            assert ("pin" in code) is shown
            assert ('"pin"' in json.dumps(answer)) is shown


async def _quote(tools: Any, account: int, product: int, quantity: int = 1) -> Any:
    delivery = {"code_quantity": quantity, "account_id": account}
    return await tools.call("quote_gift", product_id=product, value=10, delivery=delivery)


# Caps


@pytest.mark.parametrize(("most", "is_sent"), [("20 GBP", True), ("20", True), ("19.99 GBP", False), ("99 EUR", False)])
async def test_one_order_costs_no_more_than_its_cap(
    in_process: Any, largesse: Largesse, account: int, product: int, most: str, is_sent: bool
) -> None:
    before = balance(largesse, account)
    async with in_process(LARGESSE_MCP_MOST_PER_ORDER=most) as tools:
        quoted = await _quote(tools, account, product, 2)
        assert (quoted["notSendable"] is None) is is_sent
        if is_sent:
            await tools.call("send", quote=quoted["quote"])
        else:
            refusal = await tools.refusal("send", quote=quoted["quote"])
            assert "over the cap for one order" in refusal
            assert "LARGESSE_MCP_MOST_PER_ORDER" in refusal
    assert before - balance(largesse, account) == (20 if is_sent else 0)


async def test_the_orders_of_a_day_cost_no_more_than_their_cap(
    in_process: Any, largesse: Largesse, account: int, product: int
) -> None:
    before = balance(largesse, account)
    settings = {"LARGESSE_MCP_MOST_PER_DAY": "30 GBP"}
    async with in_process(**settings) as tools:
        first = (await _quote(tools, account, product, 2))["quote"]
        await tools.call("send", quote=first)
        too_much = await _quote(tools, account, product, 2)
        assert "20.0 GBP after 20.0 GBP today is over the cap for the orders of a day" in too_much["notSendable"]
        assert "placed" not in too_much["notSendable"]
        assert f"{too_much['notSendable']} Nothing was placed." in await tools.refusal("send", quote=too_much["quote"])
        assert (await _quote(tools, account, product))["notSendable"] is None
        await tools.call("send", quote=first)  # the same order again, which costs nothing more
    # A restart does not reset the sum of the day.
    async with in_process(**settings) as tools:
        await tools.call("send", quote=(await _quote(tools, account, product))["quote"])
        assert "20.0 GBP today" not in await tools.refusal(
            "send", quote=(await _quote(tools, account, product))["quote"]
        )
    assert before - balance(largesse, account) == 30


async def test_what_was_refused_counts_for_nothing(
    in_process: Any, largesse: Largesse, account: int, product: int, world: Any
) -> None:
    """The account is emptied between quote and send: the send gets 402, and counts nothing towards the daily cap."""
    async with in_process(LARGESSE_MCP_MOST_PER_DAY="20 GBP") as tools:
        quoted = await _quote(tools, world.group_account, product)
        while balance(largesse, world.group_account) >= 10:
            codes = min(int(balance(largesse, world.group_account) // 10), 1_000)
            largesse.send.gift(product, value=10, code_quantity=codes, account_id=world.group_account)
        assert "holds" in await tools.refusal("send", quote=quoted["quote"])
        await tools.call("send", quote=(await _quote(tools, account, product, 2))["quote"])


async def test_an_order_that_was_placed_counts_where_it_cannot_be_read(
    in_process: Any, largesse: Largesse, account: int, product: int
) -> None:
    """As after a lost answer. The key may not read orders, so the service only says that the reference is used."""
    async with in_process(LARGESSE_MCP_MOST_PER_DAY="20 GBP") as tools:
        quote = (await _quote(tools, account, product, 2))["quote"]
        reference = reference_of(quote)
        largesse.send.gift(product, value=10, code_quantity=1, account_id=account, external_reference=reference)
        assert "differs in" in await tools.refusal("send", quote=quote)
        assert "20.0 GBP today" in await tools.refusal("send", quote=(await _quote(tools, account, product))["quote"])


async def test_a_send_is_repeated_after_a_restart(
    in_process: Any, largesse: Largesse, account: int, product: int
) -> None:
    before = balance(largesse, account)
    async with in_process() as tools:
        quote = (await _quote(tools, account, product))["quote"]
        sent = await tools.call("send", quote=quote)
    async with in_process() as tools:
        assert await tools.call("send", quote=quote) == sent
    assert before - balance(largesse, account) == 10
