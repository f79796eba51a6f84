"""The services that pages alone use: of senders, of recipients and of the back office. They are made once operations are served."""

import msgspec

from largesse.campaigns.visiting import Visiting
from largesse.customers.passkeys import RelyingParty
from largesse.customers.passwords import Passwords
from largesse.customers.security import SecurityService
from largesse.customers.sign_in import SigningIn
from largesse.customers.staff_roles import StaffRight
from largesse.db.pool import Database
from largesse.drafts.service import DraftService
from largesse.fulfilment.gifts import ClaimedGifts
from largesse.fulfilment.vouchers import InventoryProvider, Provider, TestProvider
from largesse.lines.claiming import Claiming, RecipientSlots
from largesse.staff.sign_in import IDLE, StaffSigningIn
from largesse.staff.store import SIGN_IN
from largesse.suppliers.store import begin_buying
from largesse.web.kit.services import Services


class Office(msgspec.Struct, frozen=True):
    """What only the back office uses: connections with a database role of its own, and the sign-in of members of staff."""

    database: Database
    signing_in: StaffSigningIn
    security: SecurityService


class PageServices(Services, frozen=True, kw_only=True):
    """The services that pages use."""

    drafts: DraftService
    claiming: Claiming
    gifts: ClaimedGifts
    visiting: Visiting
    signing_in: SigningIn
    security: SecurityService
    office: Office | None  # None if the database login may not act as the back office's role


def page_services(services: Services, *, makes_vouchers: bool = False) -> PageServices:
    """Returns the services of pages: those of operations, and those that pages alone use.

    Voucher numbers come from stock and suppliers. Test vouchers are made in staging, and with `makes_vouchers` for gifts that are not in stock.
    """
    settings, database, vault, chains = services.settings, services.database, services.vault, services.chains
    url, environment = settings.public_url, settings.environment
    passwords, party = Passwords(), RelyingParty(url)
    mails = settings.smtp_url is not None
    slots = RecipientSlots()
    gifts = ClaimedGifts(database, vault, environment, _provider(services, makes_vouchers=makes_vouchers), slots)
    office = None
    if (own := services.office_database) is not None:
        office = Office(
            own,
            StaffSigningIn(own, vault, chains, passwords, party, allowances=database),
            SecurityService(
                own, vault, passwords, party, mails=False, sql=SIGN_IN, staff=StaffRight.OVERVIEW, idle=IDLE
            ),
        )
    return PageServices(
        **{name: getattr(services, name) for name in Services.__struct_fields__},
        drafts=DraftService(database, services.orders, services.quoter, services.timeouts),
        claiming=Claiming(
            database, vault, environment, gifts, default_expiry_days=settings.default_expiry_days, slots=slots
        ),
        gifts=gifts,
        visiting=Visiting(database, vault, chains, environment, url, slots),
        signing_in=SigningIn(database, vault, chains, passwords, party, environment, mails=mails),
        security=SecurityService(database, vault, passwords, party, mails=mails),
        office=office,
    )


def _provider(services: Services, *, makes_vouchers: bool) -> Provider:
    if services.settings.environment == "staging":
        return TestProvider(services.vault)
    if makes_vouchers:
        return TestProvider(services.vault, InventoryProvider())
    return InventoryProvider(begin_buying)
