import pytest
from babel.numbers import format_currency
from hypothesis import given
from hypothesis import strategies as st

from largesse.base.amounts import ANY_CURRENCY, LONGEST_AMOUNT, UnreadableAmount, example_amount, number_in, read_amount
from largesse.base.i18n.languages import LANGUAGES, Language
from largesse.base.money import MAX_AMOUNT, exponent, to_decimal

languages = st.sampled_from(list(LANGUAGES.values()))
currencies = st.sampled_from(["GBP", "EUR", "USD", "CHF", "CNY", "JPY", "KRW", "KWD", "BHD"])
EN, FR, DE = (LANGUAGES[tag] for tag in ("en", "fr", "de"))


@given(languages, currencies, st.data())
def test_what_is_written_for_a_reader_is_read_back(language: Language, currency: str, data: st.DataObject) -> None:
    minor = data.draw(st.integers(1, MAX_AMOUNT * 10 ** exponent(currency)))
    for shown in (
        language.amount(minor, currency),
        language.typed(minor, currency),
        format_currency(to_decimal(minor, currency), currency, locale=language.locale),
        format_currency(to_decimal(minor, currency), currency, "#,##0.00 ¤¤", locale=language.locale),
    ):
        assert len(shown) <= LONGEST_AMOUNT
        assert read_amount(shown, currency, language) == minor, shown


@given(languages, currencies)
def test_the_example_can_be_typed(language: Language, currency: str) -> None:
    assert read_amount(example_amount(currency, language), currency, language) > 0


@given(currencies, st.text("0123456789.,' ", min_size=1, max_size=12))
def test_two_languages_read_one_amount_or_differ_by_a_mark_before_three_digits(currency: str, typed: str) -> None:
    """What one language reads as another amount than the next is one mark before three digits, in a currency of three decimals."""
    found = set()
    for language in LANGUAGES.values():
        try:
            found.add(read_amount(typed, currency, language))
        except UnreadableAmount:
            continue
    if len(found) > 1:
        assert exponent(currency) == 3
        assert max(found) == 1000 * min(found)


@pytest.mark.parametrize(
    ("typed", "currency", "language", "minor"),
    [
        ("1,000", "GBP", EN, 100000),
        ("1,000", "JPY", EN, 1000),
        ("1,000", "KWD", EN, 1000000),
        ("1,000", "KWD", DE, 1000),
        ("1.000", "KWD", EN, 1000),
        ("1.000", "EUR", DE, 100000),
        ("1.000,50", "EUR", EN, 100050),
        ("1,000.50", "EUR", DE, 100050),
        ("1,000,000", "EUR", FR, 100000000),
        ("1 000,50", "EUR", FR, 100050),
        ("1\u202f000,50", "EUR", EN, 100050),
        ("1\u00a0000.50", "EUR", EN, 100050),
        ("1'000.50", "CHF", DE, 100050),
        ("1\u2019000.50", "CHF", DE, 100050),
        ("10,5", "EUR", EN, 1050),
        ("10.5", "EUR", DE, 1050),
        ("007", "EUR", DE, 700),
        ("0,500", "KWD", EN, 500),
        ("500.00", "JPY", EN, 500),
        (" £25 ", "GBP", EN, 2500),
        ("\u202d25.50\u202c", "GBP", EN, 2550),
        ("25\u00a0€\u200b", "EUR", DE, 2500),
        ("25 gbp", "GBP", EN, 2500),
        ("GBP 25 £", "GBP", EN, 2500),
        ("€ 25,00", "EUR", EN, 2500),
        ("25 €", "EUR", FR, 2500),
        ("10 Euro", "EUR", EN, 1000),
        ("1.000,50 Euro", "EUR", DE, 100050),
        ("10 euros", "EUR", FR, 1000),
        ("EUR 10", "EUR", DE, 1000),
        ("10 pounds", "GBP", EN, 1000),
        ("10 livres sterling", "GBP", FR, 1000),
        ("10 Franken", "CHF", DE, 1000),
        ("10 dollars", "USD", FR, 1000),
        ("$25", "USD", EN, 2500),
        ("25,-", "EUR", DE, 2500),
        ("25.\u2013", "CHF", DE, 2500),
        ("\uff11\uff12.\uff15", "GBP", EN, 1250),
        ("\uffe5\uff11\uff0c\uff10\uff10\uff10", "JPY", EN, 1000),
        ("\uff11\uff0e\uff10\uff10\uff10", "EUR", DE, 100000),
        ("\u0661\u0662", "KWD", EN, 12000),
        ("500 yen", "JPY", EN, 500),
        ("KD 5", "KWD", EN, 5000),
        ("C$50", "CAD", EN, 5000),
        ("500 kr.", "SEK", EN, 50000),
        ("kr.500", "DKK", EN, 50000),
        ("Fr. 25.-", "CHF", DE, 2500),
        ("20 zł", "PLN", EN, 2000),
        ("Rs. 1,000", "INR", EN, 100000),
        ("500円", "JPY", EN, 500),
        ("1000000000", "GBP", EN, 10**11),
        ("0.01", "GBP", EN, 1),
    ],
)
def test_amounts_that_mean_one_thing(typed: str, currency: str, language: Language, minor: int) -> None:
    assert read_amount(typed, currency, language) == minor


