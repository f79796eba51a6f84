"""Finds the fault of an invalid e-mail address, and the address that its author may have meant."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from largesse.base.email import EmailError, normalise_email

_AT = re.compile(r"\s*(?:\(at\)|\[at\]|\{at\}|\s+at\s+|\uff20)\s*", re.IGNORECASE)
_ROUND = " \t\"'<>()[].,;:"
_MAILTO = re.compile(r"mailto:", re.IGNORECASE)
_BLANKS = re.compile(r"\s+")
_AND_MORE = re.compile(r"@\s*[^\s@]+\.[^\s@]+\s+[^\s.@]")  # an address, and a name after it
_DOTS = re.compile(r"\.{2,}")
_COMMAS = re.compile(r"[,;]+")
# Providers whose domain people leave incomplete, beside the domains of the list itself.
_PROVIDERS = ("gmail.com", "outlook.com", "hotmail.com", "icloud.com", "yahoo.com")
_MOST_DOMAINS = 50
_MAX_LENGTH = 320  # of a text that is examined


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
    return "email_wrong" if local and "." in domain else "email_domain" if local else "email_wrong"


def common_domains(emails: Iterable[str]) -> Sequence[str]:
    """Returns the domains that most of these addresses are at, the most frequent first."""
    counts = Counter(email.rpartition("@")[2] for email in emails)
    return [domain for domain, _ in counts.most_common(_MOST_DOMAINS)]


def suggested(email: str, domains: Sequence[str] = ()) -> str | None:
    """Returns the valid address that was probably meant, None if nothing is likely. `domains` are those of the other recipients."""
    if not email or len(email) > _MAX_LENGTH:
        return None
    text = _MAILTO.sub("", _AT.sub("@", email)).strip(_ROUND)
    if _AND_MORE.search(text):
        return None
    text = _DOTS.sub(".", _BLANKS.sub("", text))
    while "@@" in text:
        text = text.replace("@@", "@")
    local, at, domain = text.partition("@")
    known = (*domains, *_PROVIDERS)
    if not at:
        return _valid(_split_off(text, domains))
    domain = _COMMAS.sub(".", domain.strip(".,;"))
    if "." not in domain:
        domain = next((one for one in known if domain and one.startswith(f"{domain.lower()}.")), domain)
    return _valid(f"{local.strip('.')}@{domain}", unlike=email)


def _split_off(text: str, domains: Sequence[str]) -> str:
    """Returns an address whose @ was left out: before a domain of the list, or with a dot in its place."""
    for domain in domains:
        if text.lower().endswith(domain) and len(text) > len(domain):
            return f"{text[: -len(domain)].rstrip('.')}@{domain}"
    return ""


def _valid(email: str, *, unlike: str = "") -> str | None:
    try:
        return normalise_email(email) if email and email != unlike else None
    except EmailError:
        return None
