"""The catalogue as CSV files: downloading and importing products and collections, and publishing the drafts of an import together."""

from collections.abc import AsyncIterator, Sequence
from urllib.parse import urlencode

from starlette.responses import Response

from largesse.base.errors import StateConflict
from largesse.base.i18n.languages import text
from largesse.catalogue import editing, sheet
from largesse.catalogue.sheet import RowFault
from largesse.db.scope import OFFICE
from largesse.web.console.context import note_no_file
from largesse.web.office import catalogue
from largesse.web.office.catalogue import Pages
from largesse.web.office.catalogue_shown import LABELS
from largesse.web.office.context import OfficeContext

_MOST_FAULTS = 200  # the page lists this many faults and counts the others
_MEANWHILE = text("Somebody else changed something in the file meanwhile. Import the file again.")
_NOT_ALL = text(
    "Some drafts were begun before a later publication, or the seed file manages them. Publish the others one by one."
)


class Files:
    """The CSV files of products or of collections."""

    def __init__(self, pages: Pages, title: str) -> None:
        self.title = title  # the title of the import page
        self.kind = pages.kind
        self.path = pages.path

    async def download(self, context: OfficeContext) -> Response:
        """Sends the published products or collections as a CSV file."""

        async def rows() -> AsyncIterator[Sequence[object]]:
            async with context.database.connection(OFFICE) as connection:
                async for row in sheet.write_rows(connection, self.kind):
                    yield row

        found = rows()
        header = [str(cell) for cell in await anext(found)]
        return await context.csv(f"{self.kind}s.csv", header, found)

    async def ask(
        self, context: OfficeContext, *, faults: Sequence[RowFault] = (), status: int | None = None
    ) -> Response:
        """Shows the form that uploads a file."""
        shown = [
            (
                one.row,
                one.key,
                context.say(LABELS.get(one.fault.field, one.fault.field)),
                context.say(one.fault.said, **one.fault.values),
            )
            for one in faults[:_MOST_FAULTS]
        ]
        return context.page(
            "catalogue_import.html",
            status=status,
            path=self.path,
            faults=shown,
            more=max(0, len(faults) - _MOST_FAULTS),
            wrong_rows=len({one.row for one in faults}),
            columns=sheet.COLUMNS[self.kind],
            most_rows=sheet.MOST_ROWS,
            most_kb=sheet.MOST_BYTES // 1024,
        )

    async def upload(self, context: OfficeContext) -> Response:
        """Saves the rows of a file as drafts, or shows all their faults."""
        content = context.files.get("file", b"")
        if not content:
            note_no_file(context)
            return await self.ask(context)
        read = await context.read(sheet.read_sheet, self.kind, content)
        if read.faults and not read.faults[0].row:
            fault = read.faults[0].fault
            context.form.error("file", context.say(fault.said, **fault.values))
            return await self.ask(context)
        if read.faults:
            return await self.ask(context, faults=read.faults, status=422)
        if not read.contents:
            return context.see(self.path, context.say("Nothing in the file differs from what is here already."))
        name = context.file_names.get("file", "")[:100] or "file"
        try:
            await editing.import_drafts(context.actor, self.kind, read.contents, read.seen, f"file {name}")
        except StateConflict:
            context.form.error("file", context.say(_MEANWHILE))
            return await self.ask(context, status=409)
        said = context.ngettext("%(count)s draft was saved.", "%(count)s drafts were saved.", len(read.contents))
        return context.see(f"{self.path}?state=drafts", said)

    async def publish_all(self, context: OfficeContext) -> Response:
        """Publishes the drafts that match the filters of the list."""
        async with context.database.connection(OFFICE) as connection:
            keys = await catalogue.draft_keys(context, connection, self.kind)
        try:
            count = await editing.publish_many(context.actor, self.kind, keys)
        except editing.NothingToPublish as refused:
            return context.trouble(409, refused.detail)
        except StateConflict:
            return context.trouble(409, context.say(_NOT_ALL))
        said = context.ngettext("%(count)s draft was published.", "%(count)s drafts were published.", count)
        filters = {"state": "drafts", "q": context.form["q"], "currency": context.form["currency"]}
        return context.see(f"{self.path}?{urlencode(filters)}", said)


PRODUCTS = Files(catalogue.PRODUCTS, text("Import products"))
COLLECTIONS = Files(catalogue.COLLECTIONS, text("Import collections"))
