"""Deployment on several nodes: stateless processes, one database."""

from __future__ import annotations

from docs.diagrams.svg import Drawing


def draw() -> Drawing:
    picture = Drawing(
        960, 360, "A proxy in front of several nodes with several processes each, which share one PostgreSQL"
    )
    picture.box(20, 130, 120, 80, "clients", "GraphQL, REST,", "SSE, WebSocket", fill="wire")
    picture.arrow((140, 170), (190, 170), label="HTTPS")
    picture.box(190, 120, 150, 100, "proxy", "TLS, HTTP/2,", "public cache,", "no sticky sessions", fill="wire")
    for number, y in enumerate((30, 200)):
        picture.box(420, y, 250, 130, "", dashed=True)
        picture.text(545, y + 20, f"node {number + 1}", size=13, extra=' font-weight="600"')
        for worker in range(2):
            picture.box(
                435 + worker * 118, y + 34, 104, 80, "process", "event loop,", "plan cache,", "pool", fill="stage"
            )
        picture.arrow((340, 170), (420, y + 65))
        picture.arrow((670, y + 65), (760, 180), both=True)
    picture.box(
        760,
        100,
        180,
        160,
        "PostgreSQL",
        "data and change feed,",
        "accounts, grants, keys,",
        "idempotency records,",
        "trusted documents",
        fill="store",
    )
    picture.text(760, 280, "SQL, and LISTEN/NOTIFY", size=11, anchor="start")
    picture.text(
        20,
        352,
        "Processes share nothing but the database: cursors, tokens and idempotency keys work on every node.",
        size=12.5,
        anchor="start",
    )
    return picture
