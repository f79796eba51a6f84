"""The services that operations and pages use."""

import msgspec

from largesse.base.cooperative import CooperativeRunner, FairTurns
from largesse.base.settings import Settings
from largesse.base.timeouts import Timeouts
from largesse.catalogue.cache import Catalogue
from largesse.customers.authenticator import Authenticator
from largesse.db.pool import Database
from largesse.encryption.chain_keys import Chains
from largesse.encryption.vault import Vault
from largesse.orders.listing import OrderLists
from largesse.orders.quoter import Quoter
from largesse.orders.service import OrderService
from largesse.request_log.service import RequestLog
from largesse.web.kit.body import BodyMemory
from largesse.webhooks.resolver import Resolver
from largesse.webhooks.service import DeliveryThrottle


class Services(msgspec.Struct, frozen=True):
    """The services that operations and pages use. `largesse.main` makes them once."""

    settings: Settings
    database: Database
    vault: Vault
    chains: Chains
    catalogue: Catalogue
    authenticator: Authenticator
    request_log: RequestLog
    orders: OrderService
    quoter: Quoter
    order_lists: OrderLists
    office_database: Database | None  # None if the database login may not act as the back office's role
    resolver: Resolver
    delivery_throttle: DeliveryThrottle
    captures: bool  # whether mail of production is captured, as in the demo; staging always captures
    timeouts: Timeouts
    # Transactions that write get only some of the pool's connections, so that reads find one.
    writing_turns: FairTurns[int]
    # Parses long bodies with pauses, and counts the memory that bodies take.
    cooperative: CooperativeRunner = msgspec.field(default_factory=CooperativeRunner)
    body_memory: BodyMemory = msgspec.field(default_factory=BodyMemory)
    # Forms of one person are handled two at once; further ones wait. So a person who posts without a pause slows down nobody else.
    form_turns: FairTurns[tuple[str, int]] = msgspec.field(
        default_factory=lambda: FairTurns(at_once=4_000, each=2, max_waiting=1_000)
    )
