"""References between the steps of a request: `"$ann"` is the id of the row that the step `ann` wrote.

Before anything runs, each reference is checked against the steps before it. While the steps run, references are
replaced in a copy of the values: a script that is retried after a deadlock may get other ids.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from diptych.ask.slots import Ref
from diptych.errors import Code, Fault, Refusal
from diptych.policy.values import Binder

NO_ROW = ""
"""The resource of a step that writes no row of its own: a call."""


def check_references(values: Sequence[Any], binder: Binder, earlier: Mapping[str, str], *, alone: bool = False) -> bool:
    """Refuse references to steps that do not come before; are there any references? `earlier` maps steps to resources.

    Where a request is a single write, `alone`, an id in its path that looks like a reference is ill-formed and names
    nothing, as everywhere.
    """
    references, within = [], False
    for index in binder.references:
        value = values[index]
        if type(value) is Ref:
            if type(value.step) is int:
                within = True
            else:
                references.append(index)
        elif type(value) is list:
            within = True
    if not references:
        return within
    faults = []
    for index in references:
        source = binder.sources[index]
        resource = earlier.get(values[index].step)
        if alone and source.path[:1] == ("path",):
            raise Refusal(Code.NOT_FOUND, "There is nothing here.")
        if resource != source.target:
            faults.append(Fault(source.path, _message(values[index].step, resource, source.target)))
    if faults:
        raise Refusal(binder.code, "Some values are not valid.", faults)
    return True


def _message(step: str, resource: str | None, target: str) -> str:
    if resource is None:
        return f"there is no step '{step}' before this one"
    if resource == NO_ROW:
        return f"the step '{step}' writes no row of its own"
    return f"the step '{step}' writes a row of {resource}, and this is the id of a row of {target}"


def resolved(values: Sequence[Any], binder: Binder, ids: Mapping[str, Any], rows: Sequence[Any] = ()) -> list[Any]:
    """A copy of the values with the ids of earlier steps in the place of references. `rows` are the ids of the steps
    before this one in its nested write."""
    copy = list(values)
    for index in binder.references:
        value = copy[index]
        if type(value) is Ref:
            copy[index] = _row(value, ids, rows)
        elif type(value) is list:  # their steps were checked where each is by itself
            copy[index] = [_row(item, ids, rows) if type(item) is Ref else item for item in value]
    return copy


def _row(ref: Ref, ids: Mapping[str, Any], rows: Sequence[Any]) -> Any:
    step = ref.step
    return rows[step] if isinstance(step, int) else ids[step]
