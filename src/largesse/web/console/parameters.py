"""The parameters that an address of the web application may have. A page reads no others."""

from __future__ import annotations

from collections.abc import Mapping

from largesse.web.kit.query import INT64, Day, Kind, Line, Month, Whole

_CODE, _ID, _WORD, _NAME = Line(8), Line(20), Line(40), Line(200)

PARAMETERS: Mapping[str, Kind] = {
    # Pages and filters of lists
    "before": Whole(INT64),
    "after": Whole(INT64),
    "page": Whole(999),
    "from": Whole(),
    "group": Whole(),
    "account": Whole(),
    "since": Day(),
    "until": Day(),
    "month": Month(),
    "key": Whole(),
    "path": _NAME,
    "q": _NAME,
    "after_key": Line(100),
    "request": Line(64),
    "who": Line(100),
    **dict.fromkeys(
        (
            "act",
            "by",
            "edit",
            "gift",
            "method",
            "of",
            "period",
            "role",
            "sort",
            "source",
            "state",
            "status",
            "tab",
            "was",
        ),
        _WORD,
    ),
    "order": Line(20),  # once for each order that is chosen
    # The subject of a form, and its values so far
    **dict.fromkeys(("collection", "copy", "product", "template", "to"), _ID),
    **dict.fromkeys(("amount", "amount_minor", "draft", "kind", "value"), _WORD),
    **dict.fromkeys(("country", "currency", "lang"), _CODE),
    "name": _NAME,
    # The page to continue to
    "next": Line(2_000),
}
