"""Ways in which a service may break the contract, each with the check that is meant for it."""

from collections.abc import Callable, Mapping
from typing import Any

from tests.conformance.proxy import Breakage, Message

Ask = Callable[[Message], Message]
SEND = "/send/"


def _change(method: str, path: str, status: int, change: Callable[[Any], Any]) -> Callable[[Message], None]:
    """Changes the JSON of the responses to an operation that have a status."""

    def apply(message: Message) -> None:
        if message.is_(method, path) and message.status == status:
            message.json = change(message.json)

    return apply


def _send(**members: Callable[[dict[str, Any]], Any]) -> Callable[[Message], None]:
    """Changes members of send responses."""
    return _change("POST", SEND, 200, lambda body: body | {name: value(body) for name, value in members.items()})


def _each(path: str, **members: Callable[[dict[str, Any]], Any]) -> Callable[[Message], None]:
    """Changes members of the items of a list."""

    def change(items: Any) -> Any:
        return [item | {name: value(item) for name, value in members.items()} for item in items]

    return _change("GET", path, 200, change)


def _status(method: str, path: str, before: int, after: int) -> Callable[[Message], None]:
    """Turns one status into another."""

    def apply(message: Message) -> None:
        if message.is_(method, path) and message.status == before:
            message.status = after

    return apply


def _body(
    path: str, change: Callable[[dict[str, Any]], dict[str, Any]]
) -> Callable[[Message, Mapping[str, str]], None]:
    """Changes the JSON of POST requests."""

    def apply(message: Message, keys: Mapping[str, str]) -> None:
        if message.is_("POST", path) and message.body.startswith(b"{") and message.body.endswith(b"}"):
            message.json = change(message.json)

    return apply


def _query(path: str, name: str) -> Callable[[Message, Mapping[str, str]], None]:
    """Ignores a query parameter."""

    def apply(message: Message, keys: Mapping[str, str]) -> None:
        if message.is_("GET", path):
            message.query.pop(name, None)

    return apply


