"""Renders templates as pages: in the language of the request, with the menu for the role, and in the time zone of the person."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from enum import Enum
from functools import cache, lru_cache
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import jinja2
import msgspec
from babel.dates import format_datetime, format_time, format_timedelta
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import Response

from largesse.base import clock
from largesse.base.i18n.languages import DEFAULT, LANGUAGES, Language, chosen_language
from largesse.base.i18n.templates import translations
from largesse.base.settings import Settings
from largesse.base.text import browser_and_system
from largesse.base.zones import in_zone, known_zones
from largesse.customers.sessions import Person, SignedIn
from largesse.customers.staff_roles import StaffMember
from largesse.mail.people import automation_words
from largesse.web.console.page_routes import Group, PageRoute
from largesse.web.console.words import WORDS, Word
from largesse.web.kit.assets import Assets, icon
from largesse.web.kit.pages import LongTexts, page_templates, public_path, qr_code
from largesse.web.kit.security import OF_FORMS
from largesse.web.kit.sessions import page_cookies, read_cookie

HERE = Path(__file__).parent
TEMPLATES = HERE / "templates"
CATALOGUES = HERE / "locale"
SESSION = "session"  # the session cookie
FORMS = "forms"  # the cookie that form tokens are bound to without a session, or after it ended
DEVICE = "device"  # the cookie by which a browser is recognised
NARROW_MENU = "largesse_menu"  # a cookie that console.js sets, so that the menu stays as the person left it
BROWSER_ZONE = "largesse_zone"  # a cookie that console.js sets to the browser's time zone
_PLACES = frozenset(
    ("Africa", "America", "Antarctica", "Arctic", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific")
)
_RELATIVE_UP_TO = timedelta(days=1)


class MenuItem(msgspec.Struct, frozen=True):
    """A page in the menu."""

    title: str
    path: str
    icon: str
    is_current: bool


class Layout:
    """The layout of all pages. The back office has a subclass."""

    root = "/app"
    guide = ""  # the page of the documentation about pages that `GUIDES` does not name
    name = "Largesse"  # the name in page titles when there is no customer
    groups: type[Enum] = Group
    templates: tuple[Path, ...] = (TEMPLATES,)
    catalogues: tuple[Path, ...] = (automation_words.CATALOGUES, CATALOGUES)
    asset_folders: tuple[Path, ...] = (HERE / "assets",)
    sheets: tuple[str, ...] = ("wrappings.css", "console.css", "gifts.css", "send.css", "orders.css", "search.css")
    words: Mapping[str, Word] = WORDS
    role_names: Mapping[str, str] = {}  # shown below the person's name; if empty, live or test mode is shown

    def __init__(self, settings: Settings, routes: Sequence[PageRoute]) -> None:
        self.base = public_path(settings.public_url)
        self.docs_url = settings.docs_url
        staging = settings.public_url_of("staging")
        self._staging_base = self.base if staging == settings.public_url else staging
        self.page_cookies = page_cookies(settings.public_url, self.base, self.root)
        self.assets = Assets(self.asset_folders, f"{self.root}/assets")
        self.routes = routes

    def language(self, request: Request, session: SignedIn | None) -> Language:
        """Returns the language of a page: the person's, otherwise the best that their browser accepts."""
        chosen = session.language if session else None
        return chosen_language(None, chosen, request.headers.get("accept-language", "")) or DEFAULT

    def say(self, language: Language, english: str, **values: object) -> str:
        """Returns a text in a language, with its values. If a value is Markup, the text is escaped and Markup too."""
        said = translations(language.tag, self.catalogues).gettext(english)
        if any(isinstance(value, Markup) for value in values.values()):
            said = escape(said)
        return said % values if values else said

    def ngettext(self, language: Language, singular: str, plural: str, count: int, **values: object) -> str:
        """Returns the singular or plural of a text in a language."""
        said = translations(language.tag, self.catalogues).ngettext(singular, plural, count)
        return said % {"count": language.number(count), **values}

    def page(
        self, template: str, language: Language, zone: tzinfo, values: Mapping[str, Any], *, status: int = 200
    ) -> Response:
        """Returns the page of a template in a language and a time zone. `PageContext` has the values that each page needs."""
        long_texts = LongTexts()
        shown = {
            "base": self.base,
            "site": self.root,
            "sheets": self.sheets,
            "docs_url": self.docs_url,
            "language": language,
            "languages": LANGUAGES.values(),
            "asset": self.asset,
            "icon": icon,
            "in_pieces": long_texts.mark,
            "amount": language.amount,
            "zone": str(zone),
            "meanings": self.words,
            "ago": lambda at: _ago(at, language, zone),
            "moment": lambda at: _time(at, language, zone, moment_of(at, language, zone)),
            "day_and_time": lambda at: _day_and_time(at, language, zone),
            **values,
        }
        response = long_texts.page(
            _templates(self.templates, self.catalogues, language.tag).get_template(template).render(shown),
            OF_FORMS,
            status=status,
        )
        response.headers["Content-Language"] = language.tag
        response.headers["Vary"] = "Accept-Language, Cookie"
        return response

    def reference(self, *, is_staging: bool) -> str:
        """Returns the address of the API's reference. The reference of staging includes the test lab."""
        return f"{self._staging_base if is_staging else self.base}/docs"

    def menu(
        self, language: Language, person: Person | StaffMember | None, path: str
    ) -> list[tuple[str, list[MenuItem]]]:
        """Returns the pages that the role may open, by group."""
        if person is None:
            return []
        routes = [one for one in self.routes if one.group and one.title and person.role in one.roles]
        current = max((one.path for one in routes if _is_within(path, one.path, self.root)), key=len, default="")
        groups = [
            (
                self.say(language, group.value),
                [
                    MenuItem(self.say(language, one.title or ""), self.base + one.path, one.icon, one.path == current)
                    for one in routes
                    if one.group is group
                ],
            )
            for group in self.groups
        ]
        return [(name, items) for name, items in groups if items]

    def asset(self, name: str) -> str:
        """Returns the address of an asset."""
        return self.base + self.assets.address_of(name)


