"""Dates without marks between their numbers, or with those of Japan, China and Korea, as other dates have them."""

import re

from largesse.base.text import plain_digits

# `1990年1月2日`, `平成2年1月2日`, `1月2日`, and the same in Korean.
_EASTERN = re.compile(
    r"(?:(?:(?P<era>明治|大正|昭和|平成|令和) ?)?(?P<year>\d{1,4}|元)[年년] ?)?(?P<month>\d{1,2})[月월] ?(?P<day>\d{1,2})[日일]"
)
_ERAS = {"明治": 1867, "大正": 1911, "昭和": 1925, "平成": 1988, "令和": 2018}  # the years before their first
_JOINED = re.compile(r"(?P<year>(?:19|20)\d{2})(?P<month>0[1-9]|1[0-2])(?P<day>\d{2})")


def normal_date(text: str) -> str:
    """Returns `1990-01-02` for `1990年1月2日`, `平成2年1月2日` or `19900102`, and `01-02` for `1月2日`. Other texts stay, with plain digits."""
    plain = plain_digits(text)
    found = _EASTERN.fullmatch(plain) or _JOINED.fullmatch(plain)
    if found is None:
        return plain
    parts = found.groupdict()
    month_and_day = f"{int(parts['month']):02}-{int(parts['day']):02}"
    if parts["year"] is None:
        return month_and_day
    year = 1 if parts["year"] == "元" else int(parts["year"])
    return f"{year + _ERAS.get(parts.get('era') or '', 0):04}-{month_and_day}"
