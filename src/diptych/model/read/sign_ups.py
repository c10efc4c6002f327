"""Reads the `SignUp` of a model, and finds its mistakes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from diptych.model.declare.roles import Role
from diptych.model.declare.sign_up import SignUp
from diptych.model.defs import FieldDef, ResourceDef
from diptych.model.scalars import STRING

Wrong = Callable[[str, str], None]
_EXAMPLE = 'Write SignUp(email="email", fields=("name",), roles=(member,))'


class SignUpDef(Struct, frozen=True, eq=False):
    """The sign-up of a model: the resource of new rows, the field of the address, and the fields that are filled in."""

    resource: ResourceDef
    email: FieldDef | None
    fields: tuple[FieldDef, ...]
    roles: tuple[str, ...]


def read_sign_up(declared: SignUp, user: ResourceDef | None, wrong: Wrong) -> SignUpDef | None:
    """The sign-up of a model whose viewers are rows of `user`; None if it has mistakes."""
    if not isinstance(declared, SignUp):
        wrong(f"sign_up={declared!r} is no SignUp", _EXAMPLE)
        return None
    if user is None:
        wrong("sign_up needs the resource whose rows the new users are", "Name it: Model(…, user=Member)")
        return None
    texts = (declared.email, *declared.fields) if isinstance(declared.fields, tuple | list) else ()
    if not isinstance(declared.fields, tuple | list) or not all(isinstance(text, str) for text in texts):
        wrong("the fields of SignUp are names", _EXAMPLE)
        return None
    if not isinstance(declared.roles, tuple | list) or not all(isinstance(role, Role) for role in declared.roles):
        wrong("the roles of SignUp are roles", _EXAMPLE)
        return None
    by_attr = {field.attr: field for field in user.fields.values() if field.stored and not field.relation}
    faults = list(_faults(declared, user, by_attr))
    for cause, fix in faults:
        wrong(cause, fix)
    if faults:
        return None
    email = by_attr[declared.email] if declared.email else None
    fields = tuple(by_attr[name] for name in declared.fields)
    return SignUpDef(user, email, fields, tuple(sorted(role.name for role in declared.roles)))


def _faults(declared: SignUp, user: ResourceDef, by_attr: dict[str, FieldDef]) -> Iterator[tuple[str, str]]:
    named = [*([declared.email] if declared.email else []), *declared.fields]
    for name in named:
        field = by_attr.get(name)
        if field is None or field.is_server_set or field.scalar.is_json or field.moves:
            yield f"sign_up names {user.name}.{name}, which nobody can fill in", "Name a plain field"
    if len(set(named)) < len(named):
        yield "sign_up names a field twice", "Name it once"
    if declared.email in by_attr and by_attr[declared.email].scalar is not STRING:
        yield f"{user.name}.{declared.email} is no text, and cannot be an address", "Name a field of the type str"
    for attr, field in by_attr.items():
        if field.required and attr not in named:
            yield f"a new {user.name} needs {attr}, which sign_up does not name", f'Add it: fields=(…, "{attr}")'
    for relation in user.relations.values():
        key = user.fields.get(relation.name + "Id")
        if relation.kind == "one" and key is not None and key.required:
            yield f"a new {user.name} needs {relation.attr}, which nobody can fill in", "Let it be null"
