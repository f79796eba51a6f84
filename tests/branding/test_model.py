"""Colours that can be read whatever was chosen, and subjects."""

import itertools

import pytest

from largesse.branding.model import Brand, BrandFault, check_subject, colours_of, contrast, ink_on, mixed, read_colour


@pytest.mark.parametrize(
    ("typed", "colour"),
    [
        ("#17605b", "#17605b"),
        (" #ABC ", "#aabbcc"),
        ("17605B", "#17605b"),
        ("", None),
        ("#12", None),
        ("#12345", None),
        ("#1234567", None),
        ("red", None),
        ("#17605b;}</style><script>", None),
        ("url(https://evil.example)", None),
        ("#\uff11\uff17\uff16\uff10\uff15b", None),
    ],
)
def test_a_colour_is_three_or_six_digits(typed: str, colour: str | None) -> None:
    assert read_colour(typed) == colour


def test_contrast_is_that_of_the_guidelines() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
    assert contrast("#17605b", "#17605b") == 1


@pytest.mark.slow
def test_every_colour_can_be_read() -> None:
    levels = range(0, 256, 17)
    for red, green, blue in itertools.product(levels, levels, levels):
        colours = colours_of(f"#{red:02x}{green:02x}{blue:02x}")
        assert contrast(colours.ink, colours.fill) >= 4.5
        assert contrast(colours.link, "#ffffff") >= 4.5
        assert contrast(colours.link, "#f1f1f1") >= 4.5
        assert contrast(colours.dark_link, "#1a2122") >= 4.5
        # What is printed on a wrapping stands out from it.
        assert contrast(mixed(colours.fill, ink_on(colours.fill), 0.35), colours.fill) > 1.2


def test_a_colour_that_can_be_read_stays() -> None:
    assert colours_of("#17605b").link == "#17605b"
    assert colours_of("#8fd8cf").dark_link == "#8fd8cf"
    assert colours_of("#ffdd00").link != "#ffdd00"


@pytest.mark.parametrize("subject", ["{name}", "Hello {sender", "}", "{sender.__class__}", "{0}", "{{sender}}"])
def test_a_subject_has_one_placeholder(subject: str) -> None:
    with pytest.raises(BrandFault, match="subject"):
        check_subject(subject)


def test_a_subject_names_the_sender() -> None:
    check_subject("From {sender}, with {sender}")
    assert Brand(subject="From {sender}").subject_from("Ada {x}") == "From Ada {x}"
    assert Brand(subject="From {sender}").subject_from("") is None
    assert Brand(subject="A gift").subject_from("") == "A gift"
    assert Brand().subject_from("Ada") is None
