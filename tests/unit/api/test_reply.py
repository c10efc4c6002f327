"""The ETag of a response."""

from __future__ import annotations

import re

from diptych.api.reply import tag
from tests.support.cases import cases


@cases("size", [1, 300, 4_095, 4_096, 4_097, 100_000])
def test_every_byte_of_a_body_counts(size: int) -> None:
    body = b"a" * size
    changed = [body[:at] + b"b" + body[at + 1 :] for at in {0, size // 2, size - 1}]
    tags = {tag(each) for each in (body, body + b"a", *changed)}
    assert len(tags) == len({body, body + b"a", *changed})
    assert all(re.fullmatch(rb'"[0-9a-f]{24}"', each) for each in tags)


def test_the_version_is_before_the_digest() -> None:
    assert tag(b"{}", 7) == b'"7.' + tag(b"{}")[1:]
