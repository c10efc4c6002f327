"""Rates with mistakes are reported with the model, senseless ones by `diptych check`; `diptych limits` shows who uses how much."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from diptych import Model, ModelError, Rate, Resource, Role, grant
from diptych.model.declare.rate import Period
from diptych.model.describe.rate_advice import advise_rates
from diptych.model.rates import RateDef, rates_of
from diptych.testing import serve
from tests.contract.rates.shop import Good, shop, staff
from tests.support.running import Command, NewDatabase

SOURCE = """
from diptych import Model, Rate, Resource, grant


class Good(Resource):
    name: str
    access = (grant("read"),)


model = Model(Good, rates=[Rate(cost=100, per="minute"), Rate(cost=90, per="hour"), Rate(requests=4, per="day")])
"""


class Other(Resource):
    name: str
    access = (grant("read"),)


@pytest.mark.parametrize(
    ("rates", "said"),
    [
        ([Rate(per="minute")], "it needs requests or cost"),
        ([Rate(requests=1, cost=1, per="minute")], "it needs requests or cost"),
        ([Rate(requests=0, per="minute")], "0 is no amount"),
        ([Rate(requests=1, per=timedelta(milliseconds=5))], "is no period"),
        ([Rate(requests=1, per="minute", each="role")], "needs the role"),
        ([Rate(requests=1, per="minute", on=Other)], "no resource 'Other'"),
        ([Rate(requests=1, per="minute", name='"')], "cannot be named"),
        ([Rate(requests=1, per="minute"), Rate(requests=2, per="minute")], "two rates limit the same"),
        ([Rate(requests=1, per="minute", name="a"), Rate(cost=2, per="minute", name="a")], "two rates are named 'a'"),
    ],
)
def test_mistakes_are_reported_with_the_model(rates: list[Rate], said: str) -> None:
    with pytest.raises(ModelError, match=said):
        Model(Good, rates=rates)


def test_a_role_that_only_a_rate_names_is_a_role_of_the_model() -> None:
    model = Model(Other, rates=[Rate(requests=1, per="minute", to=Role("guest"))])
    assert "guest" in model.roles


def test_rates_that_make_no_sense_are_reported() -> None:
    def advice(*rates: Rate) -> list[str]:
        return list(advise_rates(shop(*rates).rates, 5_000))

    def cost(amount: int, per: Period) -> Rate:
        return Rate(cost=amount, per=per)

    assert not advice(cost(5_000, "minute"), cost(100_000, "hour"), Rate(requests=3, per="second", to=staff))
    assert "always refused" in advice(cost(4_999, "minute"))[0]
    assert "never reached" in advice(cost(6_000, "minute"), cost(6_000, "hour"))[0]
    assert "never reached" in advice(cost(6_000, "minute"), cost(600_000, "hour"))[0]


def test_of_several_roles_the_largest_amount_counts() -> None:
    general, less, more = (
        RateDef("a", "requests", 10, 60),
        RateDef("b", "requests", 5, 60, role="x"),
        RateDef("c", "requests", 20, 60, role="y"),
    )
    other = RateDef("d", "cost", 10, 60)
    for rates in ([general, less, more, other], [other, more, less, general]):
        assert {rate.name for rate in rates_of(rates, ())} == {"a", "d"}
        assert {rate.name for rate in rates_of(rates, ("x",))} == {"b", "d"}
        assert {rate.name for rate in rates_of(rates, ("x", "y"))} == {"c", "d"}


def test_the_commands_show_limits_and_warn(command: Command, new_database: NewDatabase, tmp_path: Path) -> None:
    (tmp_path / "wares.py").write_text(SOURCE)
    checked = command("check", "wares:model")
    assert "Warning: The rate cost-per-minute is never reached" in checked.stdout
    assert "always refused" in checked.stdout
    url = new_database()
    with serve(shop(Rate(requests=4, per="day")), database=url) as api:
        for _ in range(5):
            api.as_(user="00000000-0000-7000-8000-00000000000a").get("/goods")
    (tmp_path / "shop_file.py").write_text(
        "from tests.contract.rates.shop import shop\nfrom diptych import Rate\n"
        'model = shop(Rate(requests=4, per="day"))\n'.replace("\\\n", "\n")
    )
    shown = command("limits", "--model", "shop_file:model", "--database", url)
    assert "requests-per-day  4 requests per 86400 s of each caller" in shown.stdout, shown
    line = next(line for line in shown.stdout.splitlines() if "caller 0000" in line)
    assert line.split()[3:8] == ["4", "4", "100%", "4", "1"]


def test_without_rates_the_command_says_so(command: Command, new_database: NewDatabase) -> None:
    url = new_database()
    with serve(shop(), database=url):
        pass
    said = command("limits", "--model", "tests.contract.rates.plain:model", "--database", url)
    assert said.stdout == "There are no rates, neither in the model nor in the settings.\n", said
