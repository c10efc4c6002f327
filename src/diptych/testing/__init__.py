"""Tests of one's own model: served in process and in memory, asked as any role, without a port.

    from diptych.testing import serve

    with serve(model) as api:
        ann = api.make(User, name="Ann", email="ann@example.org")
        body = {"title": "T", "body": "B", "authorId": ann.id}
        api.as_("signed_in", user=ann.id).post("/posts", body).expect(201)
        assert api.anonymous.get("/posts").data == []
        assert api.rules(Post, "read", as_="anonymous") == "published"

Requests go through the whole service: tokens, rules, limits, both styles. With pytest, there is a fixture `api`
(`diptych.pytest_plugin`).
"""

from __future__ import annotations

from diptych.testing.api import Api, Client, Response, serve

__all__ = ["Api", "Client", "Response", "serve"]
