"""Lists of addresses as mail programs write them: `Ada <a@example.com>; "Byron, Ada" <b@example.com>, c@example.com`.

Finds the fault of an invalid address, and the address that its author may have meant.
"""

import csv
import io
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from largesse.base.cooperative import Steps
from largesse.base.email import EmailError, is_mistyped, normalise_email
from largesse.base.text import folded, trimmed
from largesse.drafts.sheet import MAX_ROWS, lines_of
from largesse.orders.placeholders import NO_FIRST_NAMES

# The tokens of a list: a quoted name, an address in brackets, a separator, or the text between them. Each character is read once.
_TOKENS = re.compile(
    r'"[^"]*"|[\u201c\u201e\xab][^\u201c\u201d\u201e\xab\xbb\n]*[\u201c\u201d\xbb]|<[^<>]*>|[,;\t\n]'
    r'|[^,;\t\n"<\u201c\u201e\xab]+|["<\u201c\u201e\xab]'
)
# `Ada <a@example.com>`, with `mailto:` as Outlook copies a link, or with other brackets.
_NAMED = re.compile(
    r"(?P<name>[^<>]*)<\s*(?:mailto:)?(?P<address>[^\s<>]+@[^\s<>@]+)\s*>"
    r"|(?P<name_2>[^<>()\[\]@]+)[(\[]\s*(?P<address_2>[^\s<>()\[\]@]+@[^\s<>()\[\]@]+)\s*[)\]]",
    re.IGNORECASE,
)
_BARE = re.compile(r'[^\s<>@,;"()]+@[^\s<>@,;"()]+')
_QUOTED = re.compile(r"""".*"|'.*'|[\u201c\u201e].*[\u201c\u201d]|\xab.*\xbb""")
_BULLET = re.compile(r"^[*\u2022\u00b7\u25aa\u2013-]\s+")  # before a line of a list in a mail or a document
# The word before the recipients in the copied head of a mail, in the languages of the pages.
_HEADER = re.compile(r"\s*(?:to|cc|bcc|an|kopie|blindkopie|\xe0|cci)\s*:", re.IGNORECASE)
_CHARACTERS_A_STEP = 2_000
_PARTS_A_STEP = 50
_TOKENS_A_STEP = 200
_COUNTED_AT_ONCE = 16_384  # characters
_MAX_HEADINGS = 10_000  # how many characters of a first line are examined

Mailbox = tuple[str, str]  # name and address


def is_bare(text: str) -> bool:
    """Returns whether a text is one address and nothing else."""
    return bool(_BARE.fullmatch(text))


def read_mailboxes(text: str) -> list[Mailbox] | None:
    """Returns the name and the address of each mailbox in a list; None for any other text.

    The separators are commas, semicolons, tabs or line breaks, or blanks between bare addresses. With semicolons, a name with a comma needs no
    quotation marks, as in Outlook.
    """
    parts = [part for part in _parts_of(text) if part]
    members = _mailboxes_among(parts)
    return members if members and len(members) == len(parts) else None


def one_mailbox_a_line(text: str) -> Steps[str]:
    """Replaces each line that is a list of mailboxes by lines of CSV with one mailbox each. Other lines stay.

    A text that begins with headings of several columns is a table and stays unchanged.
    """
    first = next((line for line in lines_of(text) if line.strip()), "")
    if first[:4].lower() == "sep=":  # the text says that it is a table
        return text
    first_list = yield from _list_in(first)
    if first_list is None and ("@" in first or sum(map(bool, _split(first[:_MAX_HEADINGS], ",;\t|"))) > 1):
        return text
    made: list[str] = []
    within_quotes = False
    since_step = 0
    for line in lines_of(text):
        if within_quotes:
            members = None
        elif line == first:  # mistakes go last, as they would look like headings in the first row
            members = first_list and sorted(first_list, key=lambda part: isinstance(part, str))
        else:
            members = yield from _list_in(line)
        if members is None:
            made.append(line)
            within_quotes ^= line.count('"') % 2 == 1
        else:
            for at in range(0, len(members), _PARTS_A_STEP):
                made.append(_csv(members[at : at + _PARTS_A_STEP]))
                yield
        since_step += len(line)
        if since_step >= _CHARACTERS_A_STEP:
            since_step = 0
            yield
    return "".join(made)