@pytest.mark.parametrize(
    ("typed", "currency", "language", "said"),
    [
        ("", "GBP", EN, "Type an amount, such as 1,000.50."),
        ("  ", "JPY", DE, "Type an amount, such as 1.000."),
        ("1.000", "GBP", EN, "“1.000” can mean £1,000.00 or £1.00. If you mean £1,000.00, type 1000.00."),
        ("1.234", "GBP", EN, "“1.234” can mean £1,234.00 or 1.234 GBP."),
        ("1,000", "EUR", DE, "can mean 1.000,00\u00a0€ or 1,00\u00a0€"),
        ("1,000", "EUR", FR, "can mean"),
        ("1.000", "EUR", FR, "can mean"),
        ("1.000", "KWD", FR, "can mean"),
        ("0,500", "GBP", EN, "more decimals than GBP allows"),
        ("1000,000", "GBP", EN, "more decimals than GBP allows"),
        ("10.5", "JPY", EN, "more decimals than JPY allows"),
        ("1.0001", "KWD", EN, "more decimals than KWD allows"),
        ("0", "GBP", EN, "“0” is not above zero"),
        ("0.00", "GBP", EN, "is not above zero"),
        ("-5", "GBP", EN, "is not above zero"),
        ("\u22125", "GBP", EN, "is not above zero"),
        ("£-5", "GBP", EN, "is not above zero"),
        ("(5)", "GBP", EN, "is not above zero"),
        ("5-", "GBP", EN, "is not above zero"),
        ("1000000000.01", "GBP", EN, "is more than £1,000,000,000.00"),
        ("€25", "GBP", EN, "“€” does not belong in an amount in GBP"),
        ("25 EUR", "GBP", EN, "“EUR” does not belong in an amount in GBP"),
        ("$25", "CAD", EN, "“$” does not belong in an amount in CAD"),
        (
            "10 Euro",
            "GBP",
            EN,
            "“Euro” does not belong in an amount in GBP. Type the amount in digits, such as 1,000.50.",
        ),
        ("10 dollars", "CAD", EN, "“dollars” does not belong in an amount in CAD"),
        ("+25", "GBP", EN, "“+” does not belong in an amount in GBP"),
        ("25k", "GBP", EN, "“k” does not belong in an amount in GBP"),
        ("£5", ANY_CURRENCY, EN, "is not an amount"),
        ("1e2", "GBP", EN, "is not an amount"),
        ("NaN", "GBP", EN, "is not an amount"),
        ("1,00,000", "GBP", EN, "is not an amount"),
        ("1,0000", "JPY", EN, "more decimals"),
        ("1.000 000,50", "GBP", EN, "is not an amount"),
        ("1  000", "GBP", EN, "is not an amount"),
        ("25 kr.", "GBP", EN, "“kr.” does not belong in an amount in GBP"),
        ("£. 25", "GBP", EN, "is not an amount"),
        ("25 kr..", "SEK", EN, "is not an amount"),
        ("5 and 6", "GBP", EN, "is not an amount"),
        (".50", "GBP", EN, "“.50” is not an amount"),
        ("5.", "GBP", EN, "“5.” is not an amount"),
        ("twenty", "GBP", EN, "with the digits 0 to 9"),
        ("\uff0d\uff15", "JPY", EN, "is not above zero"),
        ("1\u066b500", "KWD", EN, "is not an amount"),
        ("1\u00b2", "GBP", EN, "“\u00b2” does not belong in an amount in GBP"),
        ("1" * (LONGEST_AMOUNT + 1), "GBP", EN, "… is not an amount"),
        ("1" * LONGEST_AMOUNT, "GBP", EN, "is more than"),
    ],
)
def test_everything_else_is_refused_with_what_was_understood(
    typed: str, currency: str, language: Language, said: str
) -> None:
    with pytest.raises(UnreadableAmount) as refused:
        read_amount(typed, currency, language)
    assert said.replace("… is", "…” is") in str(refused.value)


def test_a_number_stands_alone_or_beside_its_own_currency() -> None:
    for typed in ("1,000", " £1,000 ", "1,000 GBP", "gbp 1,000"):
        assert number_in(typed, "GBP") == "1,000"
    assert number_in("1" * 40, "GBP") == "1" * 40
    for typed in ("", "one", "1e2", "€1,000", "1,000 EUR", "1" * 41):
        with pytest.raises(ValueError, match=r"is not an amount|€|EUR"):
            number_in(typed, "GBP")
