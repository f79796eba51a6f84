"""What the audit log keeps: every act by name, each with what it means."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

ACTS: Mapping[str, str] = MappingProxyType(
    {
        "account.assigned": "it was said which funding accounts a service account, or a person, may use",
        "account.topped_up": "a funding account was credited",
        "codes.read": "the codes of an order were given out again",
        "collection.changed": "a collection of one's own was changed",
        "collection.created": "a collection of one's own was made",
        "collection.removed": "a collection of one's own was removed",
        "key.created": "an API key was made",
        "key.deleted": "an API key was deleted",
        "key.narrowed": "it was said what an API key is for, and from where it may be used",
        "ledger.chained": "entries of before there were chains were chained",
        "mail.requeued": "mail that was given up or held was made due again",
        "order.cancelled": "codes of an order were voided and refunded",
        "order.readdressed": "a recipient's address was corrected, and the mail sent there",
        "order.resent": "a recipient's mail was asked for again",
        "people.second_step_required": "whether everybody needs a second step was decided",
        "person.invited": "somebody was invited, or invited again",
        "person.joined": "somebody took an invitation up",
        "person.passkey_added": "somebody set up a passkey as a second step",
        "person.passkey_removed": "a passkey was removed",
        "person.password_chosen": "somebody chose a new password",
        "person.removed": "somebody's place was taken away",
        "person.reset": "a link for a new password was made",
        "person.role_changed": "somebody was given another role",
        "person.second_step_off": "a second step was turned off",
        "person.second_step_on": "somebody set up a second step",
        "person.signed_in": "somebody signed in",
        "privacy.erased": "what was held about a recipient was erased",
        "privacy.exported": "what is held about a recipient was exported",
        "receivable.settled": "a payment of an invoiced customer was recorded",
        "reports.rebuilt": "what people list, search and add up was made anew from the orders",
        "secrets.resealed": "what is sealed was brought under the newest master key",
        "service_account.created": "a service account was made",
        "service_account.limited": "it was said what a service account may order",
        "service_account.switched": "a service account was switched on or off",
        "shipments.exported": "parcels were handed to whoever packs them, with names and addresses",
        "shipments.imported": "parcels were said to be on their way",
        "stock.imported": "voucher numbers were added to the stock",
        "template.changed": "a template was changed",
        "template.created": "a template was made",
        "template.removed": "a template was removed",
        "top_up.cancelled": "a top-up that waited was cancelled",
        "top_up.confirmed": "the money of a top-up came, and its account was credited",
        "top_up.requested": "a top-up of a funding account was asked for",
        "webhook.created": "a subscription was made",
        "webhook.deleted": "a subscription was deleted",
        "webhook.redelivered": "deliveries of a subscription were asked for again",
        "world.loaded": "a world file was loaded",
    }
)
