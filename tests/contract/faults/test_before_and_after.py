"""The rule that is asked once: it allows a change of the row as it was, and nobody asks of what becomes of it.

Published for row-level security (a policy of UPDATE with USING and no sound WITH CHECK lets rows be taken or given
away) and for Directus (GHSA-99vm-5v2h-h6r6: with two policies for two rows, the fields of both could be written on
either). Here every rule of a change is held against the row before and after it, field by field, in the statement
that makes it.
"""

from __future__ import annotations

from typing import Any

import pytest

from diptych.policy import guards as change
from tests.contract.faults.club import CARD
from tests.contract.faults.scene import Scene
from tests.contract.http.data import ANN, BEN, CLEO, COMMENT, NOBODY, POST, ZOE
from tests.contract.writes.shop import JSON_PATCH

MOVES: list[tuple[str, str, Any]] = [
    ("PATCH", f"/posts/{POST[1]}", {"authorId": BEN}),
    ("PATCH", f"/posts/{POST[3]}", {"authorId": BEN, "published": True}),
    ("PATCH", f"/posts/{POST[1]}", [{"op": "replace", "path": "/authorId", "value": BEN}]),
    ("PUT", f"/posts/{POST[1]}", {"authorId": BEN, "title": "t", "body": "b"}),
    ("PATCH", f"/comments/{COMMENT[3]}", {"authorId": BEN}),
    ("PATCH", f"/posts/{POST[4]}", {"authorId": ANN}),
    ("PATCH", f"/comments/{COMMENT[1]}", {"authorId": ANN}),
    ("PUT", f"/posts/{POST[4]}", {"authorId": ANN, "title": "t", "body": "b"}),
]
"""Ann gives away what is hers, and takes what is Ben's."""


def moved(shop: Scene) -> list[str]:
    """The moves that were made."""
    found = []
    for method, url, body in MOVES:
        kind = JSON_PATCH if isinstance(body, list) else "application/json"
        if shop.rest(method, url, body, who="ann", kind=kind).status < 300:
            found.append(f"{method} {url}")
            shop.refill()
    document = f'mutation {{ updatePost(id: "{POST[1]}", patch: {{authorId: "{BEN}"}}) {{ id }} }}'
    if "errors" not in shop.ql(document, who="ann").json():
        found.append(document)
        shop.refill()
    return found


def test_a_row_is_not_moved_to_another_owner_nor_taken(shop: Scene) -> None:
    """The owner's rule holds for the old owner and for the new one, and they are one person."""
    with shop.unchanged():
        assert moved(shop) == []


def test_with_rules_for_the_row_as_it_was_rows_would_be_given_away(shop: Scene) -> None:
    """The same check with the fault planted: nothing is asked of the row as it becomes."""
    with shop.planted(change._WriteGuards, "_touched", lambda self, rule, values: False):
        assert len(moved(shop)) == 6


def test_who_may_write_a_field_of_one_row_may_not_write_it_on_another(members: Scene) -> None:
    """A card's writer may change its text, its reader the reply. Ann is the one here and the other there, never
    both."""
    written, received = CARD[1], CARD[2]
    refused: list[tuple[str, dict[str, Any]]] = [
        (written, {"reply": "x"}),
        (written, {"text": "x", "reply": "x"}),
        (received, {"text": "x"}),
        (received, {"reply": "x", "text": "x"}),
        (received, {"reader": CLEO}),
        (written, {"reader": ANN, "reply": "x"}),
        (written, {"reply": None}),
        (written, {"writer": BEN}),
        (written, {"sealed": True}),
    ]
    with members.unchanged():
        for id, patch in refused:
            assert members.rest("PATCH", f"/cards/{id}", patch, who="ann").status in (403, 422), patch
            document = "mutation($id: ID!, $p: CardPatch!) { updateCard(id: $id, patch: $p) { id } }"
            assert members.ql(document, {"id": id, "p": patch}, who="ann").code in ("FORBIDDEN", "BAD_USER_INPUT"), (
                patch
            )
        calls = f'a: updateCard(id: "{written}", patch: {{text: "x"}}) {{ id }} b: updateCard(id: "{received}", patch: {{text: "x"}}) {{ id }}'
        assert members.ql(f"mutation {{ {calls} }}", who="ann").code == "FORBIDDEN"
    assert members.rest("PATCH", f"/cards/{written}", {"text": "x"}, who="ann").status == 200
    assert members.rest("PATCH", f"/cards/{received}", {"reply": "x"}, who="ann").status == 200


