"""The channel of rows that are found by their ids alone: `nodes(ids:)`, asked with every id that there is."""

from __future__ import annotations

from diptych.api.graphql.node_lookup import is_node
from tests.proof.matrix.reading import data, ids_of, same
from tests.proof.matrix.stage import NOTHING, Eye, Member, Sent, ql


def applies(eye: Eye, member: Member) -> bool:
    return is_node(member.resource)


def nodes(eye: Eye, member: Member) -> None:
    """A hidden row is null, as one that is not there; a shown one shows what the oracle says."""
    resource = member.resource
    ids = [str(row["id"]) for row in eye.stage.data[resource.name]]
    if not eye.opens(resource):
        _like_nothing(eye, (resource.name, _asked(ids, resource.name, "id")), (NOTHING, _asked(ids, NOTHING, "id")))
    elif eye.exists(member) is False:
        mine, nothing = (_asked(ids, resource.name, name + member.inner) for name in (member.name, NOTHING))
        _like_nothing(eye, (member.name, mine), (NOTHING, nothing))
    else:
        found = data(eye.send(_asked(ids, resource.name, member.name + member.inner)))["nodes"]
        shown = {str(row.id): eye.value(member, row) for row in eye.rows(resource)}
        wanted = [(shown[id],) if id in shown else None for id in ids]
        values = [node and node[member.name] for node in found]
        got = [
            node and (ids_of(value) if member.relation else value,) for node, value in zip(found, values, strict=True)
        ]
        assert got == wanted, f"{member} for {eye.name}"


def _asked(ids: list[str], kind: str, picked: str) -> Sent:
    return ql(f"query($ids: [ID!]!) {{ nodes(ids: $ids) {{ ... on {kind} {{ {picked} }} }} }}", {"ids": ids})


def _like_nothing(eye: Eye, mine: tuple[str, Sent], nothing: tuple[str, Sent]) -> None:
    answer = eye.send(mine[1])
    assert answer.status >= 400, answer.body
    same(answer, eye.send(nothing[1]), (nothing[0], mine[0]))
