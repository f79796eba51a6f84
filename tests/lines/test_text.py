import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from largesse.lines.codes import CodeError, format_code, parse_code

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
codes = st.binary(min_size=10, max_size=10)


@given(codes)
def test_a_code_reads_back(code: bytes) -> None:
    text = format_code(code)
    assert len(text) == 21
    assert set(text) <= set(ALPHABET + "-")
    assert parse_code(text) == code


@pytest.mark.long
@given(codes, st.data())
def test_a_code_reads_back_as_people_type_it(code: bytes, data: st.DataObject) -> None:
    def typed(character: str) -> st.SearchStrategy[str]:
        alike = {"0": "0oO", "1": "1iIlL"}.get(character, character + character.lower())
        blank = st.text("- ", max_size=1)
        return st.builds(lambda before, c: before + c, blank, st.sampled_from(alike))

    text = "".join(data.draw(typed(c)) for c in format_code(code).replace("-", ""))
    assert parse_code(text) == code


@given(codes, st.integers(0, 16), st.sampled_from(ALPHABET))
def test_one_wrong_character_is_noticed(code: bytes, at: int, character: str) -> None:
    text = format_code(code).replace("-", "")
    assume(text[at] != character)
    with pytest.raises(CodeError):
        parse_code(text[:at] + character + text[at + 1 :])


@given(codes, st.integers(0, 16), st.integers(0, 16))
def test_two_swapped_characters_are_noticed_wherever_they_stand(code: bytes, at: int, other: int) -> None:
    text = list(format_code(code).replace("-", ""))
    assume(text[at] != text[other])
    text[at], text[other] = text[other], text[at]
    with pytest.raises(CodeError):
        parse_code("".join(text))


@given(st.text() | st.text(ALPHABET, max_size=20))
def test_any_text_is_a_code_or_refused(text: str) -> None:
    try:
        code = parse_code(text)
    except CodeError:
        return
    assert len(code) == 10
    assert parse_code(format_code(code)) == code


@pytest.mark.parametrize("text", ["", "0" * 16, "0" * 18, "U" * 17, "0" * 16 + "!", "0" * 65, "\u0660" * 17])
def test_what_is_no_code(text: str) -> None:
    with pytest.raises(CodeError):
        parse_code(text)


def test_the_code_of_zeros() -> None:
    assert format_code(bytes(10)) == "0000-0000-0000-0000-0"
