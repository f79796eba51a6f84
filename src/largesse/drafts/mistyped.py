"""Finds addresses whose domain looks mistyped, such as `gmail.con` or `gmial.com`."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache

from largesse.base.cooperative import Steps
from largesse.drafts.mailboxes import MOST_DOMAINS, PROVIDERS

# Real domains that differ from a provider's by one letter.
_NOT_MISTYPED = frozenset({"email.com", "mail.com", "ymail.com"})
# Endings that no domain has, by the one that was meant.
_ENDINGS = {
    "com": ("cim", "cmo", "comm", "con", "coom", "cpm", "ocm", "vom", "xom"),
    "net": ("ner", "nte"),
    "org": ("ogr", "orgg"),
}
_MEANT_ENDINGS = {wrong: meant for meant, all_wrong in _ENDINGS.items() for wrong in all_wrong}
_PROVIDER_ENDINGS = frozenset({"cm", "co", "om"})  # of countries; after a provider's name, `.com` was meant
_SHORTEST_LABEL = 4  # characters: `hp.example` and `hq.example` are two companies
_MORE_FREQUENT = 10  # the domain that was meant has at least this many times the addresses of the mistyped one
_DIGITS = re.compile(r"\d+")


def likely_address(email: str) -> str | None:
    """Returns the address that was probably meant, if the domain of a valid address looks mistyped; otherwise None."""
    meant = _likely_domain(_domain(email), 1, {}, _of_providers())
    return None if meant == _domain(email) else f"{email.rpartition('@')[0]}@{meant}"


def likely_addresses(emails: Mapping[int, str]) -> Steps[dict[int, str]]:
    """Returns the addresses that were probably meant, for valid addresses of a list whose domains look mistyped. Both are by row number."""
    counts: Counter[str] = Counter()
    for email in emails.values():
        counts[_domain(email)] += 1
        yield
    meant = yield from likely_domains(counts)
    found: dict[int, str] = {}
    for number, email in emails.items() if meant else ():
        if (domain := meant.get(_domain(email))) is not None:
            found[number] = f"{email.rpartition('@')[0]}@{domain}"
        yield
    return found


def _domain(email: str) -> str:
    return email.rpartition("@")[2].lower()


def likely_domains(counts: Mapping[str, int]) -> Steps[dict[str, str]]:
    """Returns the domains that are probably mistyped, each with the domain that was meant. `counts` are the addresses of each domain.

    Such a domain has an ending that does not exist, such as `.con`. Or it has few addresses, and one letter is missing, added, wrong or moved
    compared with the domain of a provider, or with one of _MORE_FREQUENT times as many addresses. Examines one domain in each step.
    """
    frequent = [one for one, count in Counter(counts).most_common(MOST_DOMAINS) if count >= _MORE_FREQUENT]
    known: dict[str, str] = {}
    for one in frequent:
        known |= dict.fromkeys(_patterns(one), one)
        yield
    known |= _of_providers()
    found: dict[str, str] = {}
    for domain, count in counts.items():
        meant = _likely_domain(domain, count, counts, known)
        if meant != domain:
            found[domain] = meant
        yield
    return found


@cache
def _of_providers() -> Mapping[str, str]:
    return {pattern: one for one in PROVIDERS for pattern in _patterns(one)}


def _likely_domain(domain: str, count: int, counts: Mapping[str, int], known: Mapping[str, str]) -> str:
    name, _, ending = domain.rpartition(".")
    if ending in _MEANT_ENDINGS:
        return f"{name}.{_MEANT_ENDINGS[ending]}"
    if ending in _PROVIDER_ENDINGS and f"{name}.com" in PROVIDERS:
        return f"{name}.com"
    if count >= _MORE_FREQUENT or domain in PROVIDERS or domain in _NOT_MISTYPED:
        return domain
    for meant in (known[pattern] for pattern in _patterns(domain) if pattern in known):
        is_likely = meant in PROVIDERS or counts[meant] >= count * _MORE_FREQUENT
        # Of two that differ in a digit, such as `shop1.example` and `shop2.example`, both are right.
        if is_likely and _DIGITS.sub("", meant) != _DIGITS.sub("", domain):
            return meant
    return domain


def _patterns(domain: str) -> Iterator[str]:
    """Yields texts. Two domains share one of them if they differ by one letter of one label, other than the last."""
    labels = domain.split(".")
    for at, label in enumerate(labels[:-1]):
        if len(label) >= _SHORTEST_LABEL:
            for less in {label, *(label[:n] + label[n + 1 :] for n in range(len(label)))}:
                yield ".".join((*labels[:at], f"{less}*", *labels[at + 1 :]))