def _initials(name: str) -> str:
    """Returns the first letters of the first and the last word of a name, for a person's round badge."""
    words = name.split()
    return "".join(word[0] for word in (words[:1] + words[1:][-1:])).upper()


def _address(address: str) -> Markup:
    """Returns a web or mail address with line breaks allowed after punctuation, not inside a word."""
    parts = re.split(r"(?<=[/.@?&=_-])(?=[^/.@?&=_-])", address)
    return Markup("<wbr>").join(parts)


def _is_within(path: str, page: str, root: str) -> bool:
    """Returns whether a path belongs to a page of the menu. All paths are below `root`."""
    return path == page or (page != root and path.startswith(f"{page}/"))


# A list shows up to three times in each row. Without the cache, formatting them took a quarter of the page's processor time.
@lru_cache(maxsize=10_000)
def moment_of(at: datetime, language: Language, zone: tzinfo) -> str:
    """Returns an instant with seconds, in a language and a time zone."""
    return language.as_written(format_datetime(in_zone(at, zone), "medium", tzinfo=zone, locale=language.locale))


def _ago(at: datetime | None, language: Language, zone: tzinfo) -> Markup:
    """Returns how long ago an instant was, or its date if that is more than a day."""
    if at is None:
        return Markup("\N{EN DASH}")
    passed = clock.now() - at
    if timedelta() <= passed < _RELATIVE_UP_TO:
        shown = str(format_timedelta(-passed, add_direction=True, locale=language.locale))
    else:
        local, today = in_zone(at, zone), clock.now().astimezone(zone)
        shown = language.short_day(local, with_year=local.year != today.year)
    return _time(at, language, zone, shown)


@lru_cache(maxsize=10_000)
def short_time(at: datetime, language: Language, zone: tzinfo) -> str:
    """Returns an instant in short form: `20 Nov 2026, 09:00`."""
    local = in_zone(at, zone)
    return f"{language.short_day(local)}, {format_time(local, 'short', tzinfo=zone, locale=language.locale)}"


def _day_and_time(at: datetime, language: Language, zone: tzinfo) -> Markup:
    """Returns `short_time` with the full instant and its zone in a tooltip."""
    return _time(at, language, zone, short_time(at, language, zone))


@lru_cache(maxsize=10_000)
def _time(at: datetime, language: Language, zone: tzinfo, shown: str) -> Markup:
    return Markup('<time datetime="{}" title="{} {}">{}</time>').format(
        at.isoformat(timespec="seconds"), moment_of(at, language, zone), zone, shown
    )


@cache
def _templates(folders: tuple[Path, ...], catalogues: tuple[Path, ...], tag: str) -> jinja2.Environment:
    return page_templates(
        folders, tag, catalogues, address=_address, browser=browser_and_system, initials=_initials, qr_code=qr_code
    )


def zone_of(request: Request, session: SignedIn | None) -> tzinfo:
    """Returns the time zone of the pages. UTC if neither the person nor the browser names a zone that this machine knows."""
    chosen = session.zone if session else None
    try:
        return ZoneInfo(chosen) if chosen else ZoneInfo(browser_zone(request) or "UTC")
    except ZoneInfoNotFoundError:
        return UTC


def browser_zone(request: Request) -> str:
    """Returns the time zone that the browser named; empty if this machine does not know it, or there is none."""
    given = read_cookie(request, BROWSER_ZONE)
    return given if given in known_zones() else ""


def is_zone_unknown(request: Request, session: SignedIn | None) -> bool:
    """Returns whether neither the person nor the browser named a time zone. The page then asks the person."""
    return session is not None and not session.zone and not browser_zone(request)


def zone_choices(chosen: str) -> list[str]:
    """Returns the zones to choose from: those with the name of a region, and the chosen one."""
    return sorted({*(name for name in known_zones() if name.partition("/")[0] in _PLACES), chosen} - {"", "UTC"})
