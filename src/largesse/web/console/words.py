"""Names of stored values, and explanations of the words of pages. The help page lists them, and a "?" beside the first use of a word opens its explanation."""

from typing import NamedTuple

from largesse.base.i18n.languages import text


class Names(dict[str, str]):
    """Names by value, as `text` marks them."""

    def __missing__(self, value: str) -> str:
        return value


class StateNames(dict[str, tuple[str, str]]):
    """The kind of each state, such as `good`, by which it is coloured, and its name."""

    def __missing__(self, value: str) -> tuple[str, str]:
        return "still", value


class Word(NamedTuple):
    """A word of the pages, and its explanation."""

    name: str
    meaning: str


# By key. Templates use the key, and it is the anchor on the help page.
WORDS = {
    "claim": Word(
        text("Claim"),
        text("What recipients do with their code and PIN: they open the gift, and from then on it is theirs."),
    ),
    "code": Word(
        text("Code and PIN"),
        text("A code is for one gift. Anybody with the code and its PIN can claim the gift, so treat both like money."),
    ),
    "reference": Word(
        text("Reference"),
        text(
            "Identifies an order. Largesse gives each order one. You can add a reference of your own, such as a purchase "
            "order number; it can be used once, so that nothing is sent twice."
        ),
    ),
    "source": Word(
        text("Source"),
        text(
            "What placed an order: a person on these pages, a file, or a program. A program can name a source of its own, its "
            "reporting token, to compare its orders in reports."
        ),
    ),
    "template": Word(text("Template"), text("A gift with its message and wrapping, saved to be sent again.")),
    "collection": Word(text("Collection"), text("Several gifts of one value. Each recipient chooses one of them.")),
    "wrapping": Word(
        text("Wrapping"), text("How the gift looks in the mail and on its page before it is opened. It costs nothing.")
    ),
    "contact": Word(
        text("Contact"),
        text(
            "Somebody who gets gifts from you, with address, birthday and groups. Sends and automations take their recipients from your contacts."
        ),
    ),
    "automation": Word(
        text("Automation"),
        text(
            "Sends a gift by itself on a day of each contact, such as the birthday. If a gift cannot be sent, it tries again for three days."
        ),
    ),
    "budget": Word(
        text("Budget"),
        text(
            "The most that people, a role, a service account or a funding account may spend in a month, in a quarter or in all. A refund gives it back."
        ),
    ),
    "approval": Word(
        text("Approval"),
        text("A send that matches a rule waits until somebody else approves it. Nothing is sent or charged before."),
    ),
    "campaign": Word(
        text("Campaign"),
        text(
            "A link for many people, such as visitors of an event. Each proves an e-mail address and gets one gift, until all are taken."
        ),
    ),
    "claim-by": Word(
        text("Claim-by date"),
        text("The last day on which recipients can claim. Unclaimed gifts are then cancelled and refunded in full."),
    ),
    "account": Word(
        text("Funding account"),
        text("Holds the money that orders are paid from, in one currency. You top it up by bank transfer."),
    ),
    "top-up": Word(
        text("Top-up"),
        text(
            "Money that you transfer to a funding account. The transfer names the reference of the top-up, and the balance "
            "grows once the money arrives."
        ),
    ),
    "test-mode": Word(
        text("Test mode"), text("The same pages and API with money and gifts of its own. Nothing is sent or charged.")
    ),
    "service-account": Word(
        text("Service account"),
        text(
            "A program of yours that sends gifts, such as an HR system. Its orders carry its name. It has its own limits, "
            "and you can switch it off."
        ),
    ),
    "key": Word(
        text("API key"),
        text(
            "The secret that a program sends with each request to the API. It belongs to a service account, and to live or "
            "to test mode."
        ),
    ),
    "scope": Word(
        text("Scopes"),
        text(
            "What a key may do: read, send, codes, webhooks. Give a program only what it needs, so that a lost key does less "
            "harm."
        ),
    ),
    "network": Word(
        text("Allowed networks"),
        text(
            "The addresses that a key may be used from. Requests from elsewhere are refused, even with the right secret."
        ),
    ),
    "webhook": Word(
        text("Webhook"),
        text("An address of your program. Largesse sends events there, such as a new order, as they happen."),
    ),
    "event": Word(
        text("Event"), text("Something that happened, such as a placed order or a claimed gift. Each kind has a name.")
    ),
    "role": Word(
        text("Role"),
        text(
            "Administrators can do everything. Members send gifts and see their own orders. Finance sees all orders and moves "
            "money. Viewers see all orders, balances and statements."
        ),
    ),
    "statement": Word(
        text("Statement"),
        text(
            "Each entry of an account in a month, with the balance after it. Verify shows that none was changed later."
        ),
    ),
    "second-step": Word(
        text("Second step"),
        text(
            "A code from an app, or a passkey, that you need besides your password. Protects your account if somebody learns "
            "your password."
        ),
    ),
}
