"""The channels by which a member of a resource can be read, or by which its value could be learned.

A member that does not exist for the role answers, byte by byte, as a name that nobody has. One that exists shows
its true value on the rows on which the oracle says so, and on all others it is null, wherever it stands.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from diptych.model.defs import ResourceDef
from diptych.model.scalars import Scalar
from tests.proof.matrix.planted import unpacked
from tests.proof.matrix.stage import NOTHING, SIZE, Eye, Member, Sent, get, ql
from tests.support.in_process import Answer
from tests.support.oracle import Row, wire

Where = tuple[dict[str, Any], Callable[[Row], bool]]
"""A filter, and the rows that it finds."""
ALIASES = 25


def like_nothing(eye: Eye, member: Member, *makes: Callable[[str], Sent]) -> None:
    """A member that does not exist answers as a name that nobody has."""
    for make in makes:
        mine, nothing = eye.send(make(member.name)), eye.send(make(NOTHING))
        assert mine.status >= 400, f"{eye.name} may not know {member}: {make(member.name)}\n{mine.body!r}"
        same(mine, nothing, (NOTHING, member.name))
        if not eye.opens(member.resource):
            assert mine.code == eye.denial, mine.body


def same(mine: Answer, other: Answer, *names: tuple[str, str]) -> None:
    """Two answers are the same, once the names in the other are those in mine."""
    text = other.body.decode()
    for theirs, ours in names:
        text = text.replace(theirs, ours)
    assert (mine.status, dict(mine.headers), mine.body.decode()) == (other.status, dict(other.headers), text)


def code_of(answer: Answer) -> str:
    """The code of an error; none if it is no error."""
    return answer.code if answer.status >= 400 or b'"errors"' in answer.body else "none"


def data(answer: Answer) -> Any:
    """What an answer that must be right holds, in either style."""
    body = answer.json()
    assert answer.status == 200 and "errors" not in body, body
    return body["data"]


# select, alias, nested path


def select(eye: Eye, member: Member) -> None:
    resource, many = member.resource, member.resource.many
    plain = get(f"/{resource.path}", first=SIZE)
    if eye.exists(member) is False:
        like_nothing(
            eye,
            member,
            lambda name: ql(f"{{ {many}(first: {SIZE}) {{ id {name}{member.inner} }} }}"),
            lambda name: get(f"/{resource.path}", fields=f"id,{name}{'(id)' if member.inner else ''}"),
        )
        assert not eye.opens(resource) or all(member.name not in row for row in data(eye.send(plain)))
        return
    known = [each for each in eye.known(resource) if each.name != "id"]
    picked = " ".join(each.name + each.inner for each in known)
    fields = ",".join(each.name + ("(id)" if each.inner else "") for each in known)
    listed = eye.send(ql(f"{{ all: {many}(first: {SIZE}) {{ id {picked} }} }}"))
    _shows(eye, member, data(listed)["all"], member.name)
    _shows(eye, member, data(eye.send(get(f"/{resource.path}", first=SIZE, fields=f"id,{fields}"))), member.name)
    if member.field:
        _shows(eye, member, data(eye.send(plain)), member.name)


def _shows(eye: Eye, member: Member, found: Sequence[Any], label: str) -> None:
    """Every row shows what the oracle says."""
    wanted = {str(row.id): eye.value(member, row) for row in eye.rows(member.resource)}
    got = {row["id"]: ids_of(row[label]) if member.relation else row[label] for row in found}
    assert got == wanted, f"{member} for {eye.name}"


def ids_of(related: Any) -> list[str]:
    """The ids of related rows; of one, or of none, too."""
    there = related if isinstance(related, list) else [related] if related else []
    return [row["id"] for row in there]


def alias(eye: Eye, member: Member) -> None:
    resource = member.resource
    if eye.exists(member) is False:
        like_nothing(
            eye,
            member,
            lambda name: ql(f"{{ x: {resource.many} {{ other: {name}{member.inner} }} }}"),
            lambda name: get(f"/{resource.path}", fields=f"other:{name}{'(id)' if member.inner else ''}"),
        )
        return
    known = eye.known(resource)
    place = known.index(next(each for each in known if each.name == member.name)) // ALIASES * ALIASES
    some = known[place : place + ALIASES]
    picked = " ".join(f"other_{each.name}: {each.name}{each.inner}" for each in some)
    fields = ",".join(f"other_{each.name}:{each.name}{'(id)' if each.inner else ''}" for each in some)
    listed = eye.send(ql(f"{{ all: {resource.many}(first: {SIZE}) {{ id {picked} }} }}"))
    _shows(eye, member, data(listed)["all"], f"other_{member.name}")
    listed = eye.send(get(f"/{resource.path}", first=SIZE, fields=f"id,{fields}"))
    _shows(eye, member, data(listed), f"other_{member.name}")


def nested(eye: Eye, member: Member) -> None:
    """Through a relation of another resource."""
    way = eye.way_to(member.resource)
    assert way is not None
    above, relation = way
    if eye.exists(member) is False:
        like_nothing(
            eye,
            member,
            lambda name: ql(f"{{ {above.many} {{ {relation.name} {{ {name}{member.inner} }} }} }}"),
            lambda name: get(f"/{above.path}", fields=f"{relation.name}({name}{'(id)' if member.inner else ''})"),
        )
        return
    known = [each for each in eye.known(member.resource) if each.field]
    names = [each.name for each in known if each.name != "id"]
    inner = f"{relation.name} {{ id {' '.join(names)} }}"
    by_query = data(eye.send(ql(f"{{ all: {above.many}(first: {SIZE}) {{ id {inner} }} }}")))["all"]
    fields = f"id,{relation.name}(id,{','.join(names)})" if names else f"id,{relation.name}(id)"
    by_path = data(eye.send(get(f"/{above.path}", first=SIZE, fields=fields)))
    for found in (by_query, by_path):
        got = [_values(row[relation.name], member.name) for row in found]
        there = [sorted(eye.sight.related(relation, row), key=lambda each: each.id) for row in eye.rows(above)]
        wanted = [[eye.value(member, row) for row in rows] for rows in there]
        assert got == wanted, f"{member} for {eye.name} through {above.name}.{relation.name}"


def _values(related: Any, name: str) -> list[Any]:
    there = related if isinstance(related, list) else [related] if related else []
    return [row[name] for row in there]


# filters


def raw(eye: Eye, member: Member, row: Row) -> Any:
    """The value itself, whoever may see it."""
    assert member.field is not None
    computed = member.field.computed
    return row.data[member.name] if computed is None else eye.sight.value(computed, row)


def probes(eye: Eye, member: Member) -> list[Any]:
    """True values: one that shows, one that does not, and one of a row that cannot be read."""
    found: dict[str, Any] = {}
    for row in eye.sight.rows[member.resource.name]:
        value = raw(eye, member, row)
        readable = eye.sight.readable(row)
        kind = "unreadable" if not readable else "shown" if eye.sight.shows(member.name, row) else "hidden"
        if value is not None:
            found.setdefault(kind, value)
    return list(found.values())


def wheres(eye: Eye, member: Member) -> list[Where]:
    """Filters by the member, each with the rows that it finds."""
    sight, name = eye.sight, member.name
    if member.relation is not None:
        relation, there = member.relation, {"id": {"isNull": False}}
        tree = {name: there if relation.kind == "one" else {"some": there}}
        return [(tree, lambda row: bool(sight.related(relation, row)))]
    assert member.field is not None
    scalar = member.field.scalar
    found: list[Where] = [({name: {"isNull": True}}, lambda row: sight.shown(name, row) is None)]
    if "eq" in scalar.ops:
        found += [({name: {"eq": wire(scalar, value)}}, _equals(eye, name, value)) for value in probes(eye, member)]
    return found


def _equals(eye: Eye, name: str, value: Any) -> Callable[[Row], bool]:
    return lambda row: bool(eye.sight.shown(name, row) == value)


def listed_by(eye: Eye, resource: ResourceDef, tree: Any) -> list[list[str]]:
    """The ids of the rows that a filter finds, in both styles."""
    document = f"query($w: {resource.name}Where) {{ all: {resource.many}(first: {SIZE}, where: $w) {{ id }} }}"
    by_query = data(eye.send(ql(document, {"w": tree})))["all"]
    by_path = data(eye.send(get(f"/{resource.path}", first=SIZE, fields="id", where=json.dumps(tree))))
    return [[row["id"] for row in found] for found in (by_query, by_path)]


def filtered(eye: Eye, member: Member) -> None:
    resource = member.resource
    if eye.exists(member) is False:
        like_nothing(
            eye,
            member,
            lambda name: ql(f'{{ {resource.many}(where: {{{name}: {{eq: "x"}}}}) {{ id }} }}'),
            lambda name: ql(
                f"query($w: {resource.name}Where) {{ {resource.many}(where: $w) {{ id }} }}",
                {"w": {name: {"isNull": True}}},
            ),
            lambda name: Sent("GET", f"/{resource.path}?{name}=x"),
            lambda name: Sent("GET", f"/{resource.path}?{name}[isNull]=true"),
            lambda name: get(f"/{resource.path}", where=json.dumps({name: {"isNull": True}})),
        )
        return
    for tree, holds in wheres(eye, member):
        wanted = [str(row.id) for row in eye.rows(resource) if holds(row)]
        assert listed_by(eye, resource, tree) == [wanted, wanted], f"{tree} for {eye.name}"


def through(eye: Eye, member: Member) -> None:
    """A filter through a relation of another resource."""
    way = eye.way_to(member.resource)
    assert way is not None
    above, relation = way

    def outer(tree: Any) -> dict[str, Any]:
        return {relation.name: tree if relation.kind == "one" else {"some": tree}}

    if eye.exists(member) is False:
        like_nothing(
            eye,
            member,
            lambda name: ql(
                f"query($w: {above.name}Where) {{ {above.many}(where: $w) {{ id }} }}",
                {"w": outer({name: {"isNull": True}})},
            ),
            lambda name: get(f"/{above.path}", where=json.dumps(outer({name: {"isNull": True}}))),
        )
        return
    for tree, holds in wheres(eye, member):
        wanted = [str(row.id) for row in eye.rows(above) if any(map(holds, eye.sight.related(relation, row)))]
        assert listed_by(eye, above, outer(tree)) == [wanted, wanted], f"{outer(tree)} for {eye.name}"


def count(eye: Eye, member: Member) -> None:
    resource = member.resource
    document = f"query($w: {resource.name}Where) {{ all: {resource.connection}(where: $w) {{ totalCount }} }}"
    if eye.exists(member) is False:
        like_nothing(
            eye,
            member,
            lambda name: ql(document, {"w": {name: {"isNull": True}}}),
            lambda name: get(f"/{resource.path}", count="exact", where=json.dumps({name: {"isNull": True}})),
            lambda name: ql(f"{{ {resource.many} {{ {name}Connection {{ totalCount }} }} }}"),
        )
        return
    for tree, holds in wheres(eye, member):
        wanted = sum(map(holds, eye.rows(resource)))
        assert data(eye.send(ql(document, {"w": tree})))["all"]["totalCount"] == wanted, f"{tree} for {eye.name}"
        answer = eye.send(get(f"/{resource.path}", count="exact", first=1, fields="id", where=json.dumps(tree)))
        assert answer.status == 200 and answer.json()["page"]["total"] == wanted, f"{tree} for {eye.name}"


# sort and cursor


def in_order(eye: Eye, member: Member, descending: bool) -> list[Row]:
    """The rows by the member as the viewer sees it: nulls last, then by id."""
    rows = eye.rows(member.resource)
    there = [row for row in rows if eye.sight.shown(member.name, row) is not None]
    there.sort(key=lambda row: eye.sight.shown(member.name, row), reverse=descending)
    return there + [row for row in rows if eye.sight.shown(member.name, row) is None]


def sort(eye: Eye, member: Member) -> None:
    resource = member.resource
    document = f"query($o: [{resource.name}Order!]) {{ all: {resource.many}(first: {SIZE}, orderBy: $o) {{ id }} }}"
    if eye.exists(member) is False:
        like_nothing(
            eye,
            member,
            lambda name: ql(document, {"o": [{name: "ASC"}]}),
            lambda name: ql(f"{{ {resource.many}(orderBy: [{{{name}: DESC}}]) {{ id }} }}"),
            lambda name: get(f"/{resource.path}", sort=name),
            lambda name: get(f"/{resource.path}", sort=f"-{name}"),
        )
        return
    for descending in (False, True):
        wanted = [str(row.id) for row in in_order(eye, member, descending)]
        by_query = data(eye.send(ql(document, {"o": [{member.name: "DESC" if descending else "ASC"}]})))["all"]
        key = f"-{member.name}" if descending else member.name
        by_path = data(eye.send(get(f"/{resource.path}", first=SIZE, sort=key, fields="id")))
        for found in (by_query, by_path):
            assert [row["id"] for row in found] == wanted, f"by {key} for {eye.name}"


def cursor(eye: Eye, member: Member) -> None:
    """What a cursor holds is what the viewer sees of the row, and the next page begins after it."""
    resource, path = member.resource, f"/{member.resource.path}"
    document = (
        f"query($o: [{resource.name}Order!], $a: String) {{ all: {resource.connection}"
        f"(first: {SIZE}, orderBy: $o, after: $a) {{ edges {{ cursor node {{ id }} }} }} }}"
    )
    if eye.exists(member) is False:
        like_nothing(
            eye,
            member,
            lambda name: ql(document, {"o": [{name: "ASC"}], "a": _foreign(eye, resource)}),
            lambda name: get(path, sort=name, after=_foreign(eye, resource)),
        )
        return
    assert member.field is not None
    rows = in_order(eye, member, descending=False)
    order = {"o": [{member.name: "ASC"}]}
    edges = data(eye.send(ql(document, order)))["all"]["edges"]
    for edge, row in zip(edges, rows, strict=True):
        held = _held(edge["cursor"], member.field.scalar)
        assert held == eye.sight.shown(member.name, row), f"{held} in the cursor of {member} for {eye.name}"
    for place in _turns(eye, member, rows):
        after = [str(row.id) for row in rows[place:]]
        following = data(eye.send(ql(document, {**order, "a": edges[place - 1]["cursor"]})))["all"]["edges"]
        assert [edge["node"]["id"] for edge in following] == after, f"after {place} by {member} for {eye.name}"
        first = eye.send(get(path, sort=member.name, first=place, fields="id")).json()["page"]["next"]
        assert _held(first, member.field.scalar) == eye.sight.shown(member.name, rows[place - 1])
        found = data(eye.send(get(path, sort=member.name, first=SIZE, fields="id", after=first)))
        assert [row["id"] for row in found] == after, f"after {place} by {member} for {eye.name}"


def _turns(eye: Eye, member: Member, rows: Sequence[Row]) -> list[int]:
    """Pages end in the midst of the values, and in the midst of the nulls."""
    values = sum(eye.sight.shown(member.name, row) is not None for row in rows)
    wanted = {values // 2, values + (len(rows) - values) // 2}
    return sorted(place for place in wanted if 0 < place < len(rows))


def _foreign(eye: Eye, resource: ResourceDef) -> str:
    """A cursor of the list by id, where there is one."""
    answer = eye.send(get(f"/{resource.path}", first=1, fields="id"))
    return str(answer.json()["page"]["next"] or "none") if answer.status == 200 else "none"


def _held(text: str, scalar: Scalar) -> Any:
    """The first key that a cursor holds, as a canonical value."""
    (payload,) = unpacked(text)
    first, *_ = json.loads(payload)
    return None if first is None else scalar.parse(first)


# error text


def errors(eye: Eye, member: Member) -> None:
    """Requests that are wrong in themselves: what they are told is looked through with every other answer."""
    path, many = f"/{member.resource.path}", member.resource.many
    queries: list[Callable[[str], str]] = [
        lambda name: f"{many} {{ {name}(zz: 1){member.inner} }}",
        lambda name: f"{many} {{ {name}{'' if member.inner else ' { id }'} }}",
        lambda name: f"{many}(where: {{{name}: {{zz: 1}}}}) {{ id }}",
        lambda name: f"{many}(orderBy: [{{{name}: SIDEWAYS}}]) {{ id }}",
    ]
    paths: list[Callable[[str], Sent]] = [
        lambda name: get(path, fields=f"{name}{'' if member.inner else '(id)'}"),
        lambda name: Sent("GET", f"{path}?{name}[zz]=1"),
        lambda name: get(path, where=json.dumps({name: 5})),
        lambda name: get(path, where=json.dumps({name: {"zz": 5}})),
        lambda name: get(path, sort=f"{name},zz"),
    ]
    if eye.exists(member) is False:
        like_nothing(eye, member, *paths, *(lambda name, make=make: ql(f"{{ {make(name)} }}") for make in queries))
        return
    document = " ".join(f"a{number}: {make(member.name)}" for number, make in enumerate(queries))
    for sent in (ql(f"{{ {document} }}"), *(make(member.name) for make in paths)):
        answer = eye.send(sent)
        assert 400 <= answer.status < 500 and answer.code in _CODES, answer.body


_CODES = ("BAD_REQUEST", "BAD_USER_INPUT", "GRAPHQL_VALIDATION_FAILED")
