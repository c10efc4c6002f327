"""python rest_steps.py URL TOKEN, beside the package `shop` of openapi-python-client: prints what came of each step."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

from shop import AuthenticatedClient
from shop.api.order import list_orders
from shop.api.post import list_posts
from shop.api.user import create_user, get_user, list_users, update_user
from shop.models import (
    Decimal122Filter,
    OrderStatus,
    OrderStatusFilter,
    OrderWhere,
    Problem,
    User,
    UserCreate,
    UserPatch,
)
from shop.types import UNSET

T = TypeVar("T")
client = AuthenticatedClient(base_url=sys.argv[1], token=sys.argv[2])
found: dict[str, Any] = {}
made: list[User] = []


def step(work: Callable[[], Any]) -> None:
    try:
        found[work.__name__.rstrip("_")] = work()
    except Exception:
        found[work.__name__.rstrip("_")] = {"failed": traceback.format_exc()}


def must(answer: T | Problem | None) -> T:
    assert answer is not None and not isinstance(answer, Problem), answer
    return answer


@step
def create() -> Any:
    user = must(create_user.sync(client=client, body=UserCreate(name="Fit", email="python@fit.example")))
    made.append(user)
    name: str = user.name
    email: str | None = user.email
    return {"name": name, "email": email}


@step
def read() -> str:
    return must(get_user.sync(str(made[0].id), client=client)).name


@step
def update() -> Any:
    id = str(made[0].id)
    etag = get_user.sync_detailed(id, client=client).headers["ETag"]
    user = must(update_user.sync(id, client=client, body=UserPatch(name="Fitted"), if_match=etag))
    late = update_user.sync_detailed(id, client=client, body=UserPatch(name="Late"), if_match=etag)
    return {"name": user.name, "late": late.status_code.value}


@step
def where() -> Any:
    some = OrderStatusFilter(in_=[OrderStatus.PAID, OrderStatus.SHIPPED])
    condition = OrderWhere(total=Decimal122Filter(gte="100"), status=some)
    page = must(list_orders.sync(client=client, where=json.dumps(condition.to_dict()), count="exact"))
    return {"total": page.page.total or None, "statuses": [row.status.value for row in page.data]}


@step
def in_() -> Any:
    page = must(list_orders.sync(client=client, statusin=[OrderStatus.PAID, OrderStatus.SHIPPED]))
    return [row.status.value for row in page.data]


@step
def sort() -> Any:
    return [row.total for row in must(list_orders.sync(client=client, sort="-total,id")).data]


@step
def page() -> Any:
    ids: list[str] = []
    after: str | None = None
    while True:
        found = must(list_users.sync(client=client, first=7, after=after or UNSET))
        ids += [str(row.id) for row in found.data]
        after = found.page.next_
        if after is None:
            return ids


@step
def nested() -> Any:
    posts = must(list_posts.sync(client=client, first=3, fields="*,author(*),comments[first=2](*)"))
    return [post.author.name if post.author else None for post in posts.data]


@step
def error() -> Any:
    problem = create_user.sync(client=client, body=UserCreate(name="", email="nobody"))
    assert isinstance(problem, Problem)
    return {"code": problem.code, "pointers": [fault.pointer for fault in problem.errors or []]}


print(json.dumps(found))
