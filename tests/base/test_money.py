import json
from decimal import Decimal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from largesse.base.money import MAX_AMOUNT, AmountError, canonical, exponent, label, prefix, spaced, to_minor, to_number

currencies = st.sampled_from(["GBP", "EUR", "USD", "JPY", "KRW", "KWD", "BHD", "CHF", "CLP", "TND"])


@pytest.mark.parametrize(("currency", "decimals"), [("GBP", 2), ("EUR", 2), ("JPY", 0), ("KWD", 3), ("CLF", 4)])
def test_exponents_come_from_the_cldr(currency: str, decimals: int) -> None:
    assert exponent(currency) == decimals


@given(currencies, st.data())
def test_minor_units_survive_the_way_out_and_back(currency: str, data: st.DataObject) -> None:
    most = MAX_AMOUNT * 10 ** exponent(currency)
    minor = data.draw(st.integers(-most, most))
    number = to_number(minor, currency)
    assert type(number) is float
    assert to_minor(number, currency) == minor
    assert to_minor(json.loads(json.dumps(number)), currency) == minor
    assert to_minor(Decimal(canonical(minor, currency)), currency) == minor


@given(currencies, st.integers(0, 5000 * MAX_AMOUNT * 1000))
def test_the_cost_of_the_largest_order_is_exact_as_a_double(currency: str, total_minor: int) -> None:
    assume(total_minor <= 5000 * MAX_AMOUNT * 10 ** exponent(currency))
    number = to_number(total_minor, currency)
    assert round(Decimal(repr(number)) * 10 ** exponent(currency)) == total_minor


@given(currencies, st.decimals(-MAX_AMOUNT, MAX_AMOUNT, allow_nan=False, places=6))
def test_what_is_finer_than_the_minor_unit_is_refused_never_rounded(currency: str, amount: Decimal) -> None:
    exact = amount * 10 ** exponent(currency)
    if exact == int(exact):
        assert to_minor(amount, currency) == exact
    else:
        most = f"at most {exponent(currency)}" if exponent(currency) else "no"
        with pytest.raises(AmountError, match=f"must have {most} decimals in {currency}"):
            to_minor(amount, currency)


@given(currencies, st.floats())
def test_any_double_is_an_exact_amount_or_refused(currency: str, amount: float) -> None:
    try:
        minor = to_minor(amount, currency)
    except AmountError:
        return
    assert type(minor) is int
    assert Decimal(repr(amount)) * 10 ** exponent(currency) == minor


@pytest.mark.parametrize(
    ("amount", "currency", "minor"),
    [
        (0.1, "GBP", 10),
        (0.29, "GBP", 29),
        (1.15, "GBP", 115),
        (4.35, "GBP", 435),
        (1001.01, "GBP", 100101),
        (0.001, "KWD", 1),
        (500.0, "JPY", 500),
        (10, "GBP", 1000),
        (Decimal("9.990"), "GBP", 999),
        (1e9, "GBP", 10**11),
        (-0.0, "GBP", 0),
    ],
)
def test_amounts_that_binary_fractions_would_spoil(amount: float | Decimal, currency: str, minor: int) -> None:
    assert to_minor(amount, currency) == minor


@pytest.mark.parametrize(
    ("amount", "currency", "said"),
    [
        (float("nan"), "GBP", "finite"),
        (float("inf"), "GBP", "finite"),
        (Decimal("NaN"), "GBP", "finite"),
        (Decimal("sNaN"), "GBP", "finite"),
        (Decimal("-Infinity"), "GBP", "finite"),
        (1e9 + 0.01, "GBP", "at most 1000000000"),
        (-1e9 - 1, "GBP", "at most 1000000000"),
        (10**9 + 1, "GBP", "at most 1000000000"),
        (1e308, "GBP", "at most 1000000000"),
        (0.001, "GBP", "at most 2 decimals in GBP"),
        (0.5, "JPY", "no decimals in JPY"),
        (5e-324, "GBP", "at most 2 decimals in GBP"),
    ],
)
def test_no_amount(amount: float | Decimal, currency: str, said: str) -> None:
    with pytest.raises(AmountError, match=said):
        to_minor(amount, currency)


@pytest.mark.parametrize(
    ("minor", "currency", "text", "shown"),
    [
        (1000, "GBP", "10.00", "£10.00"),
        (123456789, "GBP", "1234567.89", "£1,234,567.89"),
        (5, "GBP", "0.05", "£0.05"),
        (500, "JPY", "500.00", "¥500"),
        (1250, "KWD", "1.25", "KWD 1.250"),
        (1125, "KWD", "1.125", "KWD 1.125"),
        (5000, "KWD", "5.00", "KWD 5.000"),
        (0, "KWD", "0.00", "KWD 0.000"),
        (1000, "EUR", "10.00", "€10.00"),
        (1000, "CHF", "10.00", "CHF 10.00"),
    ],
)
def test_canonical_text_and_label(minor: int, currency: str, text: str, shown: str) -> None:
    assert canonical(minor, currency) == text
    assert label(minor, currency) == shown
    assert shown.startswith(prefix(currency))


def test_an_amount_on_an_axis_has_the_space_that_others_have() -> None:
    assert [spaced(one) for one in ("KWD40", "£2.5K", "2,5 Mio. €")] == [
        "KWD\N{NO-BREAK SPACE}40",
        "£2.5K",
        "2,5 Mio. €",
    ]
