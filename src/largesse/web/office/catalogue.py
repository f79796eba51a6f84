"""The catalogue in the back office: lists of products and collections, and the page of each, with its draft and its history.

Forms contain texts, as CSV files do (`catalogue.typed`), with the edition and the texts at the time the form was opened (`started`). If somebody
else saved meanwhile, fields that only they changed show their text, and fields that both changed show both.
"""

from collections.abc import Awaitable, Mapping
from datetime import datetime

import msgspec
from starlette.responses import Response

from largesse.base.errors import NotFound, StateConflict
from largesse.base.i18n.languages import text
from largesse.base.text import free_key
from largesse.catalogue import draft_store, editing, store
from largesse.catalogue.content import Content, Faulty, ProductContent
from largesse.catalogue.draft_store import Edited
from largesse.catalogue.editing import ChangedMeanwhile
from largesse.catalogue.impact import read_impact
from largesse.catalogue.pictures import MAX_BYTES, PictureRefused, read_picture
from largesse.catalogue.typed import fields_of, read_collection, read_product, typed_collection, typed_product
from largesse.customers.staff_roles import StaffRight
from largesse.db.pool import Connection
from largesse.db.scope import OFFICE
from largesse.web.console.form import CHANGED, CHANGED_TOO, REQUIRED, Form
from largesse.web.kit.query import INT64
from largesse.web.office import catalogue_shown
from largesse.web.office.context import OfficeContext

PRODUCTS_TITLE, COLLECTIONS_TITLE = text("Catalogue"), text("Collections")
_MOST_LISTED = 50
_NOT_A_PICTURE = text("Choose a PNG, JPEG or WebP file of at most %(most)s KB, from 64 to 2000 pixels each way.")
_PUBLISHED, _SAVED = text("Published: customers see it from now on."), text("The draft was saved.")
_FAILED = text(
    "It was not published at its time: something else was published first. Look at what changes, save and publish it."
)
_BEHIND = text(
    "Something else was published after this draft was saved. Look at what changes, save the draft again and publish it."
)


