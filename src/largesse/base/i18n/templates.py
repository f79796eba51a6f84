"""Templates that speak a language, and the catalogues they take their texts from."""

from __future__ import annotations

import gettext
import io
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import jinja2
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from jinja2 import nodes
from jinja2.ext import InternationalizationExtension
from jinja2.runtime import Context
from markupsafe import Markup

from largesse.base.i18n.languages import DEFAULT, LANGUAGES, Language

CATALOGUES = Path(__file__).parent / "locale"
_PLACEHOLDER = re.compile(r"%\((\w+)\)s")


class _Translated(InternationalizationExtension):
    """Jinja's `{% trans %}`, its texts put in the place of the English ones when a template is compiled.

    An environment speaks one language, so nothing is looked up while it renders: a letter takes half the time.
    Plurals, which a number decides, are looked up as Jinja does.
    """

    def _make_node(
        self, singular: str, plural: str | None, context: str | None, variables: dict[str, nodes.Expr], *more: object
    ) -> nodes.Output:
        if plural is not None or context is not None:
            return super()._make_node(singular, plural, context, variables, *more)  # type: ignore[arg-type]
        # Words and the names of variables in turn.
        parts = _PLACEHOLDER.split(self.environment.texts.gettext(singular))  # type: ignore[attr-defined]
        return nodes.Output(
            [
                variables[part] if place % 2 else nodes.TemplateData(part.replace("%%", "%"))
                for place, part in enumerate(parts)
            ]
        )


def template_environment(
    folder: Path | tuple[Path, ...], tag: str, catalogues: Path | tuple[Path, ...] = CATALOGUES
) -> jinja2.Environment:
    """Returns the templates of `folder`, or of several in order of precedence, in the language `tag`. Values in files named `*.html` are escaped.

    `catalogues` has the texts of each language: in a file called after its tag, or in several in a folder so called.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        autoescape=jinja2.select_autoescape(["html"]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        extensions=[_Translated],
        auto_reload=False,
    )
    environment.policies["ext.i18n.trimmed"] = True
    texts = translations(tag, catalogues)
    environment.extend(texts=texts)
    environment.install_gettext_translations(texts, newstyle=True)  # type: ignore[attr-defined]
    environment.globals["ngettext"] = _counting(texts, LANGUAGES.get(tag, DEFAULT))
    return environment


def _counting(texts: gettext.NullTranslations, language: Language) -> Callable[..., str]:
    """Returns Jinja's `ngettext`, which writes whole numbers as the language does: `1,204`."""

    @jinja2.pass_context
    def ngettext(context: Context, singular: str, plural: str, number: int, **values: object) -> str:
        said = texts.ngettext(singular, plural, number)
        shown = {name: language.number(value) if type(value) is int else value for name, value in values.items()}
        return (Markup(said) if context.eval_ctx.autoescape else said) % shown  # noqa: S704 - our own text; `%` escapes values

    return ngettext


@cache
def translations(tag: str, catalogues: Path | tuple[Path, ...] = CATALOGUES) -> gettext.NullTranslations:
    """Returns the texts of a language, read from its catalogue; English is what templates and code say."""
    folders = (catalogues,) if isinstance(catalogues, Path) else catalogues
    paths = [
        path
        for folder in folders
        for path in (folder / f"{tag}.po", *sorted((folder / tag).glob("*.po")))
        if path.exists()
    ]
    if not paths:
        return gettext.NullTranslations()
    catalogue = Catalog(locale=tag)
    for path in paths:
        with path.open("rb") as file:
            for message in read_po(file, locale=tag):
                catalogue[message.id] = message
    compiled = io.BytesIO()
    write_mo(compiled, catalogue)
    compiled.seek(0)
    return gettext.GNUTranslations(compiled)


def text(english: str) -> str:
    """Marks a text of the code that is said later, in the language of its reader."""
    return english
