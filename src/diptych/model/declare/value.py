"""The base class of value objects: `class Address(Value): city: str` is the type of a field, and no resource.

A value has no id: it belongs to its row, is compared by its members, and does not change. A row gets another one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import dataclass_transform


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Value:
    """The base class of value objects. Their members are scalars."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        dataclass(frozen=True, kw_only=True)(cls)