class Pages:
    """The pages of products or of collections."""

    def __init__(self, kind: str, path: str) -> None:
        self.kind = kind
        self.path = path

    async def show_list(self, context: OfficeContext) -> Response:
        """Shows a page of the list, sorted by key."""
        state = context.query("state") if context.query("state") in catalogue_shown.STATES else "all"
        currency, after, words = context.query("currency").upper(), context.query("after_key"), context.query("q")
        async with context.database.connection(OFFICE) as connection:
            currencies = await store.list_currencies(connection)
            filters = {"state": state, "currency": currency if currency in currencies else "", "after": after}
            if self.kind == "product":
                rows = await store.list_products(connection, words=words, most=_MOST_LISTED + 1, **filters)
            else:
                rows = await store.list_collections(connection, most=_MOST_LISTED + 1, **filters)
            drafts = 0
            if state == "drafts" and rows:
                drafts = len(await draft_keys(context, connection, self.kind))
        shown = rows[:_MOST_LISTED]
        return context.page(
            "catalogue.html",
            kind=self.kind,
            path=self.path,
            rows=[(row, catalogue_shown.prices_of(context, self.kind, row)) for row in shown],
            next=context.here(after_key=shown[-1]["key"]) if len(rows) > _MOST_LISTED else "",
            first=context.here(after_key=None) if after else "",
            form=context.form_of_address,
            states=[(name, context.say(label)) for name, label in catalogue_shown.STATES.items()],
            currencies=[("", context.say("All")), *((code, code) for code in currencies)],
            is_filtered=bool(words or currency or state != "all"),
            drafts=drafts,
            may_change=context.person.may(StaffRight.CATALOGUE),
        )

    async def ask_new(self, context: OfficeContext) -> Response:
        """Shows the form of a new product or collection, after the choice of its kind and currency."""
        return await self._shown_new(context, context.query("currency"), is_digital=context.query("kind") != "physical")

    async def create(self, context: OfficeContext) -> Response:
        """Creates a product or collection as a draft."""
        form, currency, is_digital = context.form, context.form["currency"], context.form["kind"] != "physical"
        typed = self._typed(form, is_digital=is_digital)
        key = form["key"].strip()
        try:
            async with context.database.connection(OFFICE) as connection:
                if currency not in await store.list_currencies(connection):
                    raise NotFound("There is no such currency.")
                content = await self._read(connection, typed, currency, is_digital=is_digital)
                if not key:
                    beginning = free_key(typed["name"], (), self.kind)
                    taken = await store.keys_like(connection, self.kind, beginning)
                    key = free_key(typed["name"], taken, self.kind)
            object_id = await editing.create(context.actor, self.kind, key, content)
        except Faulty as faulty:
            note(context, faulty)
            return await self._shown_new(context, currency, is_digital=is_digital, typed=typed)
        said = context.say("Created as a draft. Nobody can send it until you publish it.")
        return context.see(f"{self.path}/{object_id}", said)

    async def show(
        self,
        context: OfficeContext,
        *,
        typed: Mapping[str, str] | None = None,
        trouble: str = "",
        status: int | None = None,
    ) -> Response:
        """Shows a product or collection with its draft. Raises NotFound."""
        edited = await self._find(context)
        async with context.database.connection(OFFICE) as connection:
            published = await self._type(connection, edited.content)
            newest = await self._type(connection, edited.newest)
            impact = await read_impact(connection, edited)
            versions = await draft_store.list_versions(connection, self.kind, edited.id)
        may_change = context.person.may(StaffRight.CATALOGUE)
        if edited.draft and (edited.draft.failed or edited.is_behind):
            trouble = trouble or context.say(_FAILED if edited.draft.failed else _BEHIND)
        return context.page(
            "catalogue_one.html",
            status=status,
            kind=self.kind,
            path=self.path,
            one=edited,
            title=edited.newest.name,
            fields=catalogue_shown.fields_of_form(context, newest if typed is None else typed),
            started=msgspec.json.encode(newest).decode(),
            changes=catalogue_shown.changes_of(context, edited, published, newest),
            impact=impact,
            choices=catalogue_shown.choices_of(context, impact.collections),
            prices=catalogue_shown.delivered(edited),
            history=catalogue_shown.history_of(context, versions),
            may_change=may_change,
            may_edit=may_change and edited.managed == "office",
            may_undo=len(versions) > 1 and versions[0].edition == edited.edition,
            trouble=trouble,
            most_kb=MAX_BYTES // 1024,
        )

    async def save(self, context: OfficeContext) -> Response:
        """Saves a draft. Raises NotFound."""
        edited = await self._find(context)
        typed = self._typed(context.form, is_digital=_is_digital(edited.content))
        try:
            content = await context.read(
                self._read,
                typed,
                edited.newest.currency,
                is_digital=_is_digital(edited.newest),
                picture=getattr(edited.newest, "picture", None),
            )
            await editing.save_draft(context.actor, self.kind, edited.id, content, _seen(context))
        except Faulty as faulty:
            note(context, faulty)
            return await self.show(context, typed=typed)
        except ChangedMeanwhile as changed:
            return await self._merged(context, changed.edited, typed)
        except StateConflict as refused:
            return await self.show(context, typed=typed, trouble=refused.detail, status=409)
        return context.see(f"{self.path}/{edited.id}", context.say(_SAVED))

    async def save_picture(self, context: OfficeContext) -> Response:
        """Saves an uploaded picture in the draft. Raises NotFound."""
        content = context.files.get("picture", b"")
        try:
            picture = read_picture(content) if content else None
        except PictureRefused:
            context.form.error("picture", context.say(_NOT_A_PICTURE, most=MAX_BYTES // 1024))
            return await self.show(context)
        if picture is None:
            context.form.error("picture", context.say(REQUIRED))
            return await self.show(context)
        setting = editing.set_picture(context.actor, context.number("id"), picture, _seen(context))
        return await self._act(context, setting, _SAVED)

    async def remove_picture(self, context: OfficeContext) -> Response:
        """Removes the picture from the draft. Raises NotFound."""
        setting = editing.set_picture(context.actor, context.number("id"), None, _seen(context))
        return await self._act(context, setting, _SAVED)

    async def publish(self, context: OfficeContext) -> Response:
        """Publishes the draft. Raises NotFound."""
        publishing = editing.publish(context.actor, self.kind, context.number("id"), _seen(context))
        return await self._act(context, publishing, _PUBLISHED)

    async def schedule(self, context: OfficeContext) -> Response:
        """Schedules the publication of the draft. Raises NotFound."""
        at = _instant(context)
        if at is None:
            context.form.error("at", context.say(REQUIRED))
            return await self.show(context)
        said = context.say("The draft publishes itself on %(at)s.", at=context.time(at))
        scheduling = editing.schedule(context.actor, self.kind, context.number("id"), at, _seen(context))
        return await self._act(context, scheduling, said)

    async def unschedule(self, context: OfficeContext) -> Response:
        """Cancels the scheduled publication of the draft. Raises NotFound."""
        cancelling = editing.schedule(context.actor, self.kind, context.number("id"), None, _seen(context))
        return await self._act(context, cancelling, context.say("The draft does not publish itself any more."))

    async def undo(self, context: OfficeContext) -> Response:
        """Publishes the previous version again. Raises NotFound."""
        undoing = editing.undo(context.actor, self.kind, context.number("id"), _seen(context))
        return await self._act(context, undoing, context.say("Undone: customers see again what was there before."))

    async def discard(self, context: OfficeContext) -> Response:
        """Deletes the draft. Raises NotFound."""
        try:
            is_gone = await editing.discard_draft(context.actor, self.kind, context.number("id"), _seen(context))
        except StateConflict as refused:
            return await self._refused(context, refused)
        path = self.path if is_gone else f"{self.path}/{context.number('id')}"
        return context.see(path, context.say("The draft was discarded."))

    async def release(self, context: OfficeContext) -> Response:
        """Moves a product or collection from the seed file's control to the back office's. Raises NotFound."""
        await editing.release(context.actor, self.kind, context.number("id"))
        said = context.say("Released: you change it here from now on, and loading the seed file leaves it as it is.")
        return context.see(f"{self.path}/{context.number('id')}", said)

    async def _act(self, context: OfficeContext, act: Awaitable[object], said: str) -> Response:
        try:
            await act
        except Faulty as faulty:
            note(context, faulty)
            return await self.show(context)
        except StateConflict as refused:
            return await self._refused(context, refused)
        return context.see(f"{self.path}/{context.number('id')}", context.say(said))

    async def _refused(self, context: OfficeContext, refused: StateConflict) -> Response:
        """Shows the current page, with the reason why nothing was done."""
        said = _REFUSALS.get(type(refused), _NOT_DONE)
        if isinstance(refused, ChangedMeanwhile):
            said = _BEHIND if refused.edited.is_behind else CHANGED
        return await self.show(context, trouble=context.say(said), status=409)

    async def _merged(self, context: OfficeContext, now: Edited, typed: Mapping[str, str]) -> Response:
        """Shows the form with the typed values and the values that somebody else saved meanwhile, so that neither is lost."""
        theirs = await context.read(self._type, now.newest)
        try:
            started = msgspec.json.decode(context.form["started"], type=dict[str, str])
        except msgspec.DecodeError:
            started = {}
        merged = dict(typed)
        for name, value in theirs.items():
            was = started.get(name, value)
            if typed[name] == was:
                merged[name] = value
            elif value not in {was, typed[name]}:
                said = context.say(CHANGED_TOO, value=value[:500] or "\N{EN DASH}")
                context.form.error(name, said)
        errors = context.form.errors
        context.form = Form({**merged, "reason": context.form["reason"]}, context.say)
        context.form.errors = errors
        trouble = context.say(
            "%(who)s saved this meanwhile. What you typed is kept, and what only they changed is shown. Check it and save again.",
            who=now.draft.author if now.draft and not now.is_behind else context.say("Somebody else"),
        )
        return await self.show(context, typed=merged, trouble=trouble, status=409)

    async def _shown_new(
        self, context: OfficeContext, currency: str, *, is_digital: bool, typed: Mapping[str, str] | None = None
    ) -> Response:
        currencies = await context.read(store.list_currencies)
        chosen = currency if currency in currencies else ""
        fields = typed or {
            name: "yes" if name == "active" else "" for name in fields_of(self.kind, is_digital=is_digital)
        }
        return context.page(
            "catalogue_new.html",
            kind=self.kind,
            path=self.path,
            currency=chosen,
            currencies=[(code, code) for code in currencies],
            is_digital=is_digital,
            fields=catalogue_shown.fields_of_form(context, fields),
        )

    async def _find(self, context: OfficeContext) -> Edited:
        edited = await context.read(draft_store.read, self.kind, context.number("id"))
        if edited is None:
            raise NotFound("There is nothing with that number.")
        return edited

    def _typed(self, form: Form, *, is_digital: bool) -> dict[str, str]:
        typed = {name: form[name].replace("\r\n", "\n") for name in fields_of(self.kind, is_digital=is_digital)}
        return {name: (value or "no") if name in catalogue_shown.FLAGS else value for name, value in typed.items()}

    async def _type(self, connection: Connection, content: Content) -> dict[str, str]:
        if isinstance(content, ProductContent):
            return typed_product(content, await draft_store.customer_keys(connection, content.customer_ids or ()))
        return typed_collection(content, await draft_store.product_keys(connection, content.product_ids))

    async def _read(
        self,
        connection: Connection,
        typed: Mapping[str, str],
        currency: str,
        *,
        is_digital: bool,
        picture: str | None = None,
    ) -> Content:
        names = await editing.read_names(connection, [typed])
        if self.kind == "collection":
            return read_collection(typed, names, currency=currency)
        return read_product(typed, names, is_digital=is_digital, currency=currency, picture=picture)


_NOT_DONE = text("This is not possible any more. Look at how it is now.")
_REFUSALS: Mapping[type[StateConflict], str] = {
    editing.ManagedByFile: text("The seed file manages this. Release it first."),
    editing.NothingToPublish: text("There is nothing to publish."),
}
PRODUCTS = Pages("product", "/office/catalogue")
COLLECTIONS = Pages("collection", "/office/collections")


async def draft_keys(context: OfficeContext, connection: Connection, kind: str) -> list[str]:
    """Returns the keys of unscheduled drafts that match the filters in the address or the form, at most `editing.MOST_AT_ONCE`."""
    given = context.form if context.request.method == "POST" else context.form_of_address
    currency, most = given["currency"].upper(), editing.MOST_AT_ONCE
    if kind == "collection":
        rows = await store.list_collections(connection, state="unscheduled", currency=currency, most=most)
    else:
        rows = await store.list_products(
            connection, words=given["q"], state="unscheduled", currency=currency, most=most
        )
    return [row["key"] for row in rows if row["managed"] == "office"]


def note(context: OfficeContext, faulty: Faulty) -> None:
    """Adds each fault to the form, beside its field."""
    for fault in faulty.faults:
        context.form.error(fault.field, context.say(fault.said, **fault.values))


def _seen(context: OfficeContext) -> int:
    """Returns the edition that the form shows."""
    return context.form.number("seen", INT64) or 0


def _is_digital(content: Content) -> bool:
    return isinstance(content, ProductContent) and content.is_digital


def _instant(context: OfficeContext) -> datetime | None:
    """Returns the time in the form, by default in the zone of the page; None if it is missing or wrong."""
    at = context.form.time("at", context.times_in)
    return at if at and 2000 <= at.year <= 9000 else None
