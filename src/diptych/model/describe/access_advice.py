"""Advice on access: a resource that no rule opens to anyone, as one is whose `access` was forgotten.

All of it is then answered as if it did not exist, which looks like a mistake in the request.
"""

from __future__ import annotations

from collections.abc import Mapping

from diptych.model.defs import ResourceDef
from diptych.model.read.source import location_of

_FIX = 'Write access = (grant("read"),), or a rule with @allow'


def advise_access(resources: Mapping[str, ResourceDef]) -> list[str]:
    """A sentence for each resource that has neither rules nor actions nor queries."""
    advice = []
    for resource in resources.values():
        if resource.rules or resource.calls or resource.versions_of:
            continue
        file, line = location_of(resource.cls, "")
        name = resource.name + (f" ({file}:{line})" if line else "")
        advice.append(f"{name} has no access and no rule, so it exists for nobody. {_FIX}")
    return advice
