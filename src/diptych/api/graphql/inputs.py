"""Input types of the mutations of one role: the values of rows, and the writes that are nested in them.

    UserCreate        a new user, with `posts: UserPostsWrite`
    UserPostsWrite    what is done to the posts of a user: {create: [PostUnderAuthor!] update: [PostUpdate!] …}
    PostUnderAuthor   a new post of the user around it: PostCreate without `authorId`
    PostAuthorWrite   a new user for a new post: {create: UserCreate!}

Two types for each to-many relation, and one for each to-one: their number is linear in the model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphql import (
    GraphQLID,
    GraphQLInputField,
    GraphQLInputObjectType,
    GraphQLInt,
    GraphQLList,
    GraphQLNonNull,
    Undefined,
    is_required_input_field,
)

from diptych.api.descriptions import INPUTS, describe_input, describe_inputs, describe_nest, reason
from diptych.model.nesting import (
    ROW_ID,
    ROW_REF,
    NestView,
    link_fields,
    link_type,
    nest_type,
    nests_of,
    offered,
    under_type,
    update_type,
)
from diptych.model.resource_view import InputView, ResourceView, Taking
from diptych.model.scalar_values import to_json
from diptych.model.scalars import Scalar
from diptych.model.value_scalar import patch_of
from diptych.model.view import View

InputType = Callable[[Scalar], Any]
_IF_VERSION = "The write happens only if the row still has this version."


class InputTypes:
    """The input types of one schema, each made once."""

    def __init__(self, view: View, input_type: InputType) -> None:
        self.view = view
        self.input_type = input_type
        self._made: dict[str, GraphQLInputObjectType] = {}

    def values(self, verb: Taking, resource: ResourceView) -> GraphQLInputObjectType:
        """The values of a row: PostCreate, PostPatch or PostReplace."""
        name = resource.resource.name + INPUTS[verb][0]
        text = describe_inputs(verb, resource)
        return self._type(name, text, lambda: self._fields(verb, resource))

    def _type(
        self, name: str, description: str, fields: Callable[[], dict[str, GraphQLInputField]]
    ) -> GraphQLInputObjectType:
        if name not in self._made:
            self._made[name] = GraphQLInputObjectType(name, fields, description=description)
        return self._made[name]

    def _fields(self, verb: Taking, resource: ResourceView, without: str = "") -> dict[str, GraphQLInputField]:
        """The fields of the values of a row, and its relations; `without` is the key of the row around it."""
        nests = nests_of(resource, self.view, verb) if verb != "replace" else {}
        nests = {name: nest for name, nest in nests.items() if nest.relation.kind != "one" or nest.key != without}
        optional = {nest.key for nest in nests.values() if nest.relation.kind == "one"}
        fields = {
            name: _input_field(verb, taken, self.input_type, name in optional)
            for name, taken in resource.takes(verb).items()
            if name != without
        }
        for name, nest in nests.items():
            why = reason(nest.relation.deprecated)
            kind = self._nest(nest, resource)
            fields[name] = GraphQLInputField(kind, description=describe_nest(nest), deprecation_reason=why)
        return fields

    # relations

    def _nest(self, nest: NestView, resource: ResourceView) -> GraphQLInputObjectType:
        relation = nest.relation
        target = self.view.resources[relation.target]
        name = nest_type(resource.resource.name, relation)
        if relation.kind == "one":
            kind = GraphQLNonNull(self.values("create", target))
            return self._type(name, f"A new {relation.target}.", lambda: {"create": GraphQLInputField(kind)})
        words = offered(relation.name, resource, self.view)
        text = f"What is done to `{relation.name}`."
        return self._type(name, text, lambda: {word: _list(self._item(word, nest, resource, target)) for word in words})

    def _item(self, word: str, nest: NestView, resource: ResourceView, target: ResourceView) -> GraphQLInputObjectType:
        name = target.resource.name
        if nest.theirs:
            return self._link(word, nest, resource, target)
        match word:
            case "create":
                text = f"A new {name}; its `{nest.relation.inverse}` is the row around it."
                return self._type(
                    under_type(name, nest.relation.inverse), text, lambda: self._fields("create", target, nest.key)
                )
            case "update":
                text = f"A {name} to change, and its fields."
                return self._type(update_type(name), text, lambda: self._update(target))
        return self._type(ROW_REF, "A row.", _row_ref)

    def _link(self, word: str, nest: NestView, resource: ResourceView, target: ResourceView) -> GraphQLInputObjectType:
        if word == "create":
            return self.values("create", target)
        fields = link_fields(nest, self.view) if word in ("connect", "set") else {}
        if not fields:
            return self._type(ROW_ID, "A row.", lambda: {"id": _row_ref()["id"]})
        own = {field: _input_field("create", taken, self.input_type, False) for field, taken in fields.items()}
        text = f"A {target.resource.name} to connect, and the fields of its {nest.relation.link}."
        name = link_type(resource.resource.name, nest.relation)
        return self._type(name, text, lambda: {"id": _row_ref()["id"], **own})

    def _update(self, target: ResourceView) -> dict[str, GraphQLInputField]:
        patch = GraphQLInputField(GraphQLNonNull(self.values("update", target)))
        return {**_row_ref(), "patch": patch}


def _list(kind: GraphQLInputObjectType) -> GraphQLInputField:
    return GraphQLInputField(GraphQLList(GraphQLNonNull(kind)))


def _row_ref() -> dict[str, GraphQLInputField]:
    return {
        "id": GraphQLInputField(GraphQLNonNull(GraphQLID)),
        "ifVersion": GraphQLInputField(GraphQLInt, description=_IF_VERSION),
    }


def _input_field(verb: Taking, taken: InputView, input_type: InputType, optional: bool) -> GraphQLInputField:
    """An input field. GraphQL cannot say "optional, but not null", as in a patch or for generated values, nor "one of
    these two", as for a reference that may be a nested row."""
    field = taken.field
    is_patch = verb == "update" and field.scalar.members is not None
    kind = input_type(patch_of(field.scalar) if is_patch else field.scalar)
    is_needed = verb == "create" and not taken.nullable and not field.generated and field.name != "id"
    if not optional and (taken.required or is_needed):
        kind = GraphQLNonNull(kind)
    has_default = verb == "create" and field.default is not None
    default = to_json(field.scalar, field.default) if has_default else Undefined
    made = GraphQLInputField(kind, default_value=default, description=describe_input(taken, verb) or None)
    if not is_required_input_field(made):  # what cannot be left out must not be deprecated
        made.deprecation_reason = reason(field.deprecated)
    return made
