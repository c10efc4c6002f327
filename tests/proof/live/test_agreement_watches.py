"""A random Watch, printed in either style, is translated back to the very same Watch."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from diptych.api.filter_printer import watched_id
from diptych.api.graphql.document import check_document
from diptych.api.graphql.printer import print_subscription
from diptych.api.graphql.schema import build_schema
from diptych.api.graphql.translate import translate as translate_graphql
from diptych.api.rest.printer import print_rest_watch
from diptych.api.rest.query import read_query
from diptych.api.rest.target import find_target
from diptych.api.rest.translate import translate_changes
from diptych.db.sqlite.store import SqliteStore
from diptych.demo.model import model as default
from diptych.model.model import Model
from tests.support import edge_cases
from tests.support.asks import DrawnWatch, watches
from tests.support.effort import scaled
from tests.support.proof import Proof
from tests.support.reading import parsed

MODELS: Mapping[str, Model] = {"default": default, "edge_cases": edge_cases.model}
EXAMPLES = scaled(900, 20)
CURSOR = "x" * 64


@pytest.mark.parametrize("who", ["anonymous", "someone", "top"])
@pytest.mark.parametrize("name", MODELS)
def test_what_is_printed_in_either_style_is_the_same_watch_again(name: str, who: str) -> None:
    model = MODELS[name]
    with asyncio.Runner() as runner:
        store = SqliteStore(":memory:")
        proof = Proof(model, 1, store, runner)
        runner.run(store.close())
    viewer = proof.viewers()[who]
    view = model.view(model.signature(viewer))
    schema = build_schema(view)
    seen = {"rest": 0, "id": 0, "kinds": 0, "after": 0}

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
        phases=[Phase.generate],
    )
    @given(watches(model, viewer, proof.rows))
    def agree(drawn: DrawnWatch) -> None:
        raw = drawn.sealed(model, lambda read, values: proof.key_of(viewer, read, values), CURSOR)
        document, variables = print_subscription(drawn.label, drawn.watch, raw, model)
        node, operation = parsed(document)
        check_document(node, operation, schema)
        found = translate_graphql(node, operation, variables, view)
        assert found.watch is not None and found.watch.ask == drawn.watch, f"another Watch came back:\n{document}"
        assert found.watch.slots == drawn.slots and found.roots[0].label == drawn.label
        assert [source.fetch(variables) for source in found.watch.sources] == list(raw)
        if drawn.rest:
            url = print_rest_watch(drawn.watch, raw, model)
            path, _, query = url.partition("?")
            target = find_target(path, model)
            assert target is not None and target.changes
            wish = translate_changes(target, read_query(query, target), view)
            assert wish.ask == drawn.watch, f"another Watch came back: {url}"
        watch = drawn.watch
        wanted = {"rest": drawn.rest, "id": watched_id(watch)[0], "kinds": watch.kinds, "after": watch.after}
        for key, value in wanted.items():
            seen[key] += value not in (None, False)

    agree()
    assert all(seen.values()), seen
