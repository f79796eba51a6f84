"""The colours of all pages: text reaches 7:1 on every ground it stands on, lines round fields 3:1, in both schemes."""

import itertools
import re
from pathlib import Path

import pytest

from largesse.web.kit import assets

CSS = (Path(assets.__file__).parent / "shared/tokens.css").read_text()
CONSOLE = sorted((Path(assets.__file__).parents[1] / "console/assets").glob("*.css"))
SIZES = {"12", "13", "14", "15", "22", "26"}
TEXT = [
    *itertools.product(("ink", "soft", "link"), ("panel", "ground", "raised")),
    *((name, f"{name}-tint") for name in ("good", "bad", "wait")),
    *itertools.product(("good", "bad", "wait"), ("panel",)),
    ("link", "accent-tint"),
    ("accent-ink", "accent"),
    ("test-ink", "test"),
]
LINES = [("edge", "panel"), ("edge", "ground"), ("plot", "panel")]


def colours(scheme: str) -> dict[str, str]:
    light, dark = CSS.split("@media screen and (prefers-color-scheme: dark)")
    found = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", light))
    return found | dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", dark)) if scheme == "dark" else found


def luminance(colour: str) -> float:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_by_everybody(scheme: str) -> None:
    of = colours(scheme)
    assert {
        (text, ground): contrast(of[text], of[ground]) for text, ground in TEXT if contrast(of[text], of[ground]) < 7
    } == {}
    assert {pair for pair in LINES if contrast(of[pair[0]], of[pair[1]]) < 3} == set()


def test_the_contrast_is_that_of_the_guidelines() -> None:
    assert contrast("#000000", "#ffffff") == 21
    assert round(contrast("#767676", "#ffffff"), 2) == 4.54


def test_the_web_application_has_six_sizes_of_letters() -> None:
    assert set(re.findall(r"--t(\d+): ", CSS)) == SIZES
    for path in CONSOLE:
        for size in re.findall(r"font-size: ([^;}]+)", path.read_text()):
            # Charts have units of their own, and phones enlarge a page for fields with smaller letters.
            assert (
                re.fullmatch(r"var\(--t\d\d\)", size) or size in {"1rem", "inherit"} or re.fullmatch(r"\d\dpx", size)
            ), (path.name, size)


def test_lines_and_layouts_grow_with_the_letters() -> None:
    for path in CONSOLE:
        css = path.read_text()
        assert re.findall(r"line-height: \d+px", css) == [], path.name
        assert re.findall(r"@media \([^{]*\dpx[^{]*", css) == [], (
            f"{path.name}: of who has larger letters, em is larger"
        )
