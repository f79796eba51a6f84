"""What everything under `web` works with."""

from __future__ import annotations

from dataclasses import dataclass, field

from largesse.base.cooperative import CooperativeRunner
from largesse.base.fair_turns import FairTurns
from largesse.base.settings import Settings
from largesse.base.timeouts import Timeouts
from largesse.catalogue.cache import Catalogue
from largesse.customers.authenticator import Authenticator
from largesse.customers.security import SecurityService
from largesse.customers.sign_in import SigningIn
from largesse.db.pool import Database
from largesse.drafts.service import DraftService
from largesse.encryption.chain_keys import Chains
from largesse.encryption.vault import Vault
from largesse.fulfilment.gifts import ClaimedGifts
from largesse.lines.claiming import Claiming
from largesse.orders.listing import OrderLists
from largesse.orders.quoter import Quoter
from largesse.orders.service import OrderService
from largesse.web.kit.body import BodyMemory
from largesse.webhooks.resolver import Resolver
from largesse.webhooks.subscriptions import DeliveryThrottle


@dataclass(frozen=True, slots=True)
class Services:
    """What operations and pages work with; made once, in `largesse.main`."""

    settings: Settings
    database: Database
    vault: Vault
    chains: Chains
    catalogue: Catalogue
    authenticator: Authenticator
    orders: OrderService
    quoter: Quoter
    drafts: DraftService
    order_lists: OrderLists
    claiming: Claiming
    gifts: ClaimedGifts
    signing_in: SigningIn
    security: SecurityService
    resolver: Resolver
    delivery_throttle: DeliveryThrottle
    captures: bool  # mail of production, too, as the demo does; staging's always is
    timeouts: Timeouts
    # For transactions of requests: some of the pool's connections, so that those who read find one.
    writing_turns: FairTurns[int]
    # For bodies: how they are parsed, and how many bytes of them are held.
    cooperative: CooperativeRunner = field(default_factory=CooperativeRunner)
    body_memory: BodyMemory = field(default_factory=BodyMemory)
