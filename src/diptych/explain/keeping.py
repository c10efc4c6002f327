"""Who may keep the answer to a request, and which part of it decides that."""

from __future__ import annotations

from diptych.ask.nodes import Call
from diptych.check.public import age_of, age_of_call
from diptych.explain.wanted import Wanted
from diptych.model.defs import QueryDef


def keeping_lines(wanted: Wanted) -> list[str]:
    """A line about it; none of a change, which no cache keeps."""
    deeds = [deed.ask for deed, _ in wanted.deeds]
    calls = [deed for deed in deeds if isinstance(deed, Call) and _is_query(deed, wanted)]
    asks = wanted.reads[0].asks
    if len(calls) < len(deeds) or not (asks or calls):
        return []
    ages = [*([age_of(asks, wanted.view)] if asks else []), *(age_of_call(call, wanted.view) for call in calls)]
    seconds, because = min(ages)
    return [f"Cache  by anyone, for {seconds} s: {because}" if seconds else f"Cache  private: {because}"]


def _is_query(call: Call, wanted: Wanted) -> bool:
    return isinstance(wanted.view.model[call.resource].call(call.name), QueryDef)
