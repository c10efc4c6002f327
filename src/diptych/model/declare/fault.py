"""A fault of one argument, raised by the code of an action or a query."""

from __future__ import annotations

from diptych.errors import Code, Refusal


class Fault(Refusal):
    """Refuse a value: `raise Fault("until", "it must be later than now")`. The client gets 422 with its path.

    `field` is an argument of the function, by its name in Python; any other name is reported unchanged.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(Code.BAD_USER_INPUT, "Some values are not valid.")
        self.field = field
        self.reason = message
