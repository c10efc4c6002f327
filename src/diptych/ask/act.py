"""An Act: who makes the changes of a transaction, how, and why. It is recorded where a model is audited.

    Act("rest", user="0190…", client="0190…", token="pX3…", roles=("staff",), request="6f1d…", reason="#4711")

`ACT` has the one of the current request, for the store to record it in the transaction of its changes. It is None
where nothing is audited. Who runs something else in the name of someone says so:

    with acting(Act("job", user=job.owner, operation="nightly_report")):
        ...
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

import msgspec
from msgspec import Struct

from diptych.errors import Code, Refusal

Channel = Literal["rest", "graphql", "batch", "action", "account", "job", "command", "import", "retention", "sql"]
"""By which way a change came; "sql" is one that another program made."""
SQL = "sql"
HEADER = b"change-reason"
"""The header of a request that says why it changes something."""
EXTENSION = "changeReason"
"""The same in the `extensions` of a GraphQL request."""
MAX_REASON = 500
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class Act(Struct, frozen=True, omit_defaults=True):
    """Who makes changes, how, and why. No secret is part of it: `token` is the id of a token."""

    channel: Channel
    user: str | None = None
    """The id of the viewer."""
    account: str | None = None
    client: str | None = None
    token: str | None = None
    roles: tuple[str, ...] = ()
    request: str | None = None
    operation: str | None = None
    """The action, job or command that runs."""
    reason: str | None = None

    @property
    def text(self) -> str:
        """The JSON that is stored."""
        return msgspec.json.encode(self).decode()


ACT: ContextVar[Act | None] = ContextVar("act", default=None)
"""The act of the current request; None where nothing is audited."""


def act_text() -> str | None:
    """The JSON of the current act."""
    act = ACT.get()
    return None if act is None else act.text


@contextmanager
def acting(act: Act | None) -> Iterator[None]:
    """Run something as an act."""
    before = ACT.set(act)
    try:
        yield
    finally:
        ACT.reset(before)


def read_reason(sent: object) -> str | None:
    """The reason that a client sent: text of one line, or None; a Refusal if it is something else."""
    if sent is None:
        return None
    if isinstance(sent, bytes):
        try:
            sent = sent.decode("utf-8")
        except UnicodeDecodeError:
            sent = ""
    if not isinstance(sent, str) or not (reason := sent.strip()) or len(reason) > MAX_REASON or _CONTROL.search(reason):
        raise Refusal(Code.BAD_REQUEST, f"A reason is one line of 1 to {MAX_REASON} characters.")
    return reason


def needs_reason(resource: str) -> Refusal:
    """The refusal of a change without the reason that its resource requires."""
    cause = f"A change of {resource} needs a reason: send it in the header Change-Reason, or as extensions.changeReason"
    return Refusal(Code.BAD_REQUEST, f"{cause} in GraphQL.")
