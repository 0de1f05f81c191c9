"""A report as one HTML file: inline SVG, no script, nothing loaded, made to be printed.

The HTML is that of the templates beside this file, in which every text is escaped.
"""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined

from compilewatch.dashboard.document.content import Content, Lines, Section, Table
from compilewatch.dashboard.document.svg import let_through
from compilewatch.dashboard.links.links import Page, read_url
from compilewatch.dashboard.text.foreign_text import unticked
from compilewatch.db import units
from compilewatch.db.errors import visible

LONGEST_CELL = 300
_LONGEST_CAPTION = 2_000
_SHORT_CELL = 24
# Nothing may be loaded or run, wherever the file is opened.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

FORM_POLICY = POLICY.replace("form-action 'none'", "form-action 'self'")
"""The same for a page with a form that is sent to us."""


def render(content: Content) -> str:
    """The whole file, from `content` alone. That of one model, which has all its tabs, is in two columns on
    paper.
    """
    link, _ = read_url(content.link)
    of_one = link.page is Page.WORKLOAD and link.focus is not None
    body = _TEMPLATES.get_template("report.html").render(content=content, of_one=of_one)
    return document(content.title, _description(content), body)


def document(title: str, description: str, body: str, *, policy: str = POLICY) -> str:
    """An HTML file with title and preview tags around `body`, which is HTML already."""
    return _TEMPLATES.get_template("document.html").render(
        title=title, description=description, body=body, policy=policy
    )


def message(title: str, text: str) -> str:
    """A page that says one thing: that there is no report here, or not any more."""
    return document(title, text, _TEMPLATES.get_template("message.html").render(title=title, sentence=text))


def section_html(section: Section, number: int) -> str:
    """`section` as HTML; `number` keeps the charts of one page apart."""
    return str(_TEMPLATES.get_template("sections.html").module.shown(section, number))  # type: ignore[attr-defined]


def _text(text: str, longest: int = LONGEST_CELL) -> str:
    """`text` with control characters as escapes, cut where no reader would go on; the template escapes it."""
    clean = visible(unticked(text.translate({ord(char): " " for char in "\n\r\t"})))
    return clean if len(clean) <= longest else f"{clean[: longest - 1]}…"


def _description(content: Content) -> str:
    """The first sentence, and when it was true."""
    first = next(
        (section.lines[0] for section in content.sections if isinstance(section, Lines) and section.lines),
        content.subject,
    )
    return f"{first} Frozen {units.moment(content.created_at)}."


def _classes(table: Table) -> list[str]:
    """Numbers stand on the right; they and what is short everywhere in a column, a verdict, keep one line."""
    longest = [max(map(len, cells), default=_SHORT_CELL + 1) for cells in zip(*table.rows, strict=True)]
    short = [length <= _SHORT_CELL for length in longest] or [False] * len(table.columns)
    return [
        "n" if column.numeric else "s" if fits else ""
        for column, fits in zip(table.columns, short, strict=True)
    ]


_TEMPLATES = Environment(
    loader=PackageLoader("compilewatch.dashboard.document"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.globals["longest_caption"] = _LONGEST_CAPTION
_TEMPLATES.filters |= {
    "text": _text,
    "classes": _classes,
    "drawing": lambda svg, number: let_through(svg, number=number),
    "moment": units.moment,
    "plural": units.plural,
}
