"""All pages of a serving process. They need twice the modules that the API needs, so `main` imports this once the API answers."""

from collections.abc import Sequence

from starlette.routing import BaseRoute

from largesse.base.i18n.languages import LANGUAGES
from largesse.base.i18n.templates import CATALOGUES, translations
from largesse.web.claim.pages import claim_pages
from largesse.web.console.guard import console_pages
from largesse.web.console.layout import Layout
from largesse.web.docs.pages import DocsPages
from largesse.web.kit.asgi import InBrowser
from largesse.web.kit.assets import picture_routes
from largesse.web.kit.page_services import page_services
from largesse.web.kit.services import Services
from largesse.web.mailbox.pages import mailbox_pages
from largesse.web.office.context import OfficeLayout
from largesse.web.office.guard import office_pages


def load_texts() -> None:
    """Reads the texts of the pages in all languages. Otherwise the first page in each language stops the process, and orders beside it, for 0.1 s."""
    for tag in LANGUAGES:
        for catalogues in (CATALOGUES, Layout.catalogues, OfficeLayout.catalogues):
            translations(tag, catalogues)


def all_pages(
    operations: Services, *, is_demo: bool, has_mailbox: bool, listens_on: str
) -> tuple[Sequence[BaseRoute], InBrowser]:
    """Returns the routes of all pages, and how errors that no page shows look in a browser. `operations` are the services that operations use already.

    In a demo, gifts that are not in stock get a test voucher in production too. With `has_mailbox` the captured mailbox is among the pages;
    `listens_on` is one of its hosts.
    """
    services = page_services(operations, makes_vouchers=is_demo)
    docs = DocsPages(services.settings, has_mailbox=has_mailbox)
    routes = [
        *docs.routes(),
        *claim_pages(services),
        *console_pages(services),
        *office_pages(services),
        *picture_routes(services),
        *(mailbox_pages(services, listens_on) if has_mailbox else ()),
    ]
    return routes, docs.in_browser
