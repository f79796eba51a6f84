"""Operations on a customer's brand."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from largesse.base.email import EmailError, pasted_email
from largesse.base.errors import existing
from largesse.base.text import free_key, unfit
from largesse.branding import model, store
from largesse.catalogue.pictures import Picture, PictureRefused, read_picture
from largesse.customers import customer_store
from largesse.customers.actor import Actor, Transaction, require_same
from largesse.customers.roles import Right
from largesse.db.pool import Connection
from largesse.orders.options import ALIASES, WRAPPINGS

Read = TypeVar("Read")
MOST_PICTURES = 30  # pictures stored per customer, in addition to those in use


class BrandContent(msgspec.Struct, frozen=True):
    """The typed values of a brand. Empty texts mean none."""

    colour: str = ""
    sender_name: str = ""
    reply_to: str = ""
    subject: str = ""
    footer: str = ""


class WrappingContent(msgspec.Struct, frozen=True):
    """The typed values of an own wrapping. `picture` is an uploaded file; empty for a pattern."""

    name: str
    pattern: str
    paper: str
    ribbon: str
    picture: bytes = b""


async def read_brand(connection: Connection, customer_id: int) -> model.Brand:
    """Returns a customer's brand; an empty one if it has none."""
    return (await store.read_brands(connection, [customer_id])).get(customer_id, model.NO_BRAND)


async def set_brand(actor: Actor, content: BrandContent, seen: model.Brand | None = None) -> model.Brand:
    """Saves the texts and the colour of a brand. Raises BrandFault with all faults, and ReadAgain if the brand is not `seen` any more."""
    read = _Reader()
    typed = model.Brand(
        colour=read.part(_colour, "colour", content.colour) if content.colour.strip() else None,
        sender_name=read.part(_text, "sender_name", content.sender_name, model.MOST_SENDER_NAME),
        reply_to=read.part(_email, content.reply_to),
        subject=read.part(_subject, content.subject),
        footer=read.part(partial(_text, line_breaks=True), "footer", content.footer, model.MOST_FOOTER),
    )
    read.end()
    async with actor.transaction(Right.SETTINGS) as transaction:
        before = await _locked(transaction)
        require_same(seen, before)
        brand = replace(typed, logo=before.logo, wrappings=before.wrappings, company=before.company)
        await _save(transaction, before, brand)
    return brand


async def set_logo(actor: Actor, content: bytes) -> None:
    """Saves the logo of a brand, the content of a file. An empty one removes the logo. Raises BrandFault."""
    logo = _read_picture("logo", content)
    async with actor.transaction(Right.SETTINGS) as transaction:
        before = await _locked(transaction)
        brand = replace(before, logo=logo.name if logo else None)
        if logo:
            await _save_picture(transaction, logo, brand)
        await _save(transaction, before, brand)


async def add_wrapping(actor: Actor, content: WrappingContent) -> model.OwnWrapping:
    """Adds an own wrapping, with a key made from its name. Raises BrandFault with all faults."""
    read = _Reader()
    name = read.part(_text, "name", content.name, model.MOST_WRAPPING_NAME)
    paper, ribbon = read.part(_colour, "paper", content.paper), read.part(_colour, "ribbon", content.ribbon)
    picture = read.part(_read_picture, "picture", content.picture)
    if name is None:
        read.faults.setdefault("name", "must not be empty")
    if content.pattern not in model.PATTERNS:
        read.faults["pattern"] = f"must be one of {', '.join(model.PATTERNS)}"
    read.end()
    assert name is not None, "nothing is wrong"
    assert paper is not None, "nothing is wrong"
    assert ribbon is not None, "nothing is wrong"
    async with actor.transaction(Right.SETTINGS) as transaction:
        brand = await _locked(transaction)
        if len(brand.wrappings) >= model.MOST_WRAPPINGS:
            raise model.BrandFault(
                name=f"cannot be added: a customer has at most {model.MOST_WRAPPINGS} wrappings of its own"
            )
        if name.casefold() in {one.name.casefold() for one in brand.wrappings}:
            raise model.BrandFault(name="is the name of another wrapping")
        key = free_key(name, {*WRAPPINGS, *ALIASES, *(one.key for one in brand.wrappings)}, "own")
        wrapping = model.OwnWrapping(key, name, content.pattern, paper, ribbon, picture.name if picture else None)
        await store.add_wrapping(transaction.connection, actor.customer_id, wrapping)
        if picture:
            own = replace(brand, wrappings=[*brand.wrappings, wrapping])
            await _save_picture(transaction, picture, own)
        await transaction.record("wrapping.added", f"wrapping {key}", after=_audited(wrapping, _PARTS_OF_WRAPPING))
    return wrapping


