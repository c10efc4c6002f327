"""Roles: who has which, what implies what, and which of them can change an answer."""

from __future__ import annotations

import pytest

from diptych import Role, Viewer
from diptych.model.declare.roles import NOBODY
from tests.support.model_files import model_of

MODEL = """
chief = Role("chief", implies=(admin, Role("press")))
unused = Role("unused")

class Post(Resource):
    title: Annotated[str, WriteBy(Role("writer"))]
    secret: Annotated[str, ReadBy(Role("reader"))]
    access = (grant("read", to=staff), grant("delete", to=Role("granted")))

    @allow("update", to=Role("allowed"))
    def asked(self, viewer: Viewer) -> bool:
        return viewer.has(Role("asked"))
"""


def test_a_role_implies_what_its_roles_imply() -> None:
    staff = Role("staff")
    admin = Role("admin", implies=staff)
    chief = Role("chief", implies=(admin, Role("press")))
    assert chief.closure() == {"chief", "admin", "staff", "press"}
    assert staff.closure() == {"staff"}


def test_a_viewer_has_its_roles_and_all_that_they_imply() -> None:
    viewer = model_of(MODEL).viewer(frozenset({"chief"}), id="7")
    assert viewer.roles == {"chief", "admin", "staff", "press", "signed_in"}
    assert viewer.has(Role("staff"))
    assert not viewer.has(Role("unused"))


def test_a_role_that_no_rule_names_still_implies_those_that_rules_name() -> None:
    source = """
owner = Role("owner", implies=admin)

class Post(Resource):
    title: str
    access = (grant("read", to=staff),)
"""
    model = model_of(source)
    assert model.view(model.signature(model.viewer_as("owner"))).resources.keys() == {"Post"}


def test_a_model_knows_every_role_that_it_names_anywhere() -> None:
    assert {"staff", "admin", "chief", "press", "unused", "writer", "reader", "granted", "allowed", "asked"} <= (
        model_of(MODEL).roles.keys()
    )


def test_a_role_that_the_model_does_not_know_is_only_itself() -> None:
    assert model_of(MODEL).viewer(frozenset({"stranger"})).roles == {"stranger", "signed_in"}


def test_the_command_line_can_act_as_anyone() -> None:
    model = model_of(MODEL)
    assert model.role_names[:2] == ("anonymous", "signed_in")
    assert {"staff", "admin", "chief"} <= set(model.role_names)
    assert len(set(model.role_names)) == len(model.role_names)


def test_the_viewer_without_a_token_is_nobody() -> None:
    assert model_of(MODEL).viewer_as("anonymous") == NOBODY == Viewer()
    assert (NOBODY.id, NOBODY.roles, NOBODY.scopes, NOBODY.signed_in) == (None, frozenset(), None, False)


def test_everyone_with_a_token_is_signed_in() -> None:
    viewer = model_of(MODEL).viewer_as("signed_in")
    assert viewer.signed_in
    assert viewer.roles == {"signed_in"}
    assert viewer.id is not None


@pytest.mark.parametrize("role", ["staff", "writer", "reader", "granted", "allowed", "asked", "signed_in"])
def test_a_role_that_a_rule_asks_about_changes_the_signature(role: str) -> None:
    model = model_of(MODEL)
    plain = model.viewer(frozenset({"stranger"}), id="7")
    assert model.signature(model.viewer(frozenset({role}), id="7")).roles == {"signed_in", role}
    assert model.signature(plain).roles == {"signed_in"}


@pytest.mark.parametrize("role", ["stranger", "unused", "press"])
def test_a_role_that_no_rule_asks_about_does_not_change_the_signature(role: str) -> None:
    model = model_of(MODEL)
    assert model.signature(model.viewer(frozenset({role}), id="7")) == model.signature(model.viewer_as("signed_in"))


def test_the_id_itself_is_not_in_the_signature_but_that_there_is_one_is() -> None:
    model = model_of(MODEL)
    one, two = (model.signature(model.viewer(frozenset(), id=key)) for key in ("7", "8"))
    assert one == two
    assert one != model.signature(model.viewer(frozenset()))


def test_scopes_that_the_model_does_not_know_are_not_in_the_signature() -> None:
    model = model_of(MODEL)
    viewer = model.viewer(frozenset(), scopes=frozenset({"openid", "posts:read", "write", "others:read"}))
    assert model.signature(viewer).scopes == frozenset({"posts:read", "write"})
    assert model.signature(model.viewer(frozenset(), scopes=frozenset({"openid"}))).scopes == frozenset()
    assert model.signature(model.viewer(frozenset())).scopes is None


def test_equal_signatures_share_one_view() -> None:
    model = model_of(MODEL)
    one, two = (model.signature(model.viewer(frozenset({"staff"}), id=key)) for key in ("7", "8"))
    assert model.view(one) is model.view(two)
