"""Advice on links: a many-to-many relation whose link has no unique key over both of its references.

Without one, two rows can be connected twice, so there is no `connect`, `disconnect` and `set`, and no path of a link.
"""

from __future__ import annotations

from collections.abc import Mapping

from diptych.model.defs import ResourceDef
from diptych.model.nesting import link_key
from diptych.model.read.source import location_of


def advise_links(resources: Mapping[str, ResourceDef]) -> list[str]:
    """A sentence for each link without such a key that someone may create: what is missing, and what to write."""
    advice: dict[str, str] = {}
    for resource in resources.values():
        for relation in resource.relations.values():
            link = resources[relation.link] if relation.link else None
            if link is None or not link.offers("create") or link_key(link, relation):
                continue
            file, line = location_of(link.cls, relation.link_mine)
            name = link.name + (f" ({file}:{line})" if line else "")
            ends = f'"{relation.link_mine}", "{relation.link_theirs}"'
            missing = f"is the link of {resource.name}.{relation.name} and has no unique key of both references"
            fix = f"so links cannot be set, nor written by PUT and DELETE. Write keys = (unique({ends}),)"
            advice.setdefault(link.name, f"{name} {missing}, {fix}")
    return list(advice.values())
