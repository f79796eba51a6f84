"""What follows from the declaration of an optional text."""

from largesse.db.rights import TABLES
from largesse.orders.options import OPTIONS, PERSONAL


def test_a_text_is_personal_unless_it_says_otherwise() -> None:
    assert set(OPTIONS) - set(PERSONAL) == {"wrapping_key"}, "name here a text that is not personal"


def test_who_erases_may_change_personal_texts_and_no_others() -> None:
    erased = {f"UPDATE({name})" for name in (*PERSONAL, "external_reference")}
    marks = {"UPDATE(placed_digest)", "UPDATE(mac)"}
    assert set(TABLES["orders"].operator.split(", ")) == erased | marks, (
        "_ERASING of db/rights.py has the personal texts"
    )
    assert set(TABLES["orders"].worker.split(", ")) == erased | marks | {"UPDATE(erased_at)"}