def _without(*names: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda body: {name: value for name, value in body.items() if name not in names}


def _as_customer(path: str, whose: str) -> Callable[[Message, Mapping[str, str]], None]:
    """Answers reads of a path with the data of another key."""

    def apply(message: Message, keys: Mapping[str, str]) -> None:
        if message.is_("GET", path) and "Authorization" in message.headers:
            message.headers["Authorization"] = f"Bearer {keys[whose]}"

    return apply


def _twice(message: Message, ask: Ask) -> Message | None:
    """Places each order a second time, without its reference."""
    if not message.is_("POST", SEND) or b"codeQuantity" not in message.body or not message.body.endswith(b"}"):
        return None
    first = ask(message)
    if first.status == 200:
        message.json = _without("externalReference")(message.json)
        ask(message)
    return first


def _earlier_order(message: Message, ask: Ask) -> Message | None:
    """Answers a used reference with the order that has it."""
    if not message.is_("POST", SEND):
        return None
    found = ask(message)
    if found.status != 409:
        return found
    return ask(Message("GET", found.json["instance"], {}, message.headers, b""))


def _quote_that_orders(message: Message, ask: Ask) -> Message | None:
    if message.is_("POST", "/quote/gift"):
        ask(Message("POST", "/send/gift", {}, message.headers, message.body))
    return None


def _forgets_to_end(message: Message, ask: Ask) -> Message | None:
    if message.is_("DELETE", "/webhooks/"):
        return Message("DELETE", message.path, {}, {}, b"", 204)
    return None


def _media_type(message: Message) -> None:
    if message.status >= 400:
        message.headers["Content-Type"] = "application/json"


def _refuses_like_others(message: Message) -> None:
    """Tells another customer's order, which has letters in its reference, from one that does not exist."""
    if message.is_("GET", "/orders/") and message.status == 404 and not message.path.split("/")[2].isdigit():
        message.status = 403


def _not_json(message: Message) -> None:
    if message.is_("GET", "/funding-accounts") and message.status == 200:
        message.body = message.body.replace(b'"balance":', b'"balance":NaN,"was":')


def _echo(message: Message) -> None:
    if message.status == 401:
        message.body = message.body.replace(
            b'"detail":', b'"key":"' + message.headers.get("X-Key", "").encode() + b'","detail":'
        )


def _echo_key(message: Message, ask: Ask) -> Message | None:
    found = ask(message)
    found.headers["X-Key"] = message.headers.get("x-api-key", message.headers.get("X-Api-Key", ""))
    return found


def _remember_secrets() -> tuple[Callable[[Message], None], dict[str, str]]:
    """Adds the secret of each subscription to the list of subscriptions."""
    secrets: dict[str, str] = {}

    def apply(message: Message) -> None:
        if message.is_("POST", "/webhooks") and message.status == 201:
            secrets[message.json["id"]] = message.json["secret"]
        if message.is_("GET", "/webhooks") and message.status == 200:
            message.json = [one | {"secret": secrets.get(one["id"])} for one in message.json]

    return apply, secrets


def _sign_wrongly(message: Message) -> None:
    found = message.headers["X-Service-Signature"]
    message.headers["X-Service-Signature"] = found.upper().replace("SHA256=", "sha256=")


def _payload(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[Message], None]:
    def apply(message: Message) -> None:
        message.json = change(message.json)

    return apply


def _receipt(before: int, after: int) -> Callable[[Message], None]:
    """Takes one answer of the receiver for another."""

    def apply(message: Message) -> None:
        if message.status == before:
            message.status = after

    return apply


def _header(name: str) -> Callable[[Message], None]:
    return lambda message: void(message.headers.pop(name, None))


def void(_: object) -> None:
    pass


BREAKAGES = [
    Breakage("a number as a text", "sending.member_codeCount", response=_send(codeCount=lambda body: str(body["codeCount"]))),
    Breakage("a member that is missing", "sending.member_totalCost", response=_change("POST", SEND, 200, _without("totalCost"))),
    Breakage("a member that is null", "sending.member_recipientCount", response=_send(recipientCount=lambda _: None)),
    Breakage("an amount that was a float", "sending.amounts_fit_the_currency", response=_send(totalCost=lambda body: body["totalCost"] + 0.0000004)),
    Breakage("a wrong total", "sending.mailed_total_cost", response=_send(totalCost=lambda body: body["value"])),
    Breakage("money as a text", "accounts.member_balance", response=_each("/funding-accounts", balance=lambda one: f"{one['balance']:.2f}")),
    Breakage("NaN", "accounts.member_balance", response=_not_json),
    Breakage("an entry that does not add up", "accounts.entries_add_up_to_the_balance", response=_each("/funding-accounts/", amount=lambda one: one["amount"] + 1)),
    Breakage("a fraction where an integer belongs", "products.member_id", response=_each("/products", id=lambda one: one["id"] + 0.5)),
    Breakage("a reference that is forgotten", "idempotency.second_order_is_409", request=_body(SEND, _without("externalReference"))),
    Breakage("200 instead of 409", "idempotency.different_order_is_409", forward=_earlier_order),
    Breakage("409 without the order", "idempotency.names_the_order", response=_change("POST", SEND, 409, lambda body: body | {"instance": None})),
    Breakage("a doubled order", "sending.balance_pays_exactly", forward=_twice),
    Breakage("another customer's orders", "isolation.orders_are_not_listed", request=_as_customer("/orders", "main")),
    Breakage("another customer's templates", "templates.of_one_customer", request=_as_customer("/templates", "main")),
    Breakage("an order for all customers", "isolation.order_of_an_order", request=_as_customer("/orders/", "main")),
    Breakage("403 that gives away an order", "isolation.request_of_an_order", response=_refuses_like_others),
    Breakage("codes for a colleague", "isolation.codes_of_a_colleague", request=_as_customer("/orders/", "main")),
    Breakage("oldest orders first", "orders.newest_first", response=_change("GET", "/orders", 200, lambda items: items[::-1])),
    Breakage("oldest templates first", "templates.newest_first", response=_change("GET", "/templates", 200, lambda items: items[::-1])),
    Breakage("one page for all", "products.pages_make_up_the_list", request=_query("/products", "page")),
    Breakage("a limit that is ignored", "templates.limit_limits", request=_query("/templates", "limit")),
    Breakage("any limit", "orders.limit_51", request=_query("/orders", "limit")),
    Breakage("a keyword that is ignored", "products.keyword_filters_by_name", request=_query("/products", "keyword")),
    Breakage("a currency that is ignored", "products.currency_filters", request=_query("/products", "currency")),
    Breakage("an amount that is ignored", "products.amount_filters", request=_query("/products", "amount")),
    Breakage("choices without decimals", "products.denomination_choices", response=_each("/products", denominationChoices=lambda one: {k.removesuffix(".00"): v for k, v in one["denominationChoices"].items()})),
    Breakage("points that descend", "collections.value_points_ascend", response=_each("/collections", valuePoints=lambda one: one["valuePoints"][::-1])),
    Breakage("an error as plain JSON", "errors.404_media_type", response=_media_type),
    Breakage("an error without a detail", "errors.400_body_members", response=_change("POST", SEND, 400, _without("detail"))),
    Breakage("an error with another status", "errors.404_status", response=_change("GET", "/products/", 404, lambda body: body | {"status": 400})),
    Breakage("403 for an unknown key", "authentication.unknown_key", response=_status("GET", "/me", 401, 403)),
    Breakage("403 for the plan", "authentication.plan_without_the_api", response=_status("GET", "/products", 402, 403)),
    Breakage("the key in an error", "authentication.key_is_not_echoed", forward=_echo_key, response=_echo),
    Breakage("400 for the balance", "sending.insufficient_balance", response=_status("POST", SEND, 402, 400)),
    Breakage("a text that is cut", "bodies.from_name_33", request=_body(SEND, lambda body: body | {"fromName": str(body.get("fromName") or "")[:32]})),
    Breakage("a text as a number", "bodies.value_text", request=_body(SEND, lambda body: body | {"value": float(body["value"])} if isinstance(body.get("value"), str) else body)),
    Breakage("the past as now", "bodies.send_at_past", request=_body(SEND, _without("sendAt"))),
    Breakage("a schedule that is not confirmed", "sending.scheduled_for", response=_send(scheduledFor=lambda _: None)),
    Breakage("codes of a mailed order", "sending.mailed_returns_no_codes", response=_send(codes=lambda body: body["codes"] or [{"code": "1", "pin": "2", "redemptionUrl": "https://a.example"}])),
    Breakage("a code twice", "sending.codes_are_different", response=_send(codes=lambda body: [body["codes"][0]] * len(body["codes"]) if body["codes"] else [])),
    Breakage("recipients counted twice", "sending.recipients_are_counted_once", response=_send(recipientCount=lambda body: body["codeCount"])),
    Breakage("a source as it was typed", "orders.source_is_normalised", response=_each("/orders", sourceType=lambda _: "Conformance  Suite #1!")),
    Breakage("another service account", "orders.created_by", response=_each("/orders", createdBy=lambda one: one["createdBy"] + 1)),
    Breakage("a quote that orders", "quotes.places_and_charges_nothing", forward=_quote_that_orders),
    Breakage("a plain target", "webhooks.target_http", request=_body("/webhooks", lambda body: body | {"targetUrl": str(body.get("targetUrl")).replace("http:", "https:")})),
    Breakage("a target without a check", "webhooks.target_private_10", request=_body("/webhooks", lambda body: body | {"targetUrl": "https://hooks.example.com"})),
    Breakage("a subscription that goes on", "webhooks.ended", forward=_forgets_to_end),
    Breakage("secrets in the list", "webhooks.secret_is_shown_once", response=_remember_secrets()[0]),
    Breakage("an unknown event", "webhooks.event_unknown", request=_body("/webhooks", lambda body: body | {"event": "order.created"})),
    Breakage("a health without a version", "authentication.health_needs_no_key", response=_change("GET", "/health", 200, _without("version"))),
]  # fmt: skip

DELIVERIES = [
    Breakage("a signature in upper case", "delivery.signature", delivery=_sign_wrongly),
    Breakage("a body changed after signing", "delivery.standard_signature", delivery=_payload(lambda body: body | {"more": 1})),
    Breakage("a delivery without its event", "delivery.event_header", delivery=_header("X-Service-Event")),
    Breakage("a payload without a member", "delivery.member_lineCount", delivery=_payload(_without("lineCount"))),
    Breakage("another payload than the record", "delivery.payload_is_the_record", delivery=_payload(lambda body: body | {"value": 1})),
    Breakage("codes in a payload", "delivery.payload_has_no_codes", delivery=_payload(lambda body: body | {"codes": []})),
    Breakage("no retry after 500", "delivery.retried_after_error", receipt=_receipt(500, 204)),
    Breakage("no retry after 429", "delivery.retried_after_busy", receipt=_receipt(429, 400)),
    Breakage("a retry after 400", "delivery.dropped_after_4xx", receipt=_receipt(400, 500)),
    Breakage("a subscription that outlives 410", "delivery.ended_after_410", receipt=_receipt(410, 204)),
]  # fmt: skip
