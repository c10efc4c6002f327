"""Notices of numbered changes: only one that is signed is believed, and none reveals an id."""

from __future__ import annotations

import hashlib

import pytest

from diptych.db.notice import FeedNotice, Notices
from diptych.db.store import FeedHead

SECRET = bytes(range(32))
FEED = "ab" * 8


def signed(body: str, secret: bytes = SECRET) -> str:
    """As `diptych_notice` signs it."""
    key = hashlib.sha256(secret + b"diptych feed notice").digest()
    return hashlib.sha256(key + hashlib.sha256(key + body.encode()).digest()).hexdigest() + " " + body


def test_a_notice_says_what_was_numbered() -> None:
    notices = Notices(SECRET)
    digest = notices.digest("posts", "7")
    payload = signed(f'{FEED} 41 43 5 1 [["posts", "{digest.hex()}"]]')
    assert notices.read(payload) == FeedNotice(41, FeedHead(FEED, 43, 5, 1), {"posts": {digest}})
    assert notices.read(signed(f"{FEED} 41 43 5 1 *")) == FeedNotice(41, FeedHead(FEED, 43, 5, 1), None)


@pytest.mark.parametrize(
    "payload",
    [
        "",
        " ",
        "x",
        f"{FEED} 41 43 5 1 *",
        f"{'0' * 64} {FEED} 41 43 5 1 *",
        signed(f"{FEED} 41 43 5 1 *", b"another"),
        signed(f"{FEED} 41 43 5 1 *").replace(" 43 ", " 44 "),
        signed(f"{FEED} 41 43 5 1 *") + "\u00e9",
        "\u00e9 " + FEED,
    ],
)
def test_what_is_not_signed_is_not_believed(payload: str) -> None:
    assert Notices(SECRET).read(payload) is None


def test_a_digest_is_of_one_row_and_one_secret() -> None:
    notices = Notices(SECRET)
    assert len({notices.digest("posts", "7"), notices.digest("posts", "8"), notices.digest("users", "7")}) == 3
    assert notices.digest("posts", "7") != Notices(b"other").digest("posts", "7")
