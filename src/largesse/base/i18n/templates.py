"""Templates in a language, and the catalogues of their texts."""

import gettext
import io
import re
from collections.abc import Callable, Mapping
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

_PACKAGE = Path(__file__).parents[2]
CATALOGUES = Path(__file__).parent / "locale"
_PLACEHOLDER = re.compile(r"%\((\w+)\)s")


@cache
def read_templates() -> Mapping[str, str]:
    """Returns the texts of this package's templates by their paths, as they were at the first call.

    A process that renders calls it when it starts. Templates of a release that is installed later do not fit its code.
    """
    paths = _PACKAGE.rglob("templates/**/*.*")
    return {str(path): path.read_text(encoding="utf-8") for path in paths if path.suffix in {".html", ".txt"}}


class _Loader(jinja2.FileSystemLoader):
    """Loads the templates of this package from `read_templates`, and others from their folders."""

    def get_source(self, environment: jinja2.Environment, template: str) -> tuple[str, str, Callable[[], bool]]:
        """Returns a template's text, its path, and whether it is current. Raises jinja2.TemplateNotFound."""
        for folder in self.searchpath:
            path = str(Path(folder) / template)
            if (text := read_templates().get(path)) is not None:
                return text, path, lambda: True
        return super().get_source(environment, template)


class _Translated(InternationalizationExtension):
    """Jinja's `{% trans %}`, which inserts the translated texts when a template is compiled.

    An environment has one language. So rendering looks up no texts, and a mail takes half the time.
    Plurals depend on a number, so Jinja looks them up when it renders.
    """

    def _make_node(
        self, singular: str, plural: str | None, context: str | None, variables: dict[str, nodes.Expr], *more: object
    ) -> nodes.Output:
        if plural is not None or context is not None:
            return super()._make_node(singular, plural, context, variables, *more)  # type: ignore[arg-type]
        # Words and names of variables alternate.
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
    """Returns the templates of one folder, or of several in order of precedence, in the language `tag`. Values in `*.html` files are escaped.

    `catalogues` has the texts of each language, in a file named after its tag, or in the files of a folder with that name.
    """
    environment = jinja2.Environment(
        loader=_Loader(folder),
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
    """Returns Jinja's `ngettext` with whole numbers in the format of the language: `1,204`."""

    @jinja2.pass_context
    def ngettext(context: Context, singular: str, plural: str, number: int, **values: object) -> str:
        said = texts.ngettext(singular, plural, number)
        shown = {name: language.number(value) if type(value) is int else value for name, value in values.items()}
        return (Markup(said) if context.eval_ctx.autoescape else said) % shown  # noqa: S704 - our own text; `%` escapes values

    return ngettext


@cache
def translations(tag: str, catalogues: Path | tuple[Path, ...] = CATALOGUES) -> gettext.NullTranslations:
    """Returns the texts of a language from its catalogue. English has none, as templates and code are in English."""
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
