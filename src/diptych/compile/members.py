"""A member of a value object → SQL: the value as a column of its type would hold it.

Others may have written anything into the JSON. SQLite converts nothing; PostgreSQL would fail to cast, so a text is
cast only if it has the form of its type, and is null otherwise. (A quantifier has two bounds: `{4}` is a place in a
template.)
"""

from __future__ import annotations

from collections.abc import Mapping

from diptych.compile.fragment import Fragment, label, sql
from diptych.model.scalars import BIGINT, BOOLEAN, DATE, DATETIME, DURATION, FLOAT, ID, INT, TIME, UUID, Scalar

_LEAP = "(0[48]|[2468][048]|[13579][26])"
_DAY = (
    "([0-9]{4,4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|"
    f"02-(0[1-9]|1[0-9]|2[0-8]))|([0-9]{{2,2}}{_LEAP}|{_LEAP}00)-02-29)"
)
_CLOCK = "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9][.][0-9]{6,6}"
_UUID = "[0-9a-f]{8,8}(-[0-9a-f]{4,4}){3,3}-[0-9a-f]{12,12}"
_FORMS: Mapping[Scalar, str] = {
    BOOLEAN: "true|false",
    DATE: f"(?!0000){_DAY}",
    DATETIME: f"(?!0000){_DAY}T{_CLOCK}Z",
    TIME: _CLOCK,
    ID: _UUID,
    UUID: _UUID,
}
_NUMBERS = {
    INT: "numeric BETWEEN -2147483648 AND 2147483647",
    BIGINT: "numeric BETWEEN -9223372036854775808 AND 9223372036854775807",
    DURATION: "numeric BETWEEN -9223372036854775807 AND 9223372036854775807",
}


def member(whole: Fragment, name: str, scalar: Scalar, database: str) -> Fragment:
    """A member of the JSON object `whole`; null if it has none, or none of this type."""
    key = label(name).strip(':"')
    return _postgres(whole, key, scalar) if database == "postgres" else _sqlite(whole, key, scalar)


def _sqlite(whole: Fragment, key: str, scalar: Scalar) -> Fragment:
    part = f"json_extract({{0}}, '$.{key}')"
    if scalar.digits is not None:
        part = f"CAST(replace({part}, '.', '') AS INTEGER)"
    return sql(f"(CASE WHEN json_valid({{0}}) THEN {part} END)", whole)


def _postgres(whole: Fragment, key: str, scalar: Scalar) -> Fragment:
    text = f"({{0}} ->> '{key}')"
    if scalar.postgres_param == "text":
        return sql(f'({text} COLLATE "C")', whole)
    cast = f"{text}::{scalar.postgres_param.split('::')[-1]}"
    if scalar is FLOAT:
        number = f"({text}::numeric = 0 OR abs({text}::numeric) BETWEEN 4.9e-324 AND 1.7976931348623157e308)"
        fits = f"CASE jsonb_typeof({{0}} -> '{key}') WHEN 'number' THEN {number} END"
        return sql(f"(CASE WHEN {fits} THEN {cast} END)", whole)
    if scalar in _NUMBERS:
        digits = f"CASE WHEN {text} ~ '^-?[0-9]{{{{1,19}}}}$' THEN {text}::{_NUMBERS[scalar]} END"
        return sql(f"(CASE WHEN {digits} THEN {cast} END)", whole)
    form = "-?[0-9]{1,18}([.][0-9]{1,18})?" if scalar.digits is not None else _FORMS[scalar]
    pattern = form.replace("{", "{{").replace("}", "}}")
    return sql(f"(CASE WHEN {text} ~ '^({pattern})$' THEN {cast} END)", whole)
