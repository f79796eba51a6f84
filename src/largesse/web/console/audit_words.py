"""The texts of the audit log: a sentence for each act, and a label for each member of a change.

In a sentence, `who` is the actor and `what` the subject. `old_NAME` and `new_NAME` are the values of the member NAME before and after the
act. The page does not repeat a member below a sentence that names it.
"""

from collections.abc import Mapping

from largesse.base.i18n.languages import text

SENTENCES: Mapping[str, str] = {
    "account.assigned": text("%(who)s changed which accounts %(what)s can use"),
    "account.closed": text("%(who)s closed the account %(what)s"),
    "account.created": text("%(who)s created the account %(new_name)s"),
    "account.opened": text("%(who)s reopened the account %(what)s"),
    "account.renamed": text("%(who)s renamed the account %(old_name)s to %(new_name)s"),
    "account.topped_up": text("%(who)s credited the account %(what)s"),
    "account.watched": text("%(who)s changed the low balance warning of %(what)s"),
    "clock.advanced": text("%(who)s advanced the test clock"),
    "approval.asked": text("%(who)s asked for approval of %(what)s"),
    "approval.declined": text("%(who)s declined %(what)s"),
    "approval.given": text("%(who)s approved %(what)s"),
    "approval.withdrawn": text("%(who)s withdrew %(what)s"),
    "approval_rule.created": text("%(who)s set the approval rule %(new_name)s"),
    "approval_rule.ended": text("%(who)s ended the approval rule %(old_name)s"),
    "automation.approved": text("%(who)s approved the automation %(new_name)s"),
    "automation.changed": text("%(who)s changed the automation %(new_name)s"),
    "automation.created": text("%(who)s set the automation %(new_name)s"),
    "automation.ended": text("%(who)s ended the automation %(old_name)s"),
    "automation.paused": text("%(who)s paused the automation %(new_name)s"),
    "automation.resumed": text("%(who)s resumed the automation %(new_name)s"),
    "automation.skipped": text("%(who)s skipped a gift of %(what)s"),
    "automation.unskipped": text("%(who)s no longer skips a gift of %(what)s"),
    "brand.changed": text("%(who)s changed the branding"),
    "budget.changed": text("%(who)s changed the budget %(what)s"),
    "budget.created": text("%(who)s set the budget %(new_name)s"),
    "budget.ended": text("%(who)s ended the budget %(old_name)s"),
    "campaign.changed": text("%(who)s changed the campaign %(new_name)s"),
    "campaign.closed": text("%(who)s ended the campaign %(old_name)s"),
    "campaign.created": text("%(who)s created the campaign %(new_name)s"),
    "campaign.paused": text("%(who)s paused the campaign %(new_name)s"),
    "campaign.refunded": text("%(who)s refunded unclaimed gifts of the campaign %(new_name)s"),
    "campaign.resumed": text("%(who)s resumed the campaign %(new_name)s"),
    "codes.read": text("%(who)s viewed the codes of %(what)s"),
    "collection.changed": text("%(who)s changed the collection %(what)s"),
    "collection.created": text("%(who)s created the collection %(new_name)s"),
    "collection.removed": text("%(who)s removed the collection %(old_name)s"),
    "contact.changed": text("%(who)s changed the contact %(what)s"),
    "contact.created": text("%(who)s created the contact %(what)s"),
    "contact.removed": text("%(who)s deleted contacts"),
    "contact_field.created": text("%(who)s defined the contact field %(new_name)s"),
    "contact_field.removed": text("%(who)s deleted the contact field %(old_name)s"),
    "contact_field.renamed": text("%(who)s renamed the contact field %(old_name)s to %(new_name)s"),
    "contact_group.created": text("%(who)s created the contact group %(new_name)s"),
    "contact_group.removed": text("%(who)s deleted the contact group %(old_name)s"),
    "contact_group.renamed": text("%(who)s renamed the contact group %(old_name)s to %(new_name)s"),
    "contacts.imported": text("%(who)s imported contacts"),
    "correction.approved": text("%(who)s approved a correction of %(new_amount_minor)s for %(new_account_id)s"),
    "correction.declined": text("%(who)s declined a correction of %(new_amount_minor)s for %(new_account_id)s"),
    "correction.proposed": text("%(who)s proposed a correction of %(new_amount_minor)s for %(new_account_id)s"),
    "correction.withdrawn": text("%(who)s withdrew a correction of %(new_amount_minor)s for %(new_account_id)s"),
    "customer.changed": text("%(who)s changed the company"),
    "customer.created": text("%(who)s created the company"),
    "customer.seen_as": text("%(who)s saw these pages as you see them"),
    "file.exported": text("%(who)s downloaded %(what)s"),
    "gift.viewed": text("%(who)s looked at a gift of %(what)s"),
    "key.created": text("%(who)s created the API key %(new_name)s"),
    "key.deleted": text("%(who)s deleted the API key %(old_name)s"),
    "key.narrowed": text("%(who)s changed the scopes or networks of the API key %(what)s"),
    "mail.requeued": text("%(who)s sent mail again that had not left"),
    "order.cancelled": text("%(who)s cancelled the unclaimed codes of %(what)s"),
    "order.claim_by_moved": text(
        "%(who)s moved the claim-by date of %(what)s from %(old_claim_by)s to %(new_claim_by)s"
    ),
    "order.lapsed": text("%(who)s cancelled and refunded codes of %(what)s that nobody had claimed in time"),
    "order.readdressed": text("%(who)s corrected a recipient's address in %(what)s"),
    "order.rescheduled": text("%(who)s moved %(what)s from %(old_scheduled_for)s to %(new_scheduled_for)s"),
    "order.resent": text("%(who)s sent mail of %(what)s again"),
    "parcel.again": text("%(who)s sends the returned %(what)s again"),
    "parcel.corrected": text("%(who)s corrected the tracking number of %(what)s"),
    "parcel.returned": text("%(who)s recorded the return of %(what)s"),
    "people.second_step_required": text("%(who)s changed whether everybody needs a second step"),
    "person.invited": text("%(who)s invited %(what)s"),
    "person.joined": text("%(who)s accepted the invitation"),
    "person.passkey_added": text("%(who)s added the passkey %(new_name)s"),
    "person.passkey_removed": text("%(who)s removed the passkey %(old_name)s"),
    "person.password_chosen": text("%(who)s chose a new password"),
    "person.recovery_codes": text("%(who)s created new recovery codes"),
    "person.removed": text("%(who)s removed %(what)s"),
    "person.renamed": text("%(who)s changed their name from %(old_name)s to %(new_name)s"),
    "person.reset": text("%(who)s created a link for a new password for %(what)s"),
    "person.role_changed": text("%(who)s changed the role of %(what)s from %(old_role)s to %(new_role)s"),
    "person.second_step_off": text("%(who)s turned off the authenticator app"),
    "person.second_step_on": text("%(who)s set up the authenticator app"),
    "person.signed_in": text("%(who)s signed in"),
    "privacy.erased": text("%(who)s erased the data of a recipient"),
    "privacy.exported": text("%(who)s exported the data of a recipient"),
    "receivable.settled": text("%(who)s recorded a payment"),
    "sends.confirmed_above": text("%(who)s changed the amount above which people confirm who they are"),
    "sends.followed_up": text("%(who)s changed what happens to gifts that nobody claims"),
    "sends.notes": text("%(who)s changed whether recipients may write thank-you notes"),
    "service_account.created": text("%(who)s created the service account %(new_name)s"),
    "service_account.limited": text("%(who)s changed the limits of the service account %(what)s"),
    "service_account.switched": text("%(who)s switched the service account %(what)s on or off"),
    "shipments.exported": text("%(who)s exported parcels to send"),
    "shipments.imported": text("%(who)s recorded parcels as shipped"),
    "template.changed": text("%(who)s changed the template %(what)s"),
    "template.created": text("%(who)s created the template %(new_name)s"),
    "template.removed": text("%(who)s removed the template %(old_name)s"),
    "top_up.cancelled": text("%(who)s cancelled the top-up of %(new_amount_minor)s for %(new_account_id)s"),
    "top_up.confirmed": text("%(who)s confirmed the top-up of %(new_credited_minor)s for %(new_account_id)s"),
    "top_up.requested": text("%(who)s requested a top-up of %(new_amount_minor)s for %(new_account_id)s"),
    "transfer.made": text("%(who)s moved %(new_amount_minor)s from %(new_from_account_id)s to %(new_to_account_id)s"),
    "webhook.created": text("%(who)s added the webhook %(new_target_url)s"),
    "webhook.deleted": text("%(who)s removed the webhook %(what)s"),
    "webhook.secret_rotated": text("%(who)s rotated the secret of the webhook %(what)s"),
    "webhook.redelivered": text("%(who)s delivered events to %(what)s again"),
    "wrapping.added": text("%(who)s added the wrapping %(new_name)s"),
    "wrapping.removed": text("%(who)s removed the wrapping %(old_name)s"),
}
# The labels of members. A member without a label only appears in the details.
LABELS: Mapping[str, str] = {
    "accounts": text("Accounts"),
    "above": text("Amount"),  # only in entries of earlier releases
    "above_minor": text("Amount"),
    "active": text("Switched on"),
    "amount_minor": text("Amount"),
    "balance_minor": text("Balance"),
    "below": text("Warn below"),
    "below_minor": text("Warn below"),
    "cancelled": text("Codes"),
    "changed": text("Changed"),
    "contacts": text("Contacts"),
    "claim_by_days": text("Days until the claim-by date"),
    "reminder_days": text("Reminders, in days after sending"),
    "country": text("Country"),
    "created": text("Added"),
    "credited_minor": text("Credited"),
    "currency": text("Currency"),
    "daily": text("Per day"),  # only in entries of earlier releases
    "daily_minor": text("Per day"),
    "deliveries": text("Deliveries"),
    "event": text("Event"),
    "events": text("Events"),
    "fields": text("Fields"),
    "for": text("Scopes"),  # only in entries of earlier releases
    "from": text("Allowed networks"),  # only in entries of earlier releases
    "funding": text("Payment"),
    "gift": text("Gift"),
    "limit": text("Limit"),  # only in entries of earlier releases
    "limit_minor": text("Limit"),
    "largest_order": text("Per order"),  # only in entries of earlier releases
    "largest_order_minor": text("Per order"),
    "lines": text("Codes"),
    "name": text("Name"),
    "networks": text("Allowed networks"),
    "of": text("Of"),
    "of_api": text("Orders through the API"),
    "order": text("Order"),
    "orders": text("Orders"),
    "owed_minor": text("Amount due"),
    "parcels": text("Parcels"),
    "people": text("People"),
    "per_gift": text("Per gift"),  # only in entries of earlier releases
    "per_gift_minor": text("Per gift"),
    "period": text("Period"),
    "plan": text("Plan"),
    "products": text("Gifts"),
    "recipients": text("Recipients"),
    "reason": text("Reason"),
    "reference": text("Reference"),
    "refunded_minor": text("Refunded"),
    "replaces": text("Replaces"),
    "required": text("Required"),
    "role": text("Role"),
    "scopes": text("Scopes"),
    "seconds": text("Seconds"),
    "service_account": text("Service account"),
    "shipped": text("Parcels"),
    "state": text("State"),
    "total": text("Total"),  # only in entries of earlier releases
    "total_minor": text("Total"),
    "rules": text("Rules"),
    "needed": text("Approvals"),
    "until": text("Until"),
    "user_ids": text("People who are notified"),
    "value": text("Amount"),
}
# For each member that can be unlimited: the value that means unlimited, and its text. In other members, null means none.
NOTHING = (None, text("None"))
UNLIMITED: Mapping[str, tuple[str | None, str]] = {
    "scopes": (None, text("Everything")),
    "networks": (None, text("Every network")),
    "for": ("everything", text("Everything")),  # only in entries of earlier releases
    "from": ("everywhere", text("Every network")),  # only in entries of earlier releases
}
# The kinds of acts by which the log can be filtered: an icon, a name, and the prefixes of the acts.
KINDS: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "people": (
        "users",
        text("People and roles"),
        ("person.invited", "person.joined", "person.removed", "person.renamed", "person.role", "people."),
    ),
    "signing-in": ("log-in", text("Signing in"), ("person.",)),
    "orders": (
        "package",
        text("Orders"),
        ("order.", "codes.", "mail.", "shipments.", "clock.", "approval.", "gift.", "parcel."),
    ),
    "money": (
        "wallet",
        text("Money"),
        ("account.", "top_up.", "transfer.", "correction.", "receivable.", "sends.", "budget."),
    ),
    "templates": ("layout-template", text("Templates and collections"), ("template.", "collection.")),
    "contacts": ("contact", text("Contacts"), ("contact.", "contacts.", "contact_group.", "contact_field.")),
    "keys": ("key-round", text("API keys and service accounts"), ("key.", "service_account.")),
    "webhooks": ("webhook", text("Webhooks"), ("webhook.",)),
    "data": ("file-down", text("Downloads and personal data"), ("file.", "privacy.", "customer.seen_as")),
    "company": (
        "building-2",
        text("Company"),
        ("customer.", "approval_rule.", "automation.", "campaign.", "brand.", "wrapping."),
    ),
}


def kind_of(act: str) -> str:
    """Returns the first kind that matches an act."""
    return next((kind for kind, (_, _, starts) in KINDS.items() if act.startswith(starts)), "company")


def acts_of(kind: str) -> list[str]:
    """Returns the acts of a kind; empty for an unknown kind."""
    return sorted(act for act in SENTENCES if kind_of(act) == kind)
