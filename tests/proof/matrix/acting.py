"""The channel of actions: who may call one, and on which rows.

A row that cannot be read is not there; what the role may never call, and what the rules of the row deny, is refused
in the same words; all else runs.
"""

from __future__ import annotations

from diptych.api.reply import STATUS
from diptych.model.call_defs import ActionDef
from diptych.model.defs import ResourceDef, RuleDef
from tests.proof.matrix.reading import code_of
from tests.proof.matrix.stage import Eye, ql, rest
from tests.support.in_process import Answer
from tests.support.oracle import Row

Refusal = tuple[int, str]
"""A status and a code."""


def act(eye: Eye, resource: ResourceDef, action: ActionDef) -> None:
    """On a row of every kind, or on the class."""
    rows: list[Row | None] = [None]
    if action.on == "row":
        rows = list({expected(eye, resource, action, row): row for row in eye.sight.rows[resource.name]}.values())
    for row in rows:
        wanted = expected(eye, resource, action, row)
        for answer in _answers(eye, resource, action, row):
            told = f"{resource.name}.{action.name} by {eye.name} on {row and row.id}: {answer.body!r}, not {wanted}"
            if wanted is None:
                assert answer.status == 200 and b'"errors"' not in answer.body, told
            else:
                assert code_of(answer) == wanted[1] and answer.status in (wanted[0], 200), told
        eye.stage.reset()


def expected(eye: Eye, resource: ResourceDef, action: ActionDef, row: Row | None) -> Refusal | None:
    """What the rules of the action say; None if it runs."""
    rules = [rule for rule in resource.rules if action.attr in rule.actions]
    denied = (STATUS[eye.denial], str(eye.denial))
    if not _could(eye, resource, action, rules):
        return denied
    if row is None:
        return None
    if not eye.sight.readable(row):
        return 404, "NOT_FOUND"
    return None if not rules or any(_holds(eye, rule, row) for rule in rules) else denied


def _could(eye: Eye, resource: ResourceDef, action: ActionDef, rules: list[RuleDef]) -> bool:
    """Might the viewer ever call it?"""
    scopes, result = eye.viewer.scopes, action.result.resource
    scoped = scopes is None or "write" in scopes or f"{resource.path}:write" in scopes
    seen = (action.on == "class" or eye.opens(resource)) and (not result or eye.opens(eye.model.resources[result]))
    if rules:
        mine = any(_is_mine(eye, rule) and eye.forecast.says(rule.expr, resource) is not False for rule in rules)
    else:
        mine = action.role is None or action.role in eye.viewer.roles
    return scoped and seen and mine


def _is_mine(eye: Eye, rule: RuleDef) -> bool:
    return rule.role is None or rule.role in eye.viewer.roles


def _holds(eye: Eye, rule: RuleDef, row: Row) -> bool:
    return _is_mine(eye, rule) and eye.sight.holds(rule.expr, row)


def _answers(eye: Eye, resource: ResourceDef, action: ActionDef, row: Row | None) -> list[Answer]:
    """The call in both styles."""
    inner = " { id }" if action.result.resource else ""
    if row is None:
        path, call = f"/{resource.path}/{action.segment}", f"mutation {{ a: {action.root}{inner} }}"
    else:
        path, call = (
            f"/{resource.path}/{row.id}/{action.segment}",
            f'mutation {{ a: {action.root}(id: "{row.id}"){inner} }}',
        )
    return [eye.change(rest("POST", path, {})), eye.change(ql(call))]
