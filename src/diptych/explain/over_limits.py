"""Says whether a service refuses a request for its values or its shape: a page that is too large, too many terms."""

from __future__ import annotations

from diptych.ask.measures import Limits, RequestMeasures
from diptych.errors import Code, Refusal
from diptych.explain.understood import Wanted
from diptych.model.declare.roles import Viewer
from diptych.policy.limits import Checks
from diptych.policy.values import Binder


def limit_refusal(wanted: Wanted, viewer: Viewer, limits: Limits) -> Refusal | None:
    """The Refusal of a service with these limits; None if there is none. Explained requests have limits of their own,
    so that what is too large is explained as well."""
    wish = wanted.reads[0]
    try:
        Binder(wish.slots, wish.sources, limits, Code.BAD_USER_INPUT)(wanted.read_inputs)
        for (op, _), inputs in zip(wanted.ops, wanted.inputs, strict=True):
            Binder(op.slots, op.sources, limits, op.code)(inputs)
        Checks(limits).shape(RequestMeasures("graphql", viewer), wish.asks)
    except Refusal as refusal:
        return refusal
    return None
