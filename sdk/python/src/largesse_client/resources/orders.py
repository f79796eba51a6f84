"""Orders that were placed."""

from __future__ import annotations

from collections.abc import Sequence

from largesse_client import arguments
from largesse_client.binding import M, Resource, listing, operation
from largesse_client.calls import Call, Pages, Query, by_offset, get, pages, post
from largesse_client.models import Cancellation, Order, OrderRecord, OrderRequest, RecipientDelivery

_MAX_PAGE = 50


class Orders(Resource[M]):
    """Orders that were placed."""

    @listing
    def list(self, *, after: int = 0, page_size: int = _MAX_PAGE) -> Pages[OrderRecord]:
        """Returns all orders after the one with that `id`, oldest first. If you go on after the last `id`, you miss none."""

        def then(query: Query, page: Sequence[OrderRecord]) -> Query:
            return {**query, "after": page[-1].id}

        start = arguments.number("after", after, least=0)
        size = arguments.number("page_size", page_size, most=_MAX_PAGE)
        return pages("/orders", OrderRecord, {"after": start}, size, then)

    @operation
    def newest(self, *, limit: int = 10, external_reference: str | None = None) -> Call[tuple[OrderRecord, ...]]:
        """Returns the newest orders, newest first; at most 50. With an `external_reference`, returns the order that has it, or none."""
        query: Query = {"limit": arguments.number("limit", limit, most=_MAX_PAGE)}
        if external_reference is not None:
            query = {**query, "externalReference": arguments.text("external_reference", external_reference, 128)}
        return get("/orders", tuple[OrderRecord, ...], query)

    @operation
    def get(self, reference: str) -> Call[Order]:
        """Returns the response to the send again, with the codes of a batch. Each reading of codes is recorded."""
        return get(_path(reference), Order)

    @operation
    def request(self, reference: str) -> Call[OrderRequest]:
        """Returns the request of an order, without codes."""
        return get(f"{_path(reference)}/request", OrderRequest)

    @operation
    def cancel(self, reference: str) -> Call[Cancellation]:
        """Voids and refunds the codes that nobody has claimed. Repeating it changes nothing."""
        return post(f"{_path(reference)}/cancel", Cancellation, is_repeatable=True)

    @operation
    def resend(self, reference: str, email: str, *, resends: int | None = None) -> Call[RecipientDelivery]:
        """Mails a recipient's codes once more.

        With `resends`, from the recipient's delivery, a request without an answer is repeated: the mail is sent once. Without it, the request is
        never repeated automatically, as each would send another mail.
        """
        body: dict[str, object] = {"email": arguments.text("email", email, 254, is_required=True)}
        if resends is not None:
            body["resends"] = arguments.number("resends", resends, least=0)
        return post(f"{_path(reference)}/resend", RecipientDelivery, body, is_repeatable=resends is not None)

    @listing
    def deliveries(self, reference: str, *, page_size: int = 100) -> Pages[RecipientDelivery]:
        """Returns the state of each recipient's mail and codes."""
        size = arguments.number("page_size", page_size, most=arguments.MAX_PAGE)
        return by_offset(f"{_path(reference)}/deliveries", RecipientDelivery, size)


def _path(reference: str) -> str:
    return f"/orders/{arguments.order_reference('reference', reference)}"
