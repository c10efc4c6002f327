"""Causes of mistakes about unknown names, with the known name that is most like it."""

from __future__ import annotations

import difflib

from diptych.model.defs import ResourceDef


def no_field(resource: ResourceDef, attr: str) -> str:
    """The cause of a mistake: a resource has no such field or relation, but perhaps one that is spelt like it."""
    attributes = [field.attr for field in resource.fields.values()]
    attributes += [relation.attr for relation in resource.relations.values()]
    near = difflib.get_close_matches(attr, attributes, n=1)
    return f"{resource.name} has no field '{attr}'" + (f"; there is '{near[0]}'" if near else "")
