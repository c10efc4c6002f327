"""The pytest plugin: the fixture `api`, for the model that the settings of pytest name.

    [tool.pytest.ini_options]
    diptych_model = "tasks:model"

Every run of pytest loads it where Diptych is installed, so it imports nothing before a test asks for the fixture.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from diptych.testing.api import Api


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the setting `diptych_model`."""
    parser.addini("diptych_model", "The model that the fixture `api` serves: MODULE:MODEL", default="")


@pytest.fixture
def api(request: pytest.FixtureRequest) -> Iterator[Api]:
    """The model of the setting `diptych_model`, served for one test from an empty database in memory."""
    name = str(request.config.getini("diptych_model")) or importlib.import_module("diptych.config").load({}).model
    if not name:
        raise pytest.UsageError('The fixture `api` needs a setting of pytest: diptych_model = "MODULE:MODEL".')
    model = importlib.import_module("diptych.cli.model").load_model(name)
    with importlib.import_module("diptych.testing").serve(model) as served:
        yield served
