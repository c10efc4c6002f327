"""The pipeline of a request: packages in the order in which a request passes them."""

from __future__ import annotations

from docs.diagrams.svg import Drawing

STAGES = (
    ("api", "GraphQL or", "REST", "stage"),
    ("ask", "what is wanted,", "without values", "plain"),
    ("policy", "rules, values,", "cost", "rule"),
    ("compile", "Ask →", "one statement", "stage"),
    ("db", "SQLite or", "PostgreSQL", "store"),
)


def draw() -> Drawing:
    title = "A request passes api, ask, policy, compile and db; the database writes the bytes of the response"
    picture = Drawing(980, 250, title)
    picture.text(20, 30, "engine runs these stages for a read, a write, a call and a watch", size=13, anchor="start")
    picture.box(20, 60, 96, 64, "HTTP", "request", fill="wire")
    x = 144.0
    for name, first, second, fill in STAGES:
        picture.arrow((x - 28, 92), (x, 92))
        picture.box(x, 56, 112, 72, name, first, second, fill=fill)
        x += 140
    picture.arrow((x - 28, 92), (x, 92))
    picture.box(x, 60, 114, 64, "bytes", "of the response", fill="wire")
    picture.box(144, 170, 392, 54, "model → View", "the model as one role sees it, rules folded", fill="plain")
    picture.arrow((200, 170), (200, 128), dashed=True)
    picture.arrow((480, 170), (480, 128), dashed=True)
    picture.box(564, 170, 252, 54, "plan cache", "a known request skips api and compile", dashed=True)
    picture.arrow((620, 170), (620, 128), dashed=True)
    return picture
