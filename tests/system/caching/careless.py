"""The kiosk, served by someone careless: for the tests that show that this is found out. A header says in which way.

everything  everything is public, and says nothing of what it depends on
bare        what is public says nothing of what it depends on
tokens      what was asked with a token is as public as what was asked without
"""

from __future__ import annotations

from diptych.api.reply import Header, public
from diptych.serve.endpoint import graphql, rest
from diptych.serve.endpoint import rest_calls as code
from diptych.serve.http.request import Request, may_keep
from tests.contract.caching.kiosk import model

__all__ = ["WAYS", "model"]

WAYS = ("everything", "bare", "tokens")


def _careless(request: Request, max_age: int) -> tuple[Header, ...]:
    match request.headers.get(b"x-careless"):
        case b"everything":
            return public(60)[:1]
        case b"bare":
            return may_keep(request, max_age)[:1]
        case b"tokens":
            return public(60)
    return may_keep(request, max_age)


rest.may_keep = graphql.may_keep = code.may_keep = _careless  # type: ignore[attr-defined]  # a planted fault