def test_a_replacement_resets_nothing_that_its_writer_may_not_write(members: Scene) -> None:
    """`sealed` is false by default, which would show the card to Ann: a PUT by Ben that leaves it out leaves it
    as it is."""
    whole = {"writer": ANN, "reader": BEN, "text": "secret"}
    assert members.rest("GET", f"/cards/{CARD[3]}", who="ann").status == 404
    answer = members.rest("PUT", f"/cards/{CARD[3]}", {**whole, "reply": "x"}, who="ben")
    assert answer.status == 200 and (answer.json()["sealed"], answer.json()["reply"]) == (True, "x")
    with members.unchanged():
        assert members.rest("PUT", f"/cards/{CARD[3]}", {**whole, "sealed": False}, who="ben").status == 403
        assert members.rest("GET", f"/cards/{CARD[3]}", who="ann").status == 404


def test_a_default_gives_no_more_than_a_value(shop: Scene, members: Scene) -> None:
    """What is left out at creation becomes its default under the same rules: a null owner is nobody's, not
    everyone's."""
    with shop.unchanged():
        for body in ({"title": "t", "body": "b"}, {"authorId": None, "title": "t", "body": "b"}):
            assert shop.rest("POST", "/posts", body, who="ann").status == 422
            assert shop.rest("POST", "/posts", body, who=shop.service.token(None)).status in (403, 422)
    made = members.rest("POST", "/cards", {"writer": ANN, "reader": BEN, "text": "t"}, who="ann").json()
    assert (made["sealed"], made["reply"]) == (False, None)
    assert members.rest("GET", f"/cards/{made['id']}", who="cleo").status == 404


def test_what_is_made_must_be_readable_to_whoever_made_it(members: Scene) -> None:
    """A sealed card to Ben, made by Ann, would be hidden from her: refused, so nothing is planted where its maker
    cannot look."""
    with members.unchanged():
        for body in (
            {"writer": ANN, "reader": BEN, "text": "t", "sealed": True},
            {"writer": BEN, "reader": CLEO, "text": "t"},
        ):
            assert members.rest("POST", "/cards", body, who="ann").status == 403
            assert (
                members.ql("mutation($v: CardCreate!) { createCard(input: $v) { id } }", {"v": body}, who="ann").code
                == "FORBIDDEN"
            )
            assert (
                members.rest("POST", "/cards", [{"writer": ANN, "reader": ANN, "text": "t"}, body], who="ann").status
                == 403
            )


@pytest.mark.parametrize("who", ["ann", "cleo"])
def test_a_reference_to_a_hidden_row_is_one_to_no_row(members: Scene, who: str) -> None:
    """A card under a sealed one: the same refusal as under none, so that references do not tell what is there."""
    body = (
        {"writer": ANN, "reader": ANN, "text": "t"} if who == "ann" else {"writer": CLEO, "reader": CLEO, "text": "t"}
    )
    with members.unchanged():
        answers = [members.rest("POST", "/cards", {**body, "parentId": id}, who=who) for id in (CARD[3], NOBODY, "x")]
        document = "mutation($v: CardCreate!) { createCard(input: $v) { id } }"
        replies = [members.ql(document, {"v": {**body, "parentId": id}}, who=who) for id in (CARD[3], NOBODY)]
    assert (answers[0].status, answers[0].places) == (409, ["/parentId"])
    assert len({answer.body for answer in answers}) == 1 and replies[0].body == replies[1].body
    assert (
        members.rest(
            "POST", "/cards", {"writer": BEN, "reader": BEN, "text": "t", "parentId": CARD[3]}, who="ben"
        ).status
        == 201
    )


def test_a_reference_that_was_there_does_not_show_what_it_leads_to(members: Scene) -> None:
    """Under a card that Ann may read stands one that she may not: the way there ends in null, in every way of
    asking."""
    members.service.execute(f"UPDATE cards SET parent_id = '{CARD[3]}' WHERE id = '{CARD[1]}'")
    assert members.get(f"/cards/{CARD[1]}?fields=parent(text)", "ann") == {"parent": None}
    assert members.data(f'{{ card(id: "{CARD[1]}") {{ parent {{ text parent {{ text }} }} }} }}', who="ann") == {
        "card": {"parent": None}
    }
    for where in (
        '{"parent":{"text":{"eq":"secret"}}}',
        '{"parent":{"id":{"ne":"x"}}}',
        f'{{"parent":{{"id":{{"eq":"{CARD[3]}"}}}}}}',
    ):
        assert members.get(f"/cards?where={where}", "ann")["data"] == []
        assert len(members.get(f"/cards?where={where}", "ben")["data"]) == 1


def test_a_comment_moves_to_no_post_that_its_author_may_not_read(shop: Scene) -> None:
    """Into sight and out of it: Zoë's own comment goes to a post that she sees, and to no draft."""
    made = shop.rest("POST", "/comments", {"authorId": ZOE, "postId": POST[1], "body": "b"}, who="zoe").json()["id"]
    with shop.unchanged():
        hidden, none = (shop.rest("PATCH", f"/comments/{made}", {"postId": id}, who="zoe") for id in (POST[6], NOBODY))
        assert hidden.status == 409 and hidden.body == none.body
    assert shop.rest("PATCH", f"/comments/{made}", {"postId": POST[4]}, who="zoe").status == 200
