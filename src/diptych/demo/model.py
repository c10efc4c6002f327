"""The default model: users with posts, comments and orders. `diptych serve` without a MODULE:MODEL serves it; copy it
to begin your own."""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from typing import Annotated

from diptych import (
    Digits,
    MaxLen,
    Min,
    MinLen,
    Model,
    Move,
    OnDelete,
    Pattern,
    ReadBy,
    Resource,
    Role,
    States,
    Unique,
    Viewer,
    WriteBy,
    allow,
    grant,
    inverse,
    may_read,
    signed_in,
)

staff = Role("staff")
admin = Role("admin", implies=staff)


class OrderStatus(StrEnum):
    """The state of an order: pending → paid → shipped → delivered; pending or paid → cancelled."""

    pending = "pending"
    paid = "paid"
    shipped = "shipped"
    delivered = "delivered"
    cancelled = "cancelled"


class User(Resource):
    """A person who writes posts and comments and places orders."""

    name: Annotated[str, MinLen(1), MaxLen(80)]
    email: Annotated[str, Unique(), MaxLen(254), Pattern(r"[^@\s]+@[^@\s]+"), ReadBy(admin)]
    posts: list[Post] = inverse("author")
    comments: list[Comment] = inverse("author")
    orders: list[Order] = inverse("customer")

    access = (grant("read"), grant("create", "update", "delete", to=admin))

    @allow("update", "delete")
    def oneself(self, viewer: Viewer) -> bool:
        return self.id == viewer.id

    @allow("read", field="email")
    def own_email(self, viewer: Viewer) -> bool:
        return self.id == viewer.id


class Post(Resource):
    """An article; a draft until it is published."""

    author: Annotated[User, OnDelete("cascade")]
    title: Annotated[str, MinLen(1), MaxLen(200)]
    body: Annotated[str, MaxLen(20_000)]
    published: bool = False
    comments: list[Comment] = inverse("post")

    access = (grant("read", "update", "delete", to=admin),)

    @allow("read")
    def published_or_own(self, viewer: Viewer) -> bool:
        return self.published | (self.author.id == viewer.id)

    @allow("create", "update", "delete")
    def own(self, viewer: Viewer) -> bool:
        return self.author.id == viewer.id


class Comment(Resource):
    """What someone says about a post."""

    post: Annotated[Post, OnDelete("cascade")]
    author: Annotated[User, OnDelete("cascade")]
    body: Annotated[str, MinLen(1), MaxLen(2_000)]

    access = (grant("delete", to=admin),)

    @allow("read")
    def post_readable(self, viewer: Viewer) -> bool:
        return may_read(self.post)

    @allow("create")
    def as_oneself(self, viewer: Viewer) -> bool:
        return (self.author.id == viewer.id) & may_read(self.post)

    @allow("update", "delete")
    def own(self, viewer: Viewer) -> bool:
        return self.author.id == viewer.id

    @allow("delete")
    def under_own_post(self, viewer: Viewer) -> bool:
        return self.post.author.id == viewer.id


class Order(Resource):
    """What a customer buys."""

    customer: User
    status: Annotated[
        OrderStatus,
        States(
            Move(OrderStatus.pending, OrderStatus.paid, to=staff),
            Move(OrderStatus.paid, OrderStatus.shipped, to=staff),
            Move(OrderStatus.shipped, OrderStatus.delivered, to=staff),
            Move(OrderStatus.pending, OrderStatus.cancelled, to=signed_in),
            Move(OrderStatus.paid, OrderStatus.cancelled, to=signed_in),
        ),
    ] = OrderStatus.pending
    total: Annotated[Decimal, Digits(12, 2), Min(0)]
    currency: Annotated[str, Pattern("[A-Z]{3}")] = "EUR"
    note: Annotated[str | None, MaxLen(500)] = None
    internal_note: Annotated[str | None, MaxLen(500), ReadBy(staff), WriteBy(staff)] = None

    access = (grant("read", "create", "update", to=staff), grant("delete", to=admin))

    @allow("read", "create")
    def own(self, viewer: Viewer) -> bool:
        return self.customer.id == viewer.id

    @allow("update", field="status")
    def cancel_own(self, viewer: Viewer) -> bool:
        return self.customer.id == viewer.id


model = Model(
    User,
    Post,
    Comment,
    Order,
    title="Diptych",
    description="Users with their posts, comments and orders: the model that Diptych serves if it is given no other.",
    contact={"name": "Diptych", "url": "https://diptych.example"},
    license="MIT",
)
