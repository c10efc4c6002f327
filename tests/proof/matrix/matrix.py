"""All cells of the matrix: role × resource × member × channel.

A channel tells to which members it applies, by what the model declares and what the oracle says of the role, and
how a cell is checked. So a new field, relation or action has its cells without a word being said of it here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from tests.proof.matrix import acting, documents, following, nodes, reading, tags, writing
from tests.proof.matrix.stage import Eye, Member, Stage

MODELS: Mapping[str, str] = {
    "default": "diptych.demo.model:model",
    "edge_cases": "tests.support.edge_cases:model",
    "house": "tests.proof.matrix.house:model",
}
ROLES: Mapping[str, tuple[str, ...]] = {
    "default": ("anonymous", "signed_in", "staff", "admin", "narrow"),
    "edge_cases": ("anonymous", "signed_in", "keeper", "chief", "narrow"),
    "house": ("anonymous", "signed_in", "porter", "owner", "narrow"),
}

Check = Callable[[Eye, Member], None]
Applies = Callable[[Eye, Member], bool]


@dataclass(frozen=True)
class Cell:
    """One thing that a role might learn or do in one way."""

    name: str
    check: Callable[[], None]


def _always(eye: Eye, member: Member) -> bool:
    return True


def _is_creatable(eye: Eye, member: Member) -> bool:
    """Are there new rows, whoever may make them? Else the path has no such method."""
    return member.field is not None and member.resource.offers("create")


def _is_changeable(eye: Eye, member: Member) -> bool:
    return member.field is not None and member.resource.offers("update")


def _is_reference(eye: Eye, member: Member) -> bool:
    return (
        _is_creatable(eye, member)
        and _is_changeable(eye, member)
        and member.field is not None
        and member.field.relation != ""
    )


def _is_sortable(eye: Eye, member: Member) -> bool:
    return member.field is not None and member.field.scalar.sortable


def _is_reached(eye: Eye, member: Member) -> bool:
    """Does a relation lead to the resource?"""
    return eye.opens(member.resource) and eye.way_to(member.resource) is not None


def _is_reached_field(eye: Eye, member: Member) -> bool:
    return member.field is not None and _is_reached(eye, member)


def _is_tagged(eye: Eye, member: Member) -> bool:
    return eye.opens(member.resource) and tags.applies(member)


def _has_a_name(eye: Eye, member: Member) -> bool:
    """Can the command line be asked for the documents of this role?"""
    return eye.name != "narrow"


CHANNELS: Mapping[str, tuple[Applies, Check]] = {
    "select": (_always, reading.select),
    "alias": (_always, reading.alias),
    "node": (nodes.applies, nodes.nodes),
    "nested path": (_is_reached_field, reading.nested),
    "filter": (_always, reading.filtered),
    "filter through a relation": (_is_reached, reading.through),
    "sort": (_is_sortable, reading.sort),
    "cursor": (_is_sortable, reading.cursor),
    "count": (_always, reading.count),
    "ETag": (_is_tagged, tags.etag),
    "error text": (_always, reading.errors),
    "create": (_is_creatable, writing.create),
    "patch": (_is_changeable, writing.patch),
    "JSON Patch test": (_is_changeable, writing.json_patch),
    "PUT": (_is_changeable, writing.put),
    "reference": (_is_reference, writing.reference),
    "log": (_always, following.log),
    "stream": (_always, following.stream),
    "filter of changes": (_always, following.filtered),
    "history": (_always, following.history),
    "introspection": (_always, documents.introspection),
    "SDL": (_has_a_name, documents.sdl),
    "OpenAPI": (_always, documents.openapi),
}
ACTION = "action"
"""The channel that has a cell for every action, and not for members."""


def cells(stage: Stage, role: str, channel: str) -> Iterator[Cell]:
    """The cells of a role in one channel."""
    eye = stage.eyes[role]
    if channel == ACTION:
        for resource in stage.model.resources.values():
            for action in resource.actions.values():
                yield Cell(f"{resource.name}.{action.name}", partial(acting.act, eye, resource, action))
        return
    applies, check = CHANNELS[channel]
    for member in stage.members:
        if applies(eye, member):
            yield Cell(str(member), partial(check, eye, member))
