"""The operations, which are defined once for both clients."""

from largesse_client.resources.account import FundingAccounts, Users
from largesse_client.resources.catalogue import Collections, Products, Templates, Wrappings
from largesse_client.resources.contacts import Contacts
from largesse_client.resources.events import Events
from largesse_client.resources.orders import Orders
from largesse_client.resources.sending import Quoting, Sending
from largesse_client.resources.webhooks import Webhooks

__all__ = [
    "Collections",
    "Contacts",
    "Events",
    "FundingAccounts",
    "Orders",
    "Products",
    "Quoting",
    "Sending",
    "Templates",
    "Users",
    "Webhooks",
    "Wrappings",
]
