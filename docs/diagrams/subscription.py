"""The life of a subscription: from a commit to the bytes that a client reads."""

from __future__ import annotations

from docs.diagrams.svg import Drawing


def draw() -> Drawing:
    picture = Drawing(
        960,
        330,
        "A commit is captured by triggers, found by the tail, evaluated once per group, and sent to each subscriber",
    )
    picture.box(20, 50, 130, 60, "any writer", "service or SQL", fill="wire")
    picture.arrow((150, 80), (195, 80))
    picture.box(195, 50, 140, 60, "triggers", "in its transaction", fill="store")
    picture.arrow((335, 80), (380, 80))
    picture.box(380, 50, 150, 60, "feed", "rows, in order", fill="store")
    picture.arrow((530, 80), (575, 80), label="")
    picture.box(575, 50, 130, 60, "tail", "one look for all", fill="stage")
    picture.arrow((705, 80), (750, 80))
    picture.box(750, 50, 190, 60, "group", "one statement, shared bytes", fill="stage")
    picture.arrow((845, 110), (845, 165))
    picture.box(750, 165, 190, 60, "send queue", "bounded, one for each client", fill="stage")
    picture.arrow((750, 195), (690, 195))
    picture.box(545, 165, 145, 60, "client", "SSE or WebSocket", fill="wire")
    picture.arrow((545, 195), (440, 195), label="disconnected")
    picture.box(290, 165, 150, 60, "last cursor", "kept by the client", fill="plain", dashed=True)
    picture.arrow((377, 165), (420, 110), dashed=True)
    picture.text(285, 145, "resume, on any node", size=11.5)
    picture.box(
        575,
        262,
        365,
        50,
        "slow reader",
        "leaves its group, reads the feed at its own pace, rejoins",
        fill="rule",
        dashed=True,
    )
    picture.arrow((845, 225), (845, 262), dashed=True)
    picture.box(
        20,
        262,
        435,
        50,
        "cursor older than the retention",
        "410 RESUME_GAP: read again with Prefer: change-cursor",
        fill="rule",
        dashed=True,
    )
    picture.arrow((340, 225), (300, 262), dashed=True)
    picture.text(
        20,
        28,
        "A client first reads with Prefer: change-cursor, then subscribes from that cursor",
        size=13,
        anchor="start",
    )
    return picture