def _list_in(line: str) -> Steps[list[Mailbox | str] | None]:
    """Returns the parts of a line that cannot be a row of a table: several mailboxes, or one with a name or in brackets.

    A line with other parts is also a list if it has at least two mailboxes and two brackets. The other parts are returned as typed.
    """
    addresses = _count(line, "@", MAX_ROWS + 1)
    most = 3 * addresses + 3
    if not 0 < addresses <= MAX_ROWS + 1 or _count(line, ",;\t", most) > most or _count(line, '<"', most) > most:
        return None
    parts: list[Mailbox | str] = []
    header = _HEADER.match(line)
    for part in _parts_of(line[header.end() :] if header else line):
        if part:
            parts.append(part)
        if not part or len(parts) % _PARTS_A_STEP == 0:
            yield
    members = _mailboxes_among(parts)
    if len(members) < len(parts):  # a list with a mistake, or a row of a table
        return parts if min(len(members), line.count("<")) > 1 else None
    return parts if len(parts) > 1 or "<" in line or members[0][0] else None


def _count(line: str, signs: str, most: int) -> int:
    """Returns how often a line has one of the signs. Stops soon after `most`, as a line may consist only of signs."""
    count = 0
    for at in range(0, len(line), _COUNTED_AT_ONCE):
        count += sum(line.count(sign, at, at + _COUNTED_AT_ONCE) for sign in signs)
        if count > most:
            break
    return count


def _csv(parts: list[Mailbox | str]) -> str:
    made = io.StringIO()
    writer = csv.writer(made, quoting=csv.QUOTE_ALL)
    for part in parts:
        if isinstance(part, str):
            writer.writerow([part])
        else:
            name, address = part
            writer.writerow([f'"{name}" <{address}>' if name else address])
    return made.getvalue()


def _parts_of(text: str) -> Iterator[Mailbox | str]:
    """Yields the parts of a list: mailboxes, and other parts as they were typed. Yields "" where the caller may pause."""
    for part in _split(text, ";\t\n"):
        words = part.replace(",", " ").split()
        if not part:
            yield part
        elif mailbox := _mailbox(part):
            yield mailbox
        elif all(map(_BARE.fullmatch, words)):
            yield from (("", address) for address in words)
        else:
            yield from _parts_between_commas(part)


def _parts_between_commas(text: str) -> Iterator[Mailbox | str]:
    """Yields the parts between commas, or the whole text if none of them is a mailbox. Yields "" where the caller may pause."""
    waiting: list[str] | None = []
    for part in _split(text, ","):
        mailbox = _mailbox(part)
        if not part or waiting is None:
            yield mailbox or part
        elif mailbox is None:
            waiting.append(part)
        else:
            yield from waiting
            yield mailbox
            waiting = None
    if waiting is not None:
        yield text


def _mailboxes_among(parts: list[Mailbox | str]) -> list[Mailbox]:
    return [part for part in parts if not isinstance(part, str)]


def _split(text: str, separators: str) -> Iterator[str]:
    """Yields the parts between separators outside quotation marks. Strips blanks around parts, and skips blank parts.

    Yields "" where the caller may pause.
    """
    tokens: list[str] = []
    for number, found in enumerate(_TOKENS.finditer(text), 1):
        if found[0] not in separators:
            tokens.append(found[0])
        else:
            part = trimmed("".join(tokens))
            tokens.clear()  # also of blanks, of which a text may have millions
            if part:
                yield part
        if number % _TOKENS_A_STEP == 0:
            yield ""
    if part := trimmed("".join(tokens)):
        yield part


def _mailbox(part: str) -> Mailbox | None:
    part = _BULLET.sub("", part)
    if _BARE.fullmatch(part):
        return "", part
    named = _NAMED.fullmatch(part)
    if named is None:
        return None
    name = trimmed(" ".join((named["name"] or named["name_2"] or "").split())).rstrip(", ")
    is_quoted = _QUOTED.fullmatch(name) is not None
    bare, address = name[1:-1].strip() if is_quoted else name, trimmed(named["address"] or named["address_2"])
    if bare.lower() == address.lower():  # mail programs repeat the address if they do not know the name
        return "", address
    if not is_quoted and ("@" in name or '"' in name):
        return None  # another address before it, or a quotation mark that is not closed
    return _turned(bare), address


def _turned(name: str) -> str:
    """Returns "Ada Byron (Sales)" for "Byron, Ada (Sales)", the order of names in companies' directories."""
    last, _, rest = name.partition(", ")
    first, bracket, more = rest.partition(" (")
    is_one = last and first and "," not in last + rest
    is_first = first.replace(".", "").lower() not in NO_FIRST_NAMES
    return f"{first} {last}{bracket}{more}" if is_one and is_first else name


