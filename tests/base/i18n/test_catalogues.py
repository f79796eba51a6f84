"""The catalogues say every text of pages and mail, in every language, and nothing else."""

import re
from collections.abc import Iterator
from pathlib import Path

import jinja2
import pytest
from babel.messages.pofile import read_po
from jinja2.ext import babel_extract

import largesse
import largesse.web.console
from largesse.base.i18n.languages import LANGUAGES
from largesse.base.i18n.templates import CATALOGUES, template_environment
from largesse.mail import rendering as mail
from largesse.web.claim import rendering as pages
from largesse.web.claim.addresses import address_fields

FOLDERS = (pages.TEMPLATES, mail.TEMPLATES)
PLACEHOLDER = re.compile(r"%\(\w+\)s")
ELIDED = re.compile(r"\b(de|que) %\((account|company|customer|gift|name|recipient|sender|source|to|what|who)\)s")
Text = str | tuple[str, ...]  # with its plural, where a number decides


def templates() -> Iterator[Path]:
    for folder in FOLDERS:
        yield from (path for path in sorted(folder.iterdir()) if path.suffix in {".html", ".txt"})


def texts() -> set[Text]:
    """Every text of the templates."""
    found: set[Text] = set()
    for path in templates():
        with path.open("rb") as file:
            for _, _, text, _ in babel_extract(
                file, ("gettext", "ngettext"), (), {"trimmed": "true", "silent": "false"}
            ):
                found.add(text if isinstance(text, str) else tuple(part for part in text if part))
    return found


def forms(text: Text | list[str]) -> list[str]:
    return [text] if isinstance(text, str) else list(text)


@pytest.mark.parametrize("tag", [tag for tag in LANGUAGES if tag != "en"])
def test_a_catalogue_says_everything_and_nothing_else(tag: str) -> None:
    with (CATALOGUES / f"{tag}.po").open("rb") as file:
        catalogue = read_po(file, locale=tag)
    said = {message.id: message for message in catalogue if message.id}
    assert said.keys() == texts()
    for text, message in said.items():
        assert not message.fuzzy, text
        assert len(forms(message.string)) == (catalogue.num_plurals if isinstance(text, tuple) else 1), text
        wanted = sorted(PLACEHOLDER.findall(forms(text)[-1]))
        for form in forms(message.string):
            assert form, text
            # "Within a day" may do without its number.
            assert sorted(PLACEHOLDER.findall(form)) in (wanted, [w for w in wanted if w != "%(count)s"]), text
        assert sorted(PLACEHOLDER.findall(forms(message.string)[-1])) == wanted, text


def test_each_catalogue_names_its_forms_of_plurals() -> None:
    """Babel's own change with its releases: French has two or three."""
    paths = list(Path(largesse.__file__).parent.rglob("*.po"))
    assert len(paths) > 10
    assert [path for path in paths if '\n"Plural-Forms: nplurals=' not in path.read_text()] == []


def test_no_text_is_said_twice_in_a_row() -> None:
    """A new translation above the lines of the old one: together they would be one text."""
    twice = re.compile(r'^msgstr(?:\[\d\])? "[^"\n].*"\n".*', re.MULTILINE)
    paths = Path(largesse.__file__).parent.rglob("*.po")
    assert [found[0] for path in paths for found in twice.finditer(path.read_text())] == []


def test_there_is_a_catalogue_for_each_language_but_english() -> None:
    assert {path.stem for path in CATALOGUES.iterdir()} == set(LANGUAGES) - {"en"}


@pytest.mark.parametrize("path", list(templates()), ids=lambda path: f"{path.parent.parent.name}/{path.name}")
def test_every_text_in_a_template_can_be_translated(path: Path) -> None:
    bare = re.sub(
        r"\{%[-+]?\s*trans.*?endtrans\s*-?%\}|\{#.*?#\}|\{[{%].*?[%}]\}|<style>.*?</style>|<[^>]*>",
        " ",
        path.read_text(),
        flags=re.DOTALL,
    )
    bare = re.sub(r'[\w-]+="[^"]*"', " ", bare)
    assert not re.search(r"[A-Za-z]{3,}", bare), bare.split()


def test_french_puts_no_word_that_is_elided_before_a_name() -> None:
    """It would be d'Acme, but de Globex, and qu'Acme, but que Globex."""
    paths = [*CATALOGUES.parents[2].rglob("locale/fr.po"), *CATALOGUES.parents[2].rglob("locale/fr/*.po")]
    assert len(paths) > 20
    for path in paths:
        with path.open("rb") as file:
            said = [form for message in read_po(file) for form in forms(message.string)]
        assert not [form for form in said if ELIDED.search(form)], path


def test_plurals_follow_the_language() -> None:
    """French says one for nothing, too; English does not."""
    template = (
        "{% trans count=n %}Use it within {{ count }} day of opening it."
        "{% pluralize %}Use it within {{ count }} days of opening it.{% endtrans %}"
    )

    def say(tag: str, n: int) -> str:
        return template_environment(mail.TEMPLATES, tag).from_string(template).render(n=n)

    assert [say("en", n) for n in (1, 2)] == [f"Use it within {d} of opening it." for d in ("1 day", "2 days")]
    assert "1 jour " in say("fr", 1)
    assert "2 jours " in say("fr", 2)
    assert "eines Tages" in say("de", 1)
    assert "2 Tagen" in say("de", 2)


# Words that docs/glossary.md has another word for.
REPLACED = {
    "de": r"Audit-Log|[Vv]ersandt|Web-App|Ersatzcode|freiwillig|Sammlung|Seed-Datei|[Vv]erschick|erneut|(?<!-)\bMails?\b",
    "fr": r"[Cc]lés? API|champs? (inconnu|{)|courriel|rechargement|fichier de configuration|cadeaux non retirés",
}


@pytest.mark.parametrize("tag", list(REPLACED))
def test_texts_have_the_words_of_the_glossary(tag: str) -> None:
    paths = [path for path in Path(largesse.__file__).parent.rglob("*.po") if tag in {path.stem, path.parent.name}]
    assert len(paths) > 20
    for path in paths:
        with path.open("rb") as file:
            for message in read_po(file):
                for text in forms(message.string):
                    assert not re.search(REPLACED[tag], text), (path.name, text)


def test_an_address_in_german_asks_for_the_state_of_a_country() -> None:
    address = template_environment(pages.TEMPLATES, "de").get_template("address.html").module
    field = next(field for field in address_fields("US") if field.kind == "state")
    assert address.field_label(field).strip() == "Bundesstaat"  # type: ignore[attr-defined]


def test_french_marks_follow_a_space_that_does_not_break() -> None:
    """Before ; ! and ? a narrow one, before : and within « » an ordinary one."""
    root = Path(largesse.__file__).parent
    paths = [path for path in root.rglob("*.po") if "fr" in {path.stem, path.parent.name}]
    assert len(paths) > 20
    for path in paths:
        with path.open("rb") as file:
            for message in read_po(file):
                for text in forms(message.string):
                    assert not re.search("\\w [;:!?»]|« |[\u00a0][;!?]|[\u202f][:»]", text), (path.name, text)


CONSOLE = Path(largesse.web.console.__file__).parent / "templates"


def test_a_release_installed_later_changes_no_template(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jinja2.FileSystemLoader, "get_source", lambda *_: ("of the next release", None, None))
    for path in CONSOLE.rglob("*.html"):
        source, *_ = template_environment(CONSOLE, "en").loader.get_source(None, str(path.relative_to(CONSOLE)))  # type: ignore[union-attr, arg-type]
        assert source == path.read_text(encoding="utf-8")
