"""The model of the shop without rates, for commands."""

from tests.contract.rates.shop import shop

model = shop()