_AT = re.compile(r"\s*(?:\(at\)|\[at\]|\{at\}|\s+at\s+|\uff20)\s*", re.IGNORECASE)
_ROUND = " \t\"'<>()[].,;:"
# The characters that word processors write instead of an apostrophe and a hyphen, and marks that nobody sees, which are removed.
_PLAIN_SIGNS = str.maketrans(
    "\u2018\u2019\u02bc\u2010\u2011\u2012\u2013\u2014\u2212", "'''------", "\xad\u200b\u2060\ufeff"
)
_MAILTO = re.compile(r"mailto:", re.IGNORECASE)
_BLANKS = re.compile(r"\s+")
_AND_MORE = re.compile(r"@\s*[^\s@]+\.[^\s@]+\s+[^\s.@]")  # an address, and a name after it
_NO_LETTERS = re.compile(r"[\W\d_]+")
_DOTS = re.compile(r"\.{2,}")
_COMMAS = re.compile(r"[,;]+")
# Providers whose incomplete domains are completed, in addition to the domains of the list.
PROVIDERS = ("gmail.com", "outlook.com", "hotmail.com", "icloud.com", "yahoo.com")
MOST_DOMAINS = 50
_MAX_LENGTH = 320  # characters of the longest text that is examined


def fault_of(email: str) -> str:
    """Returns the fault of an invalid address, a kind of `checking.PROBLEMS`."""
    local, at, domain = email.partition("@")
    if not at:
        return "email_no_at"
    if "@" in domain:
        return "email_two_at"
    if _BLANKS.search(email):
        return "email_space"
    if "," in domain:
        return "email_comma"
    if ".." in email or local[:1] == "." or local[-1:] == "." or domain[:1] == "." or domain[-1:] == ".":
        return "email_dots"
    if is_mistyped(email):
        return "email_sign"
    return "email_wrong" if local and "." in domain else "email_domain" if local else "email_wrong"


def common_domains(emails: Iterable[str]) -> Sequence[str]:
    """Returns the most common domains of these addresses, the most frequent first."""
    counts = Counter(email.rpartition("@")[2] for email in emails)
    return [domain for domain, _ in counts.most_common(MOST_DOMAINS)]


def suggested(email: str, domains: Sequence[str] = ()) -> str | None:
    """Returns the valid address that was probably meant; None if no address is likely. `domains` are those of the other recipients."""
    if not email or len(email) > _MAX_LENGTH:
        return None
    text = _plain(email)
    if len(text) > _MAX_LENGTH or _AND_MORE.search(text):  # a sign may become several, such as an ellipsis
        return None
    *before, local = text.partition("@")[0].split() or [""]
    if before and "@" in text:
        if not _is_name_or_mark(before, local):
            return None  # `ada byron@example.com`: either word may be the address
        text = f"{local}@{text.partition('@')[2]}".strip(_ROUND)
    text = _DOTS.sub(".", _BLANKS.sub("", text))
    while "@@" in text:
        text = text.replace("@@", "@")
    local, at, domain = text.partition("@")
    known = (*domains, *PROVIDERS)
    if not at:
        return _valid(_split_off(text, domains))
    whole, *more = _COMMAS.split(domain.strip(".,;"))
    domain = ".".join((whole, *more))
    if more and "." in whole and domain.lower() not in known:
        return None  # `ada@example.com;Ada` is an address and another cell
    if "." not in domain:
        domain = next((one for one in known if domain and one.startswith(f"{domain.lower()}.")), domain)
    return _valid(f"{local.strip('.')}@{domain}", unlike=email)


def name_before(email: str) -> str:
    """Returns the name before an address: `Ada Byron` for `2. Ada Byron: ada@example.com`. For a text with a `suggested` address."""
    before, at, _ = _plain(email).partition("@")
    words = before.split()[:-1] if at else []
    first = next((number for number, word in enumerate(words) if not _NO_LETTERS.fullmatch(word)), len(words))
    return _turned(" ".join(words[first:]).strip(_ROUND + "-"))


def _plain(email: str) -> str:
    """Returns a text without the signs that copying adds to an address. Replaces what people write instead of an @, such as `(at)`.

    Runs of blanks become one: in a run of three hundred, the search for ` at ` takes a tenth of a second.
    """
    plain = " ".join(unicodedata.normalize("NFKC", email).translate(_PLAIN_SIGNS).split())
    return _MAILTO.sub("", _AT.sub("@", plain)).strip(_ROUND)


def _is_name_or_mark(before: Sequence[str], local: str) -> bool:
    """Returns whether the words before an address are a list mark such as `1.`, or a name that is part of the address.

    An example of the latter is `Ada Byron ada@example.com`.
    """
    words = [_NO_LETTERS.sub("", folded(word)) for word in before]
    return not any(words) or any(len(word) > 1 and word in folded(local) for word in words)


def _split_off(text: str, domains: Sequence[str]) -> str:
    """Returns an address whose @ is missing before one of `domains`, or is a dot there. Returns an empty text if there is none."""
    for domain in domains:
        if text.lower().endswith(domain) and len(text) > len(domain):
            return f"{text[: -len(domain)].rstrip('.')}@{domain}"
    return ""


def _valid(email: str, *, unlike: str = "") -> str | None:
    try:
        return normalise_email(email) if email and email != unlike else None
    except EmailError:
        return None
