"""The limits of requests, from the settings."""

from __future__ import annotations

from diptych.ask.measures import Limits
from diptych.config import Config


def request_limits(config: Config) -> Limits:
    """The request limits of these settings."""
    return Limits(
        depth=config.max_depth,
        complexity=config.max_complexity,
        aliases=config.max_aliases,
        roots=config.max_roots,
        directives=config.max_directives,
        selections=config.max_selections,
        tokens=config.max_tokens,
        string=config.max_string,
        document=config.max_document,
        nesting=config.max_nesting,
        filter_terms=config.max_terms,
        sort_keys=config.max_sort,
        page=config.max_page,
        offset=config.max_offset,
        in_list=config.max_in,
        writes=config.max_writes,
        bulk=config.max_bulk,
    )
