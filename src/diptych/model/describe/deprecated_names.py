"""The names of what is deprecated in a model: `Post`, `Post.title`, `Post.publish.note`, `Status.old`."""

from __future__ import annotations

from diptych.model.deprecation import Deprecation
from diptych.model.model import Model


def deprecated_names(model: Model) -> set[str]:
    """The names of all deprecated parts of a model, as they are counted."""
    names: set[str] = set()
    for resource in model.resources.values():
        parts: list[tuple[str, Deprecation | None]] = [(resource.name, resource.deprecated)]
        parts += [
            (f"{resource.name}.{field.relation or key}", field.deprecated) for key, field in resource.fields.items()
        ]
        parts += [
            (f"{resource.name}.{key}", relation.deprecated)
            for key, relation in resource.relations.items()
            if relation.deprecated is not model.resources[relation.target].deprecated
        ]
        for call in resource.calls:
            if call.deprecated is not resource.deprecated:
                parts.append((f"{resource.name}.{call.name}", call.deprecated))
            parts += [
                (f"{resource.name}.{call.name}.{argument.name}", argument.deprecated) for argument in call.arguments
            ]
        names |= {name for name, deprecation in parts if deprecation is not None}
    return names | {f"{scalar.name}.{choice}" for scalar in model.enums for choice in scalar.deprecated}
