"""A report as one HTML file: inline SVG, no script, nothing loaded, made to be printed."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from dashboard.document.content import Chart, Column, Content, Figures, Lines, Section, Table
from dashboard.document.svg import let_through
from db import units

LONGEST_CELL = 300
_LONGEST_CAPTION = 2_000
_SHORT_CELL = 24
# Nothing may be loaded or run, wherever the file is opened.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_STYLE = """
:root{color-scheme:light;--ink:#17202b;--soft:#56616f;--line:#d9dee5;--wash:#f3f5f8}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1400px;padding:2rem 1rem 3rem;color:var(--ink);background:#fff;
font:15px/1.5 system-ui,"Segoe UI",Helvetica,Arial,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.75rem;line-height:1.25;margin:0 0 .25rem}
h2{font-size:1.15rem;margin:2rem 0 .25rem}
h1,h2,p,li,td,dd,dt,figcaption{unicode-bidi:isolate}
.soft,figcaption,footer{color:var(--soft);font-size:.87rem}
dl{display:flex;flex-wrap:wrap;gap:.75rem;margin:1rem 0}
dl div{border:1px solid var(--line);border-radius:8px;padding:.6rem .9rem;min-width:9rem}
dt{color:var(--soft);font-size:.82rem}
dd{margin:0;font-size:1.35rem;font-weight:650;font-variant-numeric:tabular-nums}
p,ul,figure{max-width:1040px}
figure{margin:1.25rem 0;overflow-x:auto}
svg{width:100%;min-width:600px;height:auto;display:block;overflow:visible}
.wide,pre{overflow-x:auto}
pre{background:var(--wash);border-radius:8px;padding:.75rem;font-size:.8rem;line-height:1.35}
table{border-collapse:collapse;min-width:min(100%,1040px);font-size:.87rem;margin:.5rem 0}
th,td{text-align:left;vertical-align:top;padding:.3rem .45rem;border-bottom:1px solid var(--line);
overflow-wrap:break-word;max-width:22rem}
th{background:var(--wash);font-weight:600}
.n{text-align:right;font-variant-numeric:tabular-nums}
td.n,td.s{white-space:nowrap}
tr.regressed td:first-child{box-shadow:inset 4px 0 #b94f00}
tr.improved td:first-child{box-shadow:inset 4px 0 #0072b2}
tr.inconclusive td:first-child{box-shadow:inset 4px 0 #e0c65a}
summary{font-size:1.15rem;font-weight:600;margin:2rem 0 .25rem;cursor:pointer}
footer{margin-top:2.5rem;border-top:1px solid var(--line);padding-top:.75rem}
@page{margin:14mm}
@media print{details::details-content{content-visibility:visible}
body{max-width:none;padding:0;font-size:10pt}.wide{overflow:visible}pre{white-space:pre-wrap}
table{width:100%;font-size:7pt}th,td{padding:.15rem .2rem;max-width:9rem}td.n,td.s{white-space:normal}
h2{break-after:avoid}figure,tr,dl{break-inside:avoid}figure{overflow:visible}svg{min-width:0}thead{display:table-header-group}}
"""


def render(content: Content) -> str:
    """The whole file, from `content` alone."""
    sections = [section_html(section, number) for number, section in enumerate(content.sections)]
    body = (
        f"<h1>{_text(content.title)}</h1>"
        f'<p class="soft">{_text(content.subject)}</p>'
        f"{''.join(sections)}"
        f"{_table(content.environment)}{_folded(content.policy)}"
        f"<footer>{_origin(content)}</footer>"
    )
    return document(content.title, _description(content), f"<main>{body}</main>")


def document(title: str, description: str, body: str, *, policy: str = POLICY) -> str:
    """An HTML file with title and preview tags around `body`, which is HTML already."""
    heading, summary = _text(f"{title} · compilewatch"), _text(description)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="robots" content="noindex"><meta name="referrer" content="no-referrer">'
        f'<title>{heading}</title><meta name="description" content="{summary}">'
        f'<meta property="og:type" content="article"><meta property="og:title" content="{heading}">'
        f'<meta property="og:description" content="{summary}">'
        f"<style>{_STYLE}</style></head><body>{body}</body></html>\n"
    )


def message(title: str, text: str) -> str:
    """A page that says one thing: that there is no report here, or not any more."""
    return document(title, text, f"<main><h1>{_text(title)}</h1><p>{_text(text)}</p></main>")


def _text(text: str, *, longest: int = LONGEST_CELL) -> str:
    """`text` as HTML: escaped, without control characters, cut where no reader would go on."""
    clean = "".join(char if char.isprintable() else " " for char in text)
    return escape(clean if len(clean) <= longest else f"{clean[: longest - 1]}…")


def _description(content: Content) -> str:
    """The first sentence, and when it was true."""
    first = next(
        (section.lines[0] for section in content.sections if isinstance(section, Lines) and section.lines),
        content.subject,
    )
    return f"{first} Frozen {units.moment(content.created_at)}."


def _origin(content: Content) -> str:
    newest = f", newest result {units.moment(content.newest_result_at)}" if content.newest_result_at else ""
    return (
        f"Frozen {units.moment(content.created_at)} by {_text(content.created_by)} at data version "
        f"{content.data_version}{newest}, by compilewatch {_text(content.program_version)}. Times are UTC. "
        f"Made from: {_text(content.link)}"
    )


def section_html(section: Section, number: int) -> str:
    """`section` as HTML; `number` keeps the charts of one page apart."""
    match section:
        case Lines():
            return _lines(section)
        case Figures():
            pairs = "".join(
                f"<div><dt>{_text(name)}</dt><dd>{_text(value)}</dd></div>" for name, value in section.figures
            )
            return f"<dl>{pairs}</dl>"
        case Table():
            return _table(section)
        case Chart():
            return (
                f'{_heading(section.title)}<figure role="img" aria-label="{_text(section.alt)}">'
                f"{let_through(section.svg, number=number)}"
                f"<figcaption>{_text(section.caption, longest=_LONGEST_CAPTION)}</figcaption></figure>"
            )


def _heading(title: str) -> str:
    return f"<h2>{_text(title)}</h2>" if title else ""


def _lines(section: Lines) -> str:
    if section.listed:
        items = "".join(f"<li>{_text(line)}</li>" for line in section.lines)
        return f"{_heading(section.title)}<ul>{items}</ul>"
    if section.code:
        code = "\n".join(map(_text, section.lines))
        return f"{_heading(section.title)}<pre>{code}</pre>"
    return _heading(section.title) + "".join(f"<p>{_text(line)}</p>" for line in section.lines)


def _folded(table: Table) -> str:
    """A table that a screen shows once somebody opens it; paper has it whole."""
    rows = units.plural(len(table.rows), "row")
    shown = _table(table.model_copy(update={"title": ""}))
    return f"<details><summary>{_text(table.title)}, {rows}</summary>{shown}</details>"


def _class(column: Column, cells: Sequence[str]) -> str:
    """Numbers stand on the right; they and what is short everywhere in a column, a verdict, keep one line."""
    if column.numeric:
        return ' class="n"'
    return ' class="s"' if cells and max(map(len, cells)) <= _SHORT_CELL else ""


def _table(table: Table) -> str:
    classes = [
        _class(column, [row[place] for row in table.rows]) for place, column in enumerate(table.columns)
    ]
    head = "".join(
        f'<th scope="col"{style}>{_text(column.title)}</th>'
        for column, style in zip(table.columns, classes, strict=True)
    )
    rows = []
    for place, row in enumerate(table.rows):
        tone = f' class="{_text(table.tones[place])}"' if place < len(table.tones) else ""
        cells = "".join(f"<td{style}>{_text(cell)}</td>" for cell, style in zip(row, classes, strict=True))
        rows.append(f"<tr{tone}>{cells}</tr>")
    note = f'<p class="soft">{_text(table.note)}</p>' if table.note else ""
    return (
        f'{_heading(table.title)}<div class="wide"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>{note}"
    )
