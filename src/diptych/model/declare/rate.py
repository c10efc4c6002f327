"""`Rate`: how much a caller may ask for in a time. Without one, nothing is limited by rate.

    Model(
        User, Post,
        rates=[
            Rate(requests=60, per="minute"),                              # everyone; who is anonymous, by address
            Rate(requests=600, per="minute", to=signed_in),               # instead, for those with a token
            Rate(cost=100_000, per="hour", each="client"),                # all users of an OAuth client together
            Rate(requests=10, per="minute", on=Report),                   # requests that read or write reports
        ],
    )

Each is a token bucket: a caller may use all of it at once, and it fills again evenly.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from msgspec import Struct

from diptych.model.declare.resource import Resource
from diptych.model.declare.roles import Role

Period = Literal["second", "minute", "hour", "day"]
Partition = Literal["caller", "client", "address", "role"]


class Rate(Struct, frozen=True, kw_only=True):
    """A limit of requests, or of their cost, in a time.

    `each` says who shares a bucket: a caller has one alone; all who use an OAuth client, come from an address, or hold
    the role `to` may have one together. `to` limits those with a role, in place of the rate for everyone. `on` counts
    only requests that read, write or follow a resource. `name` is what headers and errors call it.
    """

    requests: int | None = None
    cost: int | None = None
    per: Period | timedelta
    each: Partition = "caller"
    to: Role | None = None
    on: type[Resource] | None = None
    name: str = ""
