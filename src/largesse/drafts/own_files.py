"""The files of people that our pages and commands write, by their headings. They are read as they were written, without guesses."""

from collections.abc import Mapping, Sequence

_CONTACTS = ("email", "name", "language", "country", "birthday", "start_date", "external_id", "groups", "state")
_RECIPIENTS = ("", "name", "email", "quantity", "", "", "")
# The first headings of each file in small letters, and the fields of these columns; "" for a column that is not read.
FILES: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("e-mail address", "name", "language", "country", "birthday", "start date", "your id", "groups", "state"): _CONTACTS,
    ("e-mail-adresse", "name", "sprache", "land", "geburtstag", "eintrittsdatum", "ihre kennung", "gruppen", "stand"): _CONTACTS,
    ("adresse e-mail", "nom", "langue", "pays", "anniversaire", "date d'entrée", "votre identifiant", "groupes", "état"): _CONTACTS,
    ("id", "email", "name", "language", "country", "birthday", "start_date", "external_id", "groups", "is_active"): ("", *_CONTACTS),
    ("number", "name", "e-mail address", "codes", "codes claimed", "codes cancelled", "state"): _RECIPIENTS,
    ("nummer", "name", "e-mail-adresse", "codes", "eingelöste codes", "stornierte codes", "stand"): _RECIPIENTS,
    ("numéro", "nom", "adresse e-mail", "codes", "codes récupérés", "codes annulés", "état"): _RECIPIENTS,
    ("email", "name", "quantity", "row", "what is wrong"): ("email", "name", "quantity", "", ""),
}  # fmt: skip


def fields_of(headings: Sequence[str]) -> tuple[str, ...] | None:
    """Returns the fields of the first columns of a file of ours; None if the headings are those of another file."""
    plain = tuple(one.casefold().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'") for one in headings)
    return next((fields for first, fields in FILES.items() if plain[: len(first)] == first), None)
