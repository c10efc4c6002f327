"""Logging as text or JSON, with the time, the level and the current request; and the access log.

    2026-11-16T17:42:15.123Z ERROR diptych POST /graphql 5f…: error 5f… in POST /graphql
    2026-11-16T17:42:15.124Z INFO diptych.access POST /graphql 500 3.1 ms 213 B from 127.0.0.1 as user:ann id 5f…

    {"time": "…", "level": "INFO", "logger": "diptych.access", "message": "POST /graphql …", "status": 500, …}

A client cannot inject line breaks. Query strings are not logged: filters contain what users search for, and redirects
contain authorization codes.
"""

from __future__ import annotations

import json
import logging
import time
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from diptych.config import Config
from diptych.fair.caller import CALLER
from diptych.serve.http.request import Request

REQUEST: ContextVar[Request | None] = ContextVar("request", default=None)
"""The current request."""
access = logging.getLogger("diptych.access")
_PATH = 1_000
"""The most characters of a path in the log."""


def log_access(request: Request, status: int, size: int) -> None:
    """Log a completed request; a stream is logged when it ends."""
    fields = {
        "method": request.method,
        "path": request.path[:_PATH],
        "status": status,
        "milliseconds": round((time.perf_counter() - request.begun) * 1_000, 1),
        "bytes": size,
        "address": request.peer[0] if request.peer else "-",
        "caller": CALLER.get(),
        "request_id": request.id,
    }
    access.info("%s %s %d %s ms %d B from %s as %s id %s", *fields.values(), extra={"fields": fields})


def log_nothing(request: Request, status: int, size: int) -> None:
    """The disabled access log."""


class WithoutSockets(logging.Filter):
    """Drops uvicorn's own lines about WebSockets, which hold the query string; the access log has its own."""

    def filter(self, record: logging.LogRecord) -> bool:
        return '"WebSocket %s"' not in str(record.msg)


class TextFormatter(logging.Formatter):
    """`TIME LEVEL LOGGER REQUEST: MESSAGE`, then the traceback if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        where = _request_of(record)
        request = REQUEST.get()
        id = f" {request.id}" if request is not None and where else ""
        text = f"{_time_of(record)} {record.levelname} {record.name} {where}{id}{': ' if where else ''}"
        text += one_line(record.getMessage())
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


class JsonFormatter(logging.Formatter):
    """One JSON object for each record."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = {
            "time": _time_of(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if where := _request_of(record):
            fields["request"] = where
        if (request := REQUEST.get()) is not None:
            fields["request_id"] = request.id
        fields |= getattr(record, "fields", {})
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields, default=str)


def logging_of(config: Config) -> dict[str, Any]:
    """The configuration of `logging` for a server process (`logging.config.dictConfig`)."""
    kind = JsonFormatter if config.log_format == "json" else TextFormatter
    level = config.log_level.upper()
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": f"{__name__}.{kind.__name__}"}},
        "filters": {"sockets": {"()": f"{__name__}.{WithoutSockets.__name__}"}},
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "formatter": "line",
                "stream": "ext://sys.stderr",
                "filters": ["sockets"],
            }
        },
        "root": {"handlers": ["stderr"], "level": level},
        # at DEBUG, uvicorn logs the frames of WebSockets, and with them tokens and values
        "loggers": {
            "uvicorn": {"level": "INFO" if level == "DEBUG" else level},
            "websockets": {"level": "WARNING"},
            access.name: {"level": "INFO"},
        },
    }


def _time_of(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


def _request_of(record: logging.LogRecord) -> str:
    """Method and path of the request during which a record was made; the access log has them in its own fields."""
    request = REQUEST.get()
    if request is None or record.name == access.name:
        return ""
    return one_line(f"{request.method} {request.path[:_PATH]}")


def one_line(text: str) -> str:
    """A text without control characters: no client can forge a line."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
