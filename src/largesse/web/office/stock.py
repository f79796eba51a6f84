"""The stock of voucher numbers: levels, warnings, imports, and the orders that took numbers. The pages show no numbers."""

from starlette.responses import Response

from largesse.base.errors import FileRefused
from largesse.base.i18n.languages import text
from largesse.customers.staff_roles import StaffRight
from largesse.db.scope import OFFICE
from largesse.fulfilment import stock
from largesse.fulfilment.inventory import Imported, Upload, find_inventory_product, import_vouchers
from largesse.web.kit.query import INT64
from largesse.web.office.context import OfficeContext, file_name, refused, uploaded

HERE = "/office/stock"
MOST_BYTES = 2 * 1024 * 1024
MOST_NUMBERS = 20_000
_SHOWN = 50
_WHY = {
    "stock": text("in stock already"),
    "sold": text("given to a recipient already"),
    "twice": text("twice in the file"),
}
_NO_LEVEL = text("Type a whole number from 1 to %(most)s, or leave it empty for no warning.")


async def show(context: OfficeContext) -> Response:
    """Lists digital gifts with the remaining stock of each."""
    async with context.database.connection(OFFICE) as connection:
        products = await stock.list_stock(
            connection, context.query("q"), context.parameters.number("after"), _SHOWN + 1
        )
        low = await stock.list_low_stock(connection, _SHOWN)
    more = products[_SHOWN - 1].id if len(products) > _SHOWN else None
    return context.page(
        "stock.html",
        query=context.query,
        products=products[:_SHOWN],
        more=more,
        low=low,
        days=stock.EXPIRES_SOON_DAYS,
        most=stock.MOST_COUNTED,
    )


async def one(context: OfficeContext, *, imported: Imported | None = None) -> Response:
    """Shows the stock of a gift. Raises NotFound."""
    product_id = context.number("product")
    async with context.database.connection(OFFICE) as connection:
        product = await stock.find_stocked(connection, product_id)
        in_days = await stock.count_taken(connection, product_id)
        taken = await stock.list_taken(connection, product_id, context.parameters.number("before", INT64), _SHOWN + 1)
    return context.page(
        "stock_product.html",
        product=product,
        days=stock.EXPIRES_SOON_DAYS,
        most=stock.MOST_COUNTED,
        in_days=in_days,
        taken_days=stock.TAKEN_DAYS,
        taken=taken[:_SHOWN],
        more=taken[_SHOWN - 1].id if len(taken) > _SHOWN else None,
        imported=imported,
        why={name: context.say(said) for name, said in _WHY.items()},
        may_change=context.person.may(StaffRight.STOCK),
        most_numbers=MOST_NUMBERS,
    )


async def add(context: OfficeContext) -> Response:
    """Adds the voucher numbers in a file. Raises NotFound."""
    content, value = uploaded(context, MOST_BYTES), context.form["value"].strip()
    if content is None:
        return await one(context)
    async with context.database.connection(OFFICE) as connection:
        key = (await stock.find_stocked(connection, context.number("product"))).key
        product = await find_inventory_product(connection, key)
    file = Upload(file_name(context), content)
    try:
        with context.services.timeouts.suspended():  # no timeout, because each thousand numbers are a transaction
            imported = await import_vouchers(
                context.actor, context.services.vault, product, file, value=value or None, most=MOST_NUMBERS
            )
    except FileRefused as refusal:
        context.form.error("value" if refusal.code.startswith("all_") else "file", refused(context, refusal))
        return await one(context)
    if imported.duplicates or imported.unread:
        return await one(context, imported=imported)
    said = context.ngettext("%(count)s number added.", "%(count)s numbers added.", imported.added)
    return context.see(f"{HERE}/{product.id}", said)


async def warn(context: OfficeContext) -> Response:
    """Sets or removes the warning of a gift. Raises NotFound."""
    product = await context.read(stock.find_stocked, context.number("product"))
    context.form.keep_others({"below": str(product.below or "")})
    typed = context.form.text("below", 9, required=False)
    below = context.form.number("below", stock.MOST_BELOW)
    if typed and not below:
        context.form.error("below", context.say(_NO_LEVEL, most=context.language.number(stock.MOST_BELOW)))
    if context.form.errors:
        return await one(context)
    await stock.warn_below(context.actor, product.id, below)
    return context.see(f"{HERE}/{product.id}", context.say("Warning saved."))
