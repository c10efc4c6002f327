from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from diptych import Check, Diptych, Model
from diptych.config import Config
from tests.contract.calls import press
from tests.support.in_process import Service

Pressed = Callable[..., Service]


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as found:
        yield found


@pytest.fixture
def serving(runner: asyncio.Runner) -> Iterator[Pressed]:
    """Makes services in memory, with checks and settings; the press, unless a model is given."""
    with ExitStack() as stack:

        def make(*checks: Check, model: Model = press.model, **settings: Any) -> Service:
            config = Config(database="sqlite:///:memory:", **settings)
            service = Service(Diptych(model, config=config, checks=checks), runner)
            stack.callback(service.close)
            for name, rows in press.ROWS.items() if model is press.model else ():
                resource = model.resources[name]
                names = [field.name for field in resource.fields.values() if field.stored]
                runner.run(
                    service.app.store.insert(resource, names, [[row.get(each) for each in names] for row in rows])
                )
            return service

        yield make
