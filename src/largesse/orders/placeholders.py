"""Placeholders of a message, such as `{first_name|there}`: lists them, and fills them in for each recipient.

    {first_name}   the first word of the recipient's name, without a title
    {name}         the recipient's name in the order, else the name of the contact with their address
    {company}      the customer's name
    {key}          a field that the customer defined for its contacts, by its key

The text after a bar is used if there is no value; without a bar, nothing is. A message is filled in once, when the order is placed.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from largesse.base.decoding import refused
from largesse.base.email import email_key
from largesse.base.errors import InvalidRequest
from largesse.customers.principal import Principal
from largesse.db.pool import Connection
from largesse.orders.recipients import OrderRecipient

FIRST_NAME, NAME, COMPANY = BUILT_IN = ("first_name", "name", "company")
MAX_FILLED = 1_000  # characters of a message after it is filled in
_PLACEHOLDER = re.compile(r"\{([^{}|\n]{1,60})(?:\|([^{}\n]{0,100}))?\}")

# After a comma, these words are no first name. Compared without letter case and dots.
NO_FIRST_NAMES = frozenset(
    {"jr", "sr", "ii", "iii", "iv", "md", "phd", "esq", "inc", "ltd", "llc", "gmbh", "ag", "sa", "mba", "msc", "cpa"}
)
# Titles that may be written without a dot.
_TITLES = frozenset(
    {"dr", "prof", "mr", "mrs", "ms", "mx", "miss", "sir", "dame", "herr", "frau", "monsieur", "madame", "mme", "mlle"}
)
_MOST_INITIALS = 2  # a first name may be up to so many capitals; a longer word in capitals is a last name

_KEYS = "SELECT key FROM contact_fields WHERE customer_id = $1 AND environment = $2 ORDER BY created_at, key"
# Looks up each address (OFFSET 0). A plan for any customer expects each to have few contacts, and would read all contacts of a large one.
_VALUES = """
    SELECT c.email_key, c.name, f.key, f.value FROM unnest($3::text[]) AS wanted (email_key)
    CROSS JOIN LATERAL (
        SELECT email_key, name, own_fields FROM contacts
        WHERE customer_id = $1 AND environment = $2 AND email_key = wanted.email_key OFFSET 0) AS c
    LEFT JOIN LATERAL jsonb_each_text(c.own_fields) AS f ON true
"""

Values = Mapping[str, str]


def has_placeholders(message: str | None) -> bool:
    """Returns whether a message has a placeholder."""
    return message is not None and "{" in message and _PLACEHOLDER.search(message) is not None


def unknown_placeholders(message: str, known: Collection[str]) -> list[str]:
    """Returns the placeholders of a message that do not exist, each as it was written."""
    return [found[0] for found in _PLACEHOLDER.finditer(message) if _name(found) not in known]


def check_placeholders(message: str, known: Collection[str]) -> None:
    """Raises InvalidRequest, naming `message`, for a placeholder that does not exist."""
    if unknown := unknown_placeholders(message, known):
        raise refused(
            "message", f"has placeholders that do not exist: {', '.join(unknown)}. There are {', '.join(known)}"
        )


def fill(message: str, values: Values) -> str:
    """Returns a message with its placeholders replaced."""
    return _PLACEHOLDER.sub(lambda found: values.get(_name(found)) or (found[2] or "").strip(), message).strip()


def first_name(name: str) -> str:
    """Returns the first name in a full name: `Ada` of `Dr Ada Byron`, `Byron, Ada`, `BYRON Ada` and `Ada Byron, PhD`. `Dr Byron` has none."""
    full, _, rest = name.partition(",")
    is_turned = rest.strip() and any(
        one.replace(".", "").strip().lower() not in NO_FIRST_NAMES for one in rest.split(",")
    )
    words = (rest if is_turned else full).split()
    named = [word for word in words if not _is_title(word)]
    if not is_turned and len(named) == 1 and named != words[:1]:
        return ""
    first = next((at for at, word in enumerate(named) if not word.isupper()), 0)
    if not any(len(word) > _MOST_INITIALS for word in named[:first]):
        first = 0  # `JJ Abrams`, unlike `DE LA TOUR Marie`
    return named[first].strip(",") if named else ""


def _is_title(word: str) -> bool:
    return word.endswith(".") or word.lower() in _TITLES


async def list_placeholders(connection: Connection, principal: Principal) -> list[str]:
    """Returns the placeholders that exist for a customer."""
    rows = await connection.fetch(_KEYS, principal.customer_id, principal.environment)
    return [*BUILT_IN, *(row["key"] for row in rows)]


async def fill_in(
    connection: Connection, principal: Principal, message: str, recipients: Sequence[OrderRecipient]
) -> tuple[str, ...]:
    """Returns the message of each recipient. Raises InvalidRequest for one that becomes too long."""
    contacts = await _read_values(connection, principal, recipients)
    filled = []
    for at, one in enumerate(recipients):
        values = dict(contacts.get(email_key(one.email), {}))
        name = one.name or values.get(NAME, "")
        text = fill(message, values | {NAME: name, FIRST_NAME: first_name(name), COMPANY: principal.customer_name})
        if len(text) > MAX_FILLED:
            raise InvalidRequest(
                f"`message` must have at most {MAX_FILLED:,} characters with its values, not {len(text):,} for `recipients[{at}]`."
            )
        filled.append(text)
    return tuple(filled)


def fill_for_nobody(principal: Principal, message: str) -> str:
    """Returns the message of a code batch, whose recipients are not known."""
    return fill(message, {COMPANY: principal.customer_name})


async def _read_values(
    connection: Connection, principal: Principal, recipients: Iterable[OrderRecipient]
) -> dict[str, dict[str, str]]:
    """Returns the values of contacts by the keys of their addresses."""
    keys = list({email_key(one.email) for one in recipients})
    found: dict[str, dict[str, str]] = {}
    for row in await connection.fetch(_VALUES, principal.customer_id, principal.environment, keys):
        values = found.setdefault(row["email_key"], {NAME: row["name"]})
        if row["key"] is not None:
            values[row["key"]] = row["value"]
    return found


def _name(found: re.Match[str]) -> str:
    return found[1].strip().lower()
