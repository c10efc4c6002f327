"""The permission matrix of a model as one self-contained HTML page: no script, no font, no other file.

All that comes from the model is escaped. Colour only repeats what the words say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape

from diptych.cli.rules_text import LEGEND
from diptych.look.sheet import MARK, style
from diptych.model.describe.matrix import Permission, ResourceMatrix

_STYLE = style("""
main { max-width: 80rem; margin: 0 auto; padding: clamp(1.25rem, 5vw, 3.5rem) clamp(var(--s4), 4vw, var(--s6)); }
h1 { font-size: var(--text-xxl); letter-spacing: -0.02em; }
header { margin: 0 0 var(--s6); }
header p { margin: 0 0 var(--s1); color: var(--soft); max-width: 70ch; }
nav { display: flex; flex-wrap: wrap; gap: var(--s2); margin: var(--s4) 0 0; }
nav a { padding: 0 var(--s3); border: 1px solid var(--line); border-radius: 1rem; background: var(--paper);
  text-decoration: none; font-size: var(--text-m); }
section { background: var(--paper); border: 1px solid var(--line); border-radius: var(--radius);
  box-shadow: var(--shadow); padding: var(--s4) clamp(var(--s3), 3vw, var(--s5)); margin: 0 0 var(--s5); }
section > p { font-size: var(--text-m); color: var(--soft); margin: 0 0 var(--s2); }
h2 code { color: var(--soft); font-weight: 400; margin-left: var(--s2); }
.wide { overflow-x: auto; margin: 0 0 var(--s4); }
table { border-collapse: collapse; width: 100%; font-size: var(--text-m); }
caption { text-align: start; padding: var(--s2) 0; color: var(--soft); }
th, td { border-bottom: 1px solid var(--line); padding: var(--s2) var(--s3); text-align: start; vertical-align: top;
  overflow-wrap: break-word; }
thead th { color: var(--soft); font-weight: 500; background: var(--sunk); white-space: nowrap; }
tbody th { font-weight: 600; white-space: nowrap; }
td.where { min-width: 11rem; }
.always { color: var(--good); } .where { color: var(--warn); } .never { color: var(--bad); }
@media print { section { box-shadow: none; break-inside: avoid; } nav { display: none; } }
""")


def page(name: str, matrices: Sequence[ResourceMatrix]) -> str:
    title = escape(f"Who may do what: {name}")
    legend = "\n".join(f"<p>{escape(sentence)}</p>" for sentence in LEGEND)
    links = "\n".join(f'<a href="#{escape(heading)}">{escape(heading)}</a>' for heading in _names(matrices))
    sections = "\n".join(line for matrix in matrices for line in _resource(matrix))
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        f'<header>\n{MARK}\n<h1>{title}</h1>\n{legend}\n<nav aria-label="Resources">\n{links}\n</nav>\n</header>\n'
        f"{sections}\n</main>\n</body>\n</html>"
    )


def _names(matrices: Sequence[ResourceMatrix]) -> list[str]:
    return [matrix.resource.name for matrix in matrices]


def _resource(matrix: ResourceMatrix) -> Iterator[str]:
    name = escape(matrix.resource.name)
    yield f'<section id="{name}">\n<h2>{name} <code>/{escape(matrix.resource.path)}</code></h2>'
    yield from _table(f"Rows of {name}", f"Rows of {name}", matrix.columns, matrix.rows)
    for group in matrix.fields:
        label = escape(f"{matrix.resource.name}: {', '.join(group.names)}")
        yield from _table(label, f"{name}: {_codes(group.names)}", group.columns, group.rows)
    for attr, moves in matrix.moves.items():
        yield f"<p>{_codes([attr])} moves {escape(', '.join(moves))}</p>"
    yield f"<p>As the row: {_codes(matrix.plain)}</p>\n</section>"


def _table(label: str, caption: str, columns: Iterable[str], rows: Mapping[str, Sequence[Permission]]) -> Iterator[str]:
    """A table that the keyboard can scroll; its label and caption are HTML already."""
    yield f'<div class="wide" tabindex="0" role="group" aria-label="{label}"><table>\n<caption>{caption}</caption>'
    heads = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    yield f'<thead><tr><th scope="col">role</th>{heads}</tr></thead>\n<tbody>'
    for role, cells in rows.items():
        yield f'<tr><th scope="row">{escape(role)}</th>{"".join(map(_cell, cells))}</tr>'
    yield "</tbody>\n</table></div>"


def _cell(cell: Permission) -> str:
    shown = f"<code>{escape(cell.text)}</code>" if cell.kind == "where" else cell.kind
    return f'<td class="{cell.kind}">{shown}</td>'


def _codes(names: Iterable[str]) -> str:
    return ", ".join(f"<code>{escape(name)}</code>" for name in names)
