"""What a described supplier is asked and how its answers are read, byte for byte over loopback."""

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from tests.suppliers.server import ENVIRON, KEY, SECRET, SupplierServer, describe
from tests.webhooks.conftest import no_names
from tests.webhooks.test_channel import Script

from largesse.base.errors import OperatorError
from largesse.suppliers import model
from largesse.suppliers.description import Description, OpenSupplier, open_supplier, read_descriptions

LINE = model.SupplierLine("our-id", "coffee", 10_50, "GBP", "GB")
OURS = {"id": "our-id", "status": "done"}
VOUCHER = {"code": "V-1", "pin": "99"}


def answer(content: Any, status: str = "200 OK") -> bytes:
    """An answer of HTTP with that content."""
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (status.encode(), len(body), body)


def delivered(**cost: Any) -> bytes:
    return answer({"order": OURS, "voucher": VOUCHER, "cost": cost})


@asynccontextmanager
async def answering(*answers: bytes, **options: Any) -> AsyncIterator[tuple[OpenSupplier, Script]]:
    """A supplier whose server gives those answers, one after the other. The `options` are some of its description's."""
    script = Script([[one, None] for one in answers])
    async with await asyncio.start_server(script.handle, "127.0.0.1", 0) as server:
        script.port = server.sockets[0].getsockname()[1]
        described = describe("cards", SupplierServer(url=f"http://127.0.0.1:{script.port}"), timeout_s=5.0)
        described["options"] |= options
        supplier = open_supplier(msgspec.convert(described, Description), no_names, ENVIRON)
        try:
            yield supplier, script
        finally:
            await supplier.close()


