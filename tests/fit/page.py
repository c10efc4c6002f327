"""Writes docs/reference/clients.md from docs/reference/clients/*.json: what `make fit` has found, a file for each tool.

A file has the kind and the versions of the tool, and for each scenario its state and reason; and `before`, the states
at the commit before the work on clients began. `python -m tests.fit.page` writes the page again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from tests.fit.scenario import ORDER
from tests.support.running import ROOT

DATA = ROOT / "docs" / "reference" / "clients"
PAGE = ROOT / "docs" / "reference" / "clients.md"
WORDS = {"ok": "yes", "fails": "**no**", "none": "–"}
HEAD = """# Clients and tools

`make fit` runs tools that others wrote against a real service, as their own documentation says, and writes this page. A cell says
whether a scenario works (of a scanner: that it reports nothing); "–" means that it does not apply. "**no** → yes" tells what was so before this
page was begun. Reasons are below each table. Versions are pinned in `tests/fit/package-lock.json` and `requirements/fit.txt`; proxies are those of Debian.
"""

Row = Mapping[str, Any]


def load() -> dict[str, Any]:
    """What is known of each tool, by its kind and name."""
    rows = [json.loads(file.read_text("utf-8")) for file in DATA.glob("*.json")]
    return {row["tool"]: row for row in sorted(rows, key=lambda row: (row["kind"], row["tool"].lower()))}


def merge(rows: Mapping[str, Row], before: bool = False) -> None:
    """Put what a run has found about some tools in the place of what was known, and write the page anew.

    A run with the service as it was `before` only says what has worked then.
    """
    known = load()
    for name, row in rows.items():
        old = known.get(name, {})
        if before:
            states = {scenario: state for scenario, (state, _) in row["scenarios"].items()}
            new = {"tool": name, **row, **old, "before": states}
        else:
            new = {"tool": name, **row, "before": old.get("before", {})}
        DATA.mkdir(exist_ok=True)
        file = DATA / (re.sub(r"\W+", "-", name.lower()).strip("-") + ".json")
        file.write_text(json.dumps(new, indent=2, ensure_ascii=False) + "\n", "utf-8")
    write()


def write() -> None:
    PAGE.write_text(page(load()), "utf-8")


def page(rows: Mapping[str, Row]) -> str:
    kinds = sorted({row["kind"] for row in rows.values()})
    return HEAD + "".join(_table(kind, {n: row for n, row in rows.items() if row["kind"] == kind}) for kind in kinds)


def _table(kind: str, rows: Mapping[str, Row]) -> str:
    columns = _columns(scenario for row in rows.values() for scenario in row["scenarios"])
    lines = [f"\n## {kind}\n", _line("tool", *columns), _line(*("---" for _ in range(len(columns) + 1)))]
    reasons: list[str] = []
    for name, row in rows.items():
        versions = ", ".join(
            version if len(row["versions"]) == 1 else f"{part} {version}" for part, version in row["versions"].items()
        )
        lines.append(_line(f"{name} ({versions})" if versions else name, *(_cell(row, column) for column in columns)))
        reasons += [f"- {name}, {scenario}: {why}" for scenario, (_, why) in row["scenarios"].items() if why]
    return "\n".join([*lines, *(["", *reasons] if reasons else [])]) + "\n"


def _columns(names: Iterable[str]) -> list[str]:
    found = dict.fromkeys(names)
    return [*(name for name in ORDER if name in found), *(name for name in found if name not in ORDER)]


def _cell(row: Row, scenario: str) -> str:
    if scenario not in row["scenarios"]:
        return ""
    now, was = row["scenarios"][scenario][0], row["before"].get(scenario)
    return WORDS[now] if was in (None, now) else f"{WORDS[was]} → {WORDS[now]}"


def _line(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def printed(rows: Mapping[str, Row]) -> Iterable[str]:
    """A table for a terminal, a line for each tool and scenario."""
    for name, row in rows.items():
        for scenario, (state, why) in row["scenarios"].items():
            yield f"{name:32} {scenario:14} {WORDS[state].strip('*'):4} {why}"


if __name__ == "__main__":
    write()
