"""A small model for rate limits: goods that anyone may read and write, and reports with an action."""

from __future__ import annotations

from collections.abc import Sequence

from diptych import Model, Rate, Resource, Role, Tx, action, grant, inverse, query

staff = Role("staff")
boss = Role("boss", implies=staff)


class Maker(Resource):
    name: str
    goods: list[Good] = inverse("maker")

    access = (grant("read", "create"),)


class Good(Resource, public=60):
    name: str
    maker: Maker | None = None

    access = (grant("read", "create", "update", "delete", "export"),)

    @action
    async def rename(self, tx: Tx, name: str) -> None:
        self.name = name
        await tx.save(self)

    @query
    @classmethod
    async def hits(cls, tx: Tx) -> int:
        return 7


class Report(Resource):
    title: str

    access = (grant("read", to=staff), grant("create", to=staff), grant("read", to=boss))


def shop(*rates: Rate) -> Model:
    return Model(Maker, Good, Report, rates=rates)


def names(header: str) -> Sequence[str]:
    """The names of the policies in a header."""
    return [item.split(";")[0].strip().strip('"') for item in header.split(",") if item]
