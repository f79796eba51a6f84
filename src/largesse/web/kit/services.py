"""What everything under `web` works with."""

from __future__ import annotations

from dataclasses import dataclass, field

from largesse.base.patience import Patience
from largesse.base.settings import Settings
from largesse.base.slices import Slices
from largesse.base.turns import Turns
from largesse.base.vault import Vault
from largesse.catalogue.cache import Catalogue
from largesse.chains.keys import Chains
from largesse.database.pool import Database
from largesse.delivery.webhooks.resolver import Resolver
from largesse.delivery.webhooks.throttle import DeliveryThrottle
from largesse.drafts.desk import Desk
from largesse.fulfilment.gifts import ClaimedGifts
from largesse.identity.keys import Authenticator
from largesse.lines.claiming import Claiming
from largesse.orders.listing import OrderLists
from largesse.orders.quoting import Quoter
from largesse.orders.sending import Intake
from largesse.people.signing_in import SigningIn
from largesse.web.kit.body_memory import BodyMemory


@dataclass(frozen=True, slots=True)
class Services:
    """What operations and pages work with; made once, in `largesse.main`."""

    settings: Settings
    database: Database
    vault: Vault
    chains: Chains
    catalogue: Catalogue
    authenticator: Authenticator
    intake: Intake
    quoter: Quoter
    drafts: Desk
    order_lists: OrderLists
    claiming: Claiming
    gifts: ClaimedGifts
    signing_in: SigningIn
    resolver: Resolver
    delivery_throttle: DeliveryThrottle
    captures: bool  # mail of production, too, as the demo does; staging's always is
    patience: Patience
    # For transactions of requests: some of the pool's connections, so that those who read find one.
    writing_turns: Turns[int]
    # For bodies: how they are parsed, and how many bytes of them are held.
    slices: Slices = field(default_factory=Slices)
    body_memory: BodyMemory = field(default_factory=BodyMemory)
