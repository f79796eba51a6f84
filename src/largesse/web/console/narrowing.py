"""The part of a form that says what an API key is for, and from where it may be used."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence

from largesse.base.i18n.templates import text
from largesse.base.settings import Network
from largesse.identity.narrowing import MOST_NETWORKS, SCOPES, parse_network, scopes_kept
from largesse.web.console.visit import Visit

# What a key may be for, as the form says it.
NAMES = {
    "read": text("Look: the catalogue, accounts, orders and how they are doing"),
    "send": text("Send: orders and quotes, cancelling, mail once more"),
    "codes": text("Codes: codes and PINs in what it is told"),
    "webhooks": text("Webhooks: subscriptions and their deliveries"),
}
MOST_TYPED = 5_000
_SHOWN_WRONG = 5
_BETWEEN = re.compile(r"[\s,;]+")
_NO_SCOPE = text("Choose at least one thing that it is for.")
_UNKNOWN_SCOPE = text("Choose one of those offered.")
_NO_NETWORK = text(
    "No network: %(found)s. Write one address, such as 192.0.2.7, or a range, such as 198.51.100.0/24."
)
_TOO_MANY = text("At most %(most)s networks are allowed.")


def read_scopes(visit: Visit) -> list[str] | None:
    """What the key is to be for; None: everything. What is wrong is noted in the form."""
    given = visit.form.all("scope")
    if not given:
        visit.form.error("scope", visit.say(_NO_SCOPE))
    elif not set(given) <= set(SCOPES):
        visit.form.error("scope", visit.say(_UNKNOWN_SCOPE))
    return scopes_kept(given)


def read_networks(visit: Visit) -> list[Network] | None:
    """The networks that the key may be used from, in any order; None: everywhere. All that are wrong are noted in the form."""
    found: dict[Network, None] = {}
    wrong = []
    for typed in _BETWEEN.split(visit.form.text("networks", MOST_TYPED, required=False, lines=True)):
        try:
            if typed:
                found[parse_network(typed)] = None
        except ValueError:
            wrong.append(_meant(typed))
    if wrong:
        visit.form.error("networks", visit.say(_NO_NETWORK, found=", ".join(wrong[:_SHOWN_WRONG])))
    elif len(found) > MOST_NETWORKS:
        visit.form.error("networks", visit.say(_TOO_MANY, most=MOST_NETWORKS))
    return list(found) or None


def networks_typed(networks: Sequence[Network] | None) -> str:
    """Networks as they are typed: one a line, an address without what makes it a network."""
    return "\n".join(
        str(one.network_address) if one.num_addresses == 1 else str(one) for one in networks or ()
    )


def _meant(typed: str) -> str:
    """What was typed, and the range it is in where it names an address within one."""
    try:
        return f"{typed[:50]} ({ipaddress.ip_network(typed, strict=False)}?)"
    except ValueError:
        return typed[:50]