async def remove_wrapping(actor: Actor, key: str) -> None:
    """Deletes an own wrapping. Its orders have the default wrapping from then on. Raises NotFound."""
    async with actor.transaction(Right.SETTINGS) as transaction:
        wrapping = existing((await _locked(transaction)).wrapping(key), "There is no such wrapping.")
        await transaction.connection.execute(store.REMOVE_WRAPPING, actor.customer_id, key)
        await transaction.record("wrapping.removed", f"wrapping {key}", before=_audited(wrapping, _PARTS_OF_WRAPPING))


async def _locked(transaction: Transaction) -> model.Brand:
    """Returns and locks the brand of the actor's customer. Makes an empty one if there is none."""
    connection, customer_id = transaction.connection, transaction.actor.customer_id
    await customer_store.lock_customer(connection, customer_id)
    brand = (await store.read_brands(connection, [customer_id])).get(customer_id)
    if brand is None:
        await store.save_brand(connection, customer_id, model.NO_BRAND)
    return brand or model.NO_BRAND


async def _save(transaction: Transaction, before: model.Brand, brand: model.Brand) -> None:
    if brand == before:
        return
    customer_id = transaction.actor.customer_id
    await store.save_brand(transaction.connection, customer_id, brand)
    subject = f"customer {customer_id}"
    await transaction.record("brand.changed", subject, before=_audited(before, _PARTS), after=_audited(brand, _PARTS))


async def _save_picture(transaction: Transaction, picture: Picture, brand: model.Brand) -> None:
    used = [name for name in (brand.logo, *(one.picture for one in brand.wrappings)) if name]
    await store.add_picture(
        transaction.connection,
        transaction.actor.customer_id,
        picture.name,
        picture.content,
        used=used,
        most=MOST_PICTURES,
    )


class _Reader:
    """Reads the parts of a form, and collects their faults."""

    def __init__(self) -> None:
        self.faults: dict[str, str] = {}

    def part(self, read: Callable[..., Read], *given: object) -> Read | None:
        """Returns the result of `read` for a part. Returns None if the part has a fault."""
        try:
            return read(*given)
        except model.BrandFault as fault:
            self.faults |= fault.parts
            return None

    def end(self) -> None:
        """Raises BrandFault if there were faults."""
        if self.faults:
            raise model.BrandFault(**self.faults)


def _fault(part: str, detail: str) -> model.BrandFault:
    return model.BrandFault(**{part: detail})


def _subject(typed: str) -> str | None:
    subject = _text("subject", typed, model.MOST_SUBJECT)
    model.check_subject(subject or "")
    return subject


def _read_picture(part: str, content: bytes) -> Picture | None:
    if not content:
        return None
    try:
        picture = read_picture(content)
    except PictureRefused as refusal:
        raise _fault(part, str(refusal)) from None
    if picture.name.endswith(".webp"):
        raise _fault(part, "must be a PNG or JPEG file: some mail programs do not show WebP")
    return picture


def _colour(part: str, typed: str) -> str:
    colour = model.read_colour(typed)
    if colour is None:
        raise _fault(part, "must be a colour of three or six hexadecimal digits, such as #17605b")
    return colour


def _email(typed: str) -> str | None:
    if not typed.strip():
        return None
    try:
        email = pasted_email(typed)
    except EmailError:
        raise model.BrandFault(reply_to="must be an e-mail address") from None
    # RFC 6532: mail with such a header can only be sent to addresses of the same kind.
    if not email.rpartition("@")[0].isascii():
        raise model.BrandFault(reply_to="must have only ASCII characters before the @")
    return email


def _text(part: str, typed: str, most: int, *, line_breaks: bool = False) -> str | None:
    text = typed.replace("\r\n", "\n").strip()
    if len(text) > most:
        raise _fault(part, f"must have at most {most} characters, and has {len(text)}")
    if found := unfit(text, line_breaks=line_breaks):
        raise _fault(part, f"must not contain {found}")
    return text or None


_PARTS = ("colour", "logo", "sender_name", "reply_to", "subject", "footer")
_PARTS_OF_WRAPPING = ("name", "pattern", "paper", "ribbon", "picture")


def _audited(of: model.Brand | model.OwnWrapping, parts: Sequence[str]) -> dict[str, str]:
    """Returns the parts that are not empty, for the audit log."""
    return {part: value for part in parts if (value := getattr(of, part))}