async def asked(call: str, *answers: bytes, line: model.SupplierLine = LINE, **options: Any) -> Any:
    """What a call returns; the error of one without a clear answer, and whether it arrived."""
    async with answering(*answers, **options) as (supplier, script):
        try:
            found = await getattr(supplier.supplier, call)(line)
        except model.SupplierFailed as failed:
            found = failed.error, failed.arrived
        assert len(script.requests) == len(answers)
        return found


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (delivered(), model.Bought("our-id", "V-1", "99")),
        (answer({"order": {**OURS, "status": "working"}}), model.Pending()),
        (answer({}, "404 Not Found"), model.Unknown()),
        (answer(b"<html>", "404 Not Found"), model.Unknown()),
        (answer({}, "422 No"), model.Refused()),
        (answer({"order": OURS, "voucher": None}), model.Bought("our-id", "")),
        (answer({"order": OURS, "voucher": {"code": 17}}), model.Bought("our-id", "")),
        # No clear answer, so that the order is asked for again.
        (answer({"order": {**OURS, "status": "odd"}}), ("unknown_status", True)),
        (answer({"order": {**OURS, "status": True}}), ("unknown_status", True)),
        (answer([]), ("unknown_status", True)),
        (answer({"order": OURS}, "500 After it was bought"), ("status_500", True)),
        (answer({"order": OURS}, "401 No"), ("status_401", True)),
        (answer({"order": OURS}, "302 Found\r\nLocation: /orders/other"), ("status_302", True)),
        (answer(b"<html>"), ("bad_answer", True)),
        (answer(b"", "204 No Content"), ("bad_answer", True)),
        (answer(b"[" * 200_000), ("bad_answer", True)),
        (answer(b'"' + b"x" * 2_000_000 + b'"'), ("bad_answer", True)),
        (delivered()[:-5], ("bad_answer", True)),
        (b"HTTP/1.1 200", ("connection_lost", True)),
        (b"", ("connection_lost", True)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("call", ["order", "poll", "cancel"])
async def test_what_an_answer_means(call: str, said: bytes, expected: Any) -> None:
    assert await asked(call, said) == expected


@pytest.mark.parametrize("status", ["working", "cancelled", "sold_out", "gone", "too_late"])
async def test_an_answer_about_another_order_is_none(status: str) -> None:
    """A refusal of another order would have this one bought elsewhere, though the supplier delivers it."""
    words = {"sold_out": "refused", "gone": "unknown", "too_late": "not_cancellable"}
    statuses = {"done": "delivered", "working": "pending", "cancelled": "cancelled", **words}
    for call in ("poll", "cancel"):
        foreign = answer({"order": {"id": "another", "status": status}})
        assert await asked(call, foreign, statuses=statuses) == ("foreign_answer", True)
        unnamed = answer({"order": {"status": status}})
        assert not isinstance(await asked(call, unnamed, statuses=statuses), tuple)


async def test_a_status_of_http_needs_no_content() -> None:
    words = {204: "cancelled", 202: "pending"}
    assert await asked("cancel", answer(b"", "204 No Content"), http_statuses=words) == model.Cancelled()
    assert await asked("poll", answer(b"queued", "202 Accepted"), http_statuses=words) == model.Pending()


@pytest.mark.parametrize(
    ("amounts", "minor", "currency", "cost"),
    [
        ("minor", 900, "GBP", 900),
        ("minor", "900", "GBP", 900),
        ("minor", 900, "JPY", 900),
        ("minor", 900.5, "GBP", 900),
        ("minor", 0, "GBP", 0),
        ("major", 9, "GBP", 900),
        ("major", "9.05", "GBP", 905),
        ("major", 9.055, "GBP", 906),
        ("major", 900, "JPY", 900),
        ("major", "1.234", "KWD", 1234),
        ("major", -1, "GBP", None),
        ("major", "nine", "GBP", None),
        ("major", "NaN", "GBP", None),
        ("major", "1E+999999", "GBP", None),
        ("major", True, "GBP", None),
        ("major", [9], "GBP", None),
        ("major", 900, "jpy", 900),
        ("major", 9, None, None),
    ],
)
async def test_a_cost_is_read_in_its_currency(amounts: str, minor: Any, currency: str | None, cost: int | None) -> None:
    found = await asked("poll", delivered(**{"minor": minor, "in": currency}), amounts=amounts)
    if cost is None:
        assert found == ("malformed_voucher", True)
    else:
        assert currency is not None
        assert (found.cost_minor, found.cost_currency) == (cost, currency.upper())


@pytest.mark.parametrize(
    ("worth", "is_ours"),
    [
        ({"amount": "10.50", "in": "GBP"}, True),
        ({"amount": 10.5, "in": "gbp"}, True),
        ({"amount": 10.49, "in": "GBP"}, False),
        ({"amount": 1050, "in": "GBP"}, False),
        ({"amount": 10.5, "in": "EUR"}, False),
        ({"amount": 10.5}, False),
        ({"in": "GBP"}, False),
    ],
)
async def test_a_voucher_of_another_value_is_refused(worth: dict[str, Any], is_ours: bool) -> None:
    paths = {"id": "order.id", "status": "order.status", "number": "voucher.code", "value": "worth.amount"}
    content = answer({"order": OURS, "voucher": VOUCHER, "worth": worth})
    for more in ({"currency": "worth.in"}, {}):
        found = await asked("poll", content, answer=paths | more, amounts="major")
        bought = is_ours if more else worth.get("amount") in {"10.50", 10.5}
        assert found == (model.Bought("our-id", "V-1") if bought else ("other_value", True))


@pytest.mark.parametrize(
    ("voucher", "pin"),
    [({"pin": "0042"}, "0042"), ({"pin": ""}, None), ({"pin": None}, None), ({}, None), ({"pin": 42}, 0), ({"pin": ["42"]}, 0), ({"ends": 1893456000}, 0)],
)  # fmt: skip
async def test_a_voucher_has_its_pin_or_is_refused(voucher: dict[str, Any], pin: Any) -> None:
    """Vouchers whose PIN was a number were handed out without it."""
    paths = {"id": "order.id", "status": "order.status", "number": "voucher.code", "pin": "voucher.pin"}
    content = {"order": OURS, "voucher": {"code": "V-1", **voucher}}
    found = await asked("poll", answer(content), answer=paths | {"use_by": "voucher.ends"})
    assert found == (("malformed_voucher", True) if pin == 0 else model.Bought("our-id", "V-1", pin))


@pytest.mark.parametrize(
    ("said", "use_by"),
    [("2040-02-29", date(2040, 2, 29)), ("2040-02-29T23:59:59Z", date(2040, 2, 29)), ("", None), ("0000-00-00 00:00:00", None), (None, None), ("soon", 0)],
)  # fmt: skip
async def test_a_voucher_has_its_last_day(said: str | None, use_by: Any) -> None:
    paths = {"id": "order.id", "status": "order.status", "number": "voucher.0.code", "use_by": "voucher.0.ends"}
    content = {"order": OURS, "voucher": [{"code": "V-1", "ends": said}, {"code": "V-2"}]}
    found = await asked("poll", answer(content), answer=paths)
    assert found == (("malformed_voucher", True) if use_by == 0 else model.Bought("our-id", "V-1", None, use_by))


async def test_what_is_sent_is_signed_and_filled_in() -> None:
    order = {
        "method": "PUT",
        "path": "/{country}/{sku}?for={recipient_email}",
        "body": {"list": ["{id}", {"worth": "{value} {currency}"}], "amount": "{value_minor}", "fixed": 7},
    }
    sign = {
        "header": "X-Sign", "secret": "signing", "over": "{method}|{path}|{body}|{timestamp}", "prefix": "v1=",
        "timestamp_header": "X-Time",
    }  # fmt: skip
    line = replace(LINE, product="a/b", recipient_email="ada&x@example.com")
    async with answering(answer({}, "422 No"), order=order, sign=sign) as (supplier, script):
        assert supplier.supplier.needs_recipient
        assert await supplier.supplier.order(line) == model.Refused()
    head, _, body = script.requests[0].partition(b"\r\n\r\n")
    request, *lines = head.decode().split("\r\n")
    headers = dict(one.split(": ", 1) for one in lines)
    path = "/GB/a%2Fb?for=ada%26x%40example.com"
    assert request == f"PUT {path} HTTP/1.1"
    assert json.loads(body) == {"list": ["our-id", {"worth": "10.50 GBP"}], "amount": 1050, "fixed": 7}
    signed = b"PUT|%b|%b|%b" % (path.encode(), body, headers["X-Time"].encode())
    assert headers["X-Sign"] == "v1=" + hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
    assert (headers["Authorization"], headers["Content-Type"]) == (f"Bearer {KEY}", "application/json")
    assert KEY not in repr(supplier) + repr(supplier.supplier)


async def test_a_product_that_is_not_listed_is_not_asked_for() -> None:
    assert await asked("order", products={"tea": "SKU-2"}) == model.Refused()
    async with answering(answer({}, "422 No"), products={"coffee": "SKU-1"}) as (supplier, script):
        await supplier.supplier.order(LINE)
    assert json.loads(script.requests[0].partition(b"\r\n\r\n")[2])["sku"] == "SKU-1"


ITEM = {"sku": "S", "title": "T", "cur": "GBP", "sold_in": ["GB"], "amounts": [5, "7.50"]}


async def test_what_a_supplier_sells_and_what_is_left_there() -> None:
    async def of(call: str, content: Any, **options: Any) -> Any:
        async with answering(answer(content), **options) as (supplier, _):
            try:
                return await getattr(supplier.supplier, call)()
            except model.SupplierFailed as failed:
                return failed.error

    assert await of("catalogue", {"items": [ITEM]}, amounts="major") == [
        model.Offer("S", "T", "GBP", ("GB",), ("5", "7.50"))
    ]
    for currency, written in (("GBP", "5.00"), ("gbp", "5.00"), ("JPY", "500.00"), ("KWD", "0.50")):
        [offer] = await of("catalogue", {"items": [{**ITEM, "cur": currency, "amounts": [500, "500"]}]})
        assert offer.amounts == (written, written), currency
    assert await of("catalogue", {"items": [{**ITEM, "amounts": [None]}]}) == "bad_answer"
    assert len(await of("catalogue", {"items": [ITEM] * 10_000})) == 10_000
    assert await of("catalogue", {"items": [ITEM] * 10_001}) == "bad_answer"
    for wrong in ({"items": {}}, {"items": [1]}, *({"items": [{**ITEM, name: 1}]} for name in ITEM)):
        assert await of("catalogue", wrong) == "bad_answer"
    assert await of("balance", {"left": 1250, "cur": "GBP"}) == model.Balance(1250, "GBP")
    assert await of("balance", {"left": "12.50", "cur": "GBP"}, amounts="major") == model.Balance(1250, "GBP")
    assert await of("balance", {"left": 1250, "cur": "jpy"}, amounts="major") == model.Balance(1250, "JPY")
    assert await of("balance", {"cur": "GBP"}) == "bad_answer"
    assert await of("balance", {"left": 1}) == "malformed_voucher"
    async with answering(catalogue=None, balance=None, cancel=None) as (supplier, _):
        assert (await supplier.supplier.catalogue(), await supplier.supplier.balance()) == ([], None)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"url": "ftp://x"}, "url must be"),
        ({"url": "https://x/"}, "url must be"),
        ({"poll": {"path": "/{order}"}}, "poll has the unknown placeholder {order}"),
        ({"cancel": {"path": "/", "body": {"a": ["{b}"]}}}, "cancel has the unknown placeholder {b}"),
        ({"balance": {"path": "/{id}", "amount": "a", "currency": "c"}}, "balance has the unknown placeholder {id}"),
        ({"headers": {"A": "{key}"}}, "headers.A has the unknown placeholder {key}"),
        ({"headers": {"A": "{secrets.other}"}}, "headers.A has the unknown placeholder {secrets.other}"),
        ({"headers": {"A b": "x"}}, "headers.A b must be"),
        ({"headers": {"A": "x\ny"}}, "headers.A must be"),
        ({"sign": {"header": "S", "secret": "other"}}, "sign.secret is none of the secrets"),
        ({"statuses": {"done": "bought"}}, "Invalid enum value 'bought'"),
        ({"http_statuses": {500: "unknown"}}, "<= 499"),
        ({"more": 1}, "unknown field `more`"),
    ],
)
async def test_options_that_cannot_be_used_are_named(options: dict[str, Any], said: str) -> None:
    with pytest.raises(OperatorError, match="supplier cards: options: ") as refused:
        async with answering(**options):
            pass
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("environ", "secrets"),
    [
        ({"SUPPLIER_KEY": KEY}, {}),
        ({"SUPPLIER_KEY": KEY, "SUPPLIER_SIGNING": " \n"}, {}),
        ({"SUPPLIER_KEY": KEY, "SUPPLIER_SIGNING": f"{SECRET}\n{SECRET}"}, {}),
        ({"SUPPLIER_KEY": KEY}, {"signing": {"file": "/does/not/exist"}}),
        (ENVIRON, {"signing": {"env": "SUPPLIER_SIGNING", "file": "/x"}}),
        (ENVIRON, {"signing": {}}),
    ],
)
async def test_a_secret_that_is_missing_is_named_by_its_place(environ: dict[str, str], secrets: Any) -> None:
    described = describe("cards", SupplierServer(url="http://127.0.0.1:9"))
    described["secrets"] |= secrets
    with pytest.raises(OperatorError, match=r"supplier cards: secrets\.signing") as refused:
        open_supplier(msgspec.convert(described, Description), no_names, environ)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "one.yaml cannot be read: No such file"),
        ("name: cards\n" + "#" * 262_144, "one.yaml must have at most 256 KiB"),
        ("name: [", "one.yaml is not YAML"),
        ("[" * 100_000, "one.yaml is nested too deeply"),
        ("[]", "one.yaml: Expected `object`"),
        ("name: Cards", "one.yaml: name must have 1 to 40 lower-case letters"),
        ("name: stock", "must not be `stock`"),
        ("name: cards\nmore: 1", "unknown field `more`"),
        ("name: cards\nat_once: 65", "<= 64"),
        ("name: cards\ntimeout_s: 60.1", "<= 60.0"),
        ("name: cards\nattempts: 0", ">= 1"),
        ("name: cards\nallowed_networks: [10.0.0.1/8]", "has host bits set"),
    ],
)
def test_a_description_that_cannot_be_used_is_named(tmp_path: Path, content: str | None, said: str) -> None:
    path = tmp_path / "one.yaml"
    if content is not None:
        path.write_text(content)
    with pytest.raises(OperatorError, match="LARGESSE_SUPPLIERS: ") as refused:
        read_descriptions([path])
    assert said in str(refused.value)


def test_each_supplier_is_described_once(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.yaml" for number in range(51)]
    for number, path in enumerate(paths):
        path.write_text(f"name: cards-{number}\nat_once: 64\ntimeout_s: 60")
    assert [one.name for one in read_descriptions(paths[:50])] == [f"cards-{number}" for number in range(50)]
    with pytest.raises(OperatorError, match="at most 50 files"):
        read_descriptions(paths)
    with pytest.raises(OperatorError, match="names two suppliers 'cards-1'"):
        read_descriptions([paths[1], paths[0], paths[1]])
