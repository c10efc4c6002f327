"""What a document costs that was never seen: the whole of its planning, against graphql-core's parse and validate; and
the whole request, from its first byte to the answer, on SQLite.

python -m bench.planning
"""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import Callable
from statistics import median

import uvloop
from graphql import parse, validate

from bench.cases import DOCUMENTS, Request
from bench.slip import both
from diptych.api.graphql.document import check_document, check_roots, check_variables, read_document
from diptych.api.graphql.schema import build_schema
from diptych.api.graphql.translate import translate
from diptych.ask.measures import RequestMeasures
from diptych.db.sqlite.store import SqliteStore
from diptych.demo.model import model
from diptych.engine.read import Engine
from diptych.errors import Code
from diptych.policy.limits import Checks

ROUNDS, RUNS = 30, 5
VARIABLES = {"id": "018cc251-f400-7d27-85b9-04c014b4d24f"}


def planning_ratio() -> tuple[float, float]:
    """Microseconds of CPU for parse + validate of Q2's document, and for all that planning it takes."""
    view = model.view(model.signature(model.viewer_as("staff")))
    schema, document = build_schema(view), DOCUMENTS["Q2"]

    def theirs() -> None:
        assert not validate(schema, parse(document))

    store = SqliteStore(":memory:")

    def ours() -> None:
        engine = Engine(model, store, Checks())
        node, operation = read_document(document, None, RequestMeasures("graphql", model.anonymous), Checks())
        check_roots(node, operation, view)
        sound = check_document(node, operation, schema)
        check_variables(sound, VARIABLES, schema)
        sound.shape(VARIABLES)
        wish = translate(node, operation, VARIABLES, view).wish
        engine.prepare(wish, view, Code.BAD_USER_INPUT)

    best = [float("inf")] * 2
    for _ in range(ROUNDS):
        for index, run in enumerate((theirs, ours)):
            best[index] = min(best[index], _cpu(run))
    return best[0], best[1]


def _cpu(run: Callable[[], None]) -> float:
    gc.disable()  # what else this process holds is not to be paid for here
    begun = time.process_time()
    for _ in range(RUNS):
        run()
    spent = time.process_time() - begun
    gc.enable()
    return spent / RUNS * 1e6


async def new_request() -> float:
    """Microseconds of CPU for a request with a document that no request had before: the median of many."""
    spent = []
    async with both() as (service, _, user):
        gc.collect()
        gc.freeze()  # as a server does (`cli/garbage.py`)
        for number in range(ROUNDS * RUNS):
            document = DOCUMENTS["Q2"].replace(" posts", f" new{number}: posts")
            body = json.dumps({"query": document, "variables": {"id": user}})
            spent.append(await service.cpu([service.encode(Request("POST", "/graphql", body))]))
    return median(spent[RUNS:]) * 1e6


def main() -> None:
    """Prints all of it."""
    theirs, ours = planning_ratio()
    print(f"A new document of Q2's size: planned in {ours:,.0f} µs, {ours / theirs:.2f} × parse + validate.")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(f"A whole request with one takes {runner.run(new_request()):,.0f} µs.")


if __name__ == "__main__":
    main()
