"""Parts of the catalogue's pages: forms, prices, changes of a draft, published versions, and the texts of fields and states."""

from collections.abc import Mapping, Sequence
from typing import Any

from largesse.base.i18n.languages import text
from largesse.catalogue.content import ProductContent, differences
from largesse.catalogue.draft_store import Edited, Version
from largesse.catalogue.impact import LostChoice
from largesse.catalogue.model import delivered_minor, product_from_row
from largesse.db.pool import Row
from largesse.web.console.audit_log import Change
from largesse.web.office.context import OfficeContext

_MOST_SHOWN = 10
_TEXTS = frozenset(("description", "how_to_redeem", "terms"))
FLAGS = frozenset(("active", "allow_custom_value"))
_OPTIONAL = _TEXTS | {
    "denominations",
    "min_amount",
    "max_amount",
    "markup_percent",
    "vat_percent",
    "customers",
    "suppliers",
    "value_points",
}
_MOST_TYPED = 20_000  # characters of a field that has no limit of its own


def fields_of_form(context: OfficeContext, typed: Mapping[str, str]) -> list[dict[str, Any]]:
    """Returns the fields of the form, in their order."""
    return [
        {
            "name": name,
            "label": context.say(LABELS[name]),
            "help": context.say(HELP[name]) if name in HELP else "",
            "value": value,
            "is_text": name in _TEXTS or name == "products",
            "is_flag": name in FLAGS,
            "required": name not in _OPTIONAL,
            "most": 200 if name == "name" else _MOST_TYPED,
        }
        for name, value in typed.items()
    ]


def changes_of(
    context: OfficeContext, edited: Edited, before: Mapping[str, str], after: Mapping[str, str]
) -> list[Change]:
    """Returns the fields that a draft changes."""
    found = [
        Change(context.say(LABELS[name]), before.get(name, ""), value)
        for name, value in after.items()
        if before.get(name, "") != value
    ]
    if getattr(edited.content, "picture", None) != getattr(edited.newest, "picture", None):
        there = (getattr(one, "picture", None) for one in (edited.content, edited.newest))
        found.append(Change(context.say(LABELS["picture"]), *(context.say("yes") if one else "" for one in there)))
    return found


def prices_of(context: OfficeContext, kind: str, row: Row) -> str:
    """Returns the price or the range of prices of a product or collection."""
    amount, currency = context.language.amount, row["currency"]
    if kind == "collection":
        points = [amount(minor, currency) for minor in sorted(row["value_points_minor"])]
        return context.say("Any amount") if row["allow_custom_value"] else _ends(points)
    product = product_from_row(row)
    if product.is_digital:
        limits = product.denominations_minor or product.limits_minor or ()
        return _ends([amount(minor, currency) for minor in limits])
    return _ends(
        [amount(minor, currency) for minor in sorted({delivered_minor(product, one) for one in product.postage_minor})]
    )


def _ends(amounts: list[str]) -> str:
    return amounts[0] if len(amounts) == 1 else f"{amounts[0]} \N{EN DASH} {amounts[-1]}" if amounts else ""


def delivered(edited: Edited) -> list[tuple[str, list[int]]]:
    """Returns the prices that customers see: the amounts of a digital gift, or the price of a physical gift with delivery, by country."""
    content = edited.newest
    if not isinstance(content, ProductContent):
        return []
    product = content.as_product(edited.id)
    if content.is_digital:
        return [("", list(content.denominations_minor or product.limits_minor or ()))]
    return [(country, [delivered_minor(product, country)]) for country in content.postage_minor]


def history_of(context: OfficeContext, versions: list[Version]) -> list[tuple[Version, str]]:
    """Returns the versions, newest first, each with the names of the fields that it changed."""
    labelled = []
    for number, version in enumerate(versions):
        former = versions[number + 1] if number + 1 < len(versions) else None
        changed = [] if former is None else differences(former.content, version.content)
        labels = {context.say(LABELS[label]) for name in changed if (label := _LABEL_OF.get(name, name)) in LABELS}
        labelled.append((version, ", ".join(sorted(labels))))
    return labelled


_LABEL_OF = {
    "denominations_minor": "denominations",
    "min_amount_minor": "min_amount",
    "max_amount_minor": "max_amount",
    "cost_minor": "cost",
    "postage_minor": "postage",
    "customer_ids": "customers",
    "value_points_minor": "value_points",
    "product_ids": "products",
}


def choices_of(context: OfficeContext, lost: Sequence[LostChoice]) -> list[tuple[str, str]]:
    """Returns the collections that lose the product, each with the affected amounts as text; empty if all amounts are affected."""
    return [
        (one.name, ", ".join(context.language.amount(minor, one.currency) for minor in one.values_minor[:_MOST_SHOWN]))
        for one in lost
    ]


LABELS: Mapping[str, str] = {
    "key": text("Key"),
    "digital": text("Digital"),
    "currency": text("Currency"),
    "name": text("Name"),
    "active": text("On sale"),
    "countries": text("Countries"),
    "denominations": text("Amounts"),
    "min_amount": text("Lowest amount"),
    "max_amount": text("Highest amount"),
    "cost": text("Cost"),
    "markup_percent": text("Markup in percent"),
    "postage": text("Postage by country"),
    "vat_percent": text("VAT in percent by country"),
    "customers": text("Sold only to"),
    "suppliers": text("Suppliers"),
    "description": text("Description"),
    "how_to_redeem": text("How to redeem"),
    "terms": text("Terms"),
    "country": text("Country"),
    "value_points": text("Amounts to choose from"),
    "allow_custom_value": text("Any amount"),
    "products": text("Products"),
    "picture": text("Picture"),
}
HELP: Mapping[str, str] = {
    "countries": text("Two letters each, such as GB, IE."),
    "denominations": text("Such as 5, 10, 25. Leave empty for any amount between the lowest and the highest."),
    "cost": text("What you pay for one, without postage and VAT."),
    "postage": text("Such as GB 4.95, IE 9.95. It is sold only in these countries."),
    "vat_percent": text("Such as GB 20, IE 23. A country that is not named has none."),
    "customers": text("Keys of customers. Leave empty to sell it to all."),
    "suppliers": text("In the order in which they are asked, such as tango, stock."),
    "value_points": text("Such as 10, 25, 50."),
    "products": text("Keys of products, in the order in which recipients see them."),
    "country": text("Two letters, such as GB."),
}
STATES: Mapping[str, str] = {
    "all": text("All"),
    "active": text("On sale"),
    "inactive": text("Not on sale"),
    "drafts": text("With a draft"),
    "scheduled": text("Scheduled"),
    "failed": text("Not published in time"),
    "file": text("Managed by the seed file"),
}
