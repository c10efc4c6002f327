"""`Audited`: the changes of a resource are kept with who made them. Without it, nobody is recorded.

class Invoice(Resource, audit=Audited(reason="required", history=staff, actors=admin)):
    ...
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from diptych.model.declare.roles import Role


class Audited(Struct, frozen=True, kw_only=True):
    """Keep every change of a resource in the audit log, with its actor.

    `reason` says whether a change may, or must, come with a reason. With `history`, a row has its versions as a list:
    True is for everyone who may read the row, a role or several for those alone. `actors` are the roles that see who
    made a version; everyone else sees that of their own versions. The values of fields in `masked` are never stored.
    """

    reason: Literal["", "optional", "required"] = ""
    history: bool | Role | tuple[Role, ...] = False
    actors: Role | tuple[Role, ...] = ()
    masked: str | tuple[str, ...] = ()
