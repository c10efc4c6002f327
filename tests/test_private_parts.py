"""Every private part of uvicorn, httptools, websockets, watchfiles and asyncpg that the source uses is in one list, PARTS.

Private is what their documentation does not describe: submodules and what is in them, attributes of their objects, and
methods that we override. An update of one of them may take such a part away, so pyproject.toml bounds their versions, and
this file tells what to look at before a bound is moved:

1. every part of the list exists in the installed version;
2. the list holds what the source uses, no more and no less: a scan of the syntax trees finds the uses.

The scan knows an object of theirs by how the source writes it (RECEIVERS), or as `self` in a subclass (SUBCLASSES).
"""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import inspect
import re
import textwrap
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from diptych import Config
from tests.support.cases import cases

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src" / "diptych"
LIBRARIES = ("asyncpg", "httptools", "uvicorn", "watchfiles", "websockets")

HTTP = "uvicorn.protocols.http.httptools_impl.HttpToolsProtocol"
CYCLE = "uvicorn.protocols.http.httptools_impl.RequestResponseCycle"
FLOW = "uvicorn.protocols.http.flow_control.FlowControl"
SOCKET = "uvicorn.protocols.websockets.websockets_sansio_impl.WebSocketsSansIOProtocol"
STATE = "uvicorn.server.ServerState"
SERVER = "uvicorn.server.Server"
CONFIG = "uvicorn.config.Config"
PROCESS = "uvicorn.supervisors.multiprocess.Process"
PARSER = "httptools.parser.parser.HttpRequestParser"
HANDSHAKE = "websockets.server.ServerProtocol"
CONNECTION = "asyncpg.connection.Connection"
STATEMENT = "asyncpg.prepared_stmt.PreparedStatement"
WIRE = "asyncpg.protocol.protocol.BaseProtocol"

PARTS: dict[str, str] = {
    # modules, and what is taken from them
    "uvicorn._types": "ASGI3Application ASGIReceiveEvent",
    "uvicorn.config": "Config STARTUP_FAILURE",
    "uvicorn.protocols.http.httptools_impl": "HttpToolsProtocol RequestResponseCycle STATUS_LINE",
    "uvicorn.protocols.utils": "ClientDisconnected",
    "uvicorn.protocols.websockets.websockets_sansio_impl": "WebSocketsSansIOProtocol",
    "uvicorn.server": "ServerState",
    "uvicorn.supervisors": "multiprocess",
    "uvicorn.supervisors.multiprocess": "Multiprocess Process",
    "watchfiles._rust_notify": "RustNotify",
    "websockets.datastructures": "Headers",
    "websockets.exceptions": "HeaderLineTooLong RequestLineTooLong TooManyHeaders",
    "websockets.http11": "Request Response",
    "asyncpg.prepared_stmt": "PreparedStatement",
    # attributes that are read or set, and methods that are called or overridden
    HTTP: """
        __init__ connection_made connection_lost data_received pause_writing resume_writing
        on_header on_headers_complete on_body on_message_complete on_response_complete send_400_response
        _should_upgrade _start_asgi_task handle_websocket_upgrade
        access_log access_logger app app_state asgi_version client cycle expect_100_continue flow headers logger loop
        on_message_begin parser pipeline root_path scheme scope server server_state tasks transport url
        """,
    CYCLE: """
        access_log body chunked_encoding default_headers disconnected flow keep_alive message_event more_body on_response
        response_complete response_started run_asgi scope transport waiting_for_100_continue
        """,
    FLOW: "pause_reading resume_reading write_paused",
    SOCKET: """
        connection_lost data_received handle_connect handle_parser_exception handle_ping on_task_complete receive
        resume_writing send send_receive_event_to_app
        close_sent conn curr_msg_data_type disconnected frames handshake_complete handshake_initiated loop queue
        read_paused transport writable
        """,
    STATE: "default_headers total_requests",
    SERVER: "_captured_signals config handle_exit main_loop on_tick servers shutdown startup",
    CONFIG: "loaded_app",
    PROCESS: "_server config is_alive parent_conn process server",
    PARSER: "feed_data get_http_version get_method set_dangerous_leniencies should_keep_alive should_upgrade",
    HANDSHAKE: "accept data_to_send fail handshake_exc",
    CONNECTION: "_protocol",
    STATEMENT: "_state fetchmany get_name",
    WIRE: "_is_cancelling _wait_for_cancellation bind_execute bind_execute_many is_connected is_in_transaction",
}
UNWRITTEN = {CYCLE: "receive send"}
"""Bound methods that uvicorn gives to the application; `__self__` of them is the object."""
RECEIVERS: dict[str, tuple[str, ...]] = {
    "cycle": (CYCLE,),
    "self.cycle": (CYCLE,),
    "self._cycle": (CYCLE,),
    "self._serving[0]": (CYCLE,),
    "cycle.flow": (FLOW,),
    "self.flow": (FLOW,),
    "self._cycle.flow": (FLOW,),
    "protocol": (HTTP, SOCKET, WIRE),
    "self.protocol": (WIRE,),
    "self._protocol": (HTTP, SOCKET),
    "self._frames": (SOCKET,),
    "self.parser": (PARSER,),
    "self.conn": (HANDSHAKE,),
    "self.server_state": (STATE,),
    "self.config": (CONFIG,),
    "config": (CONFIG,),
    "connection": (CONNECTION,),
    "connection._protocol": (WIRE,),
    "statement": (STATEMENT,),
}
"""How the source writes an object of theirs, and what it may be. Names alone do not say it: `config` is mostly ours."""
SUBCLASSES = {
    "HttpToolsProtocol": HTTP,
    "HttpConnection": HTTP,
    "Exchanges": HTTP,
    "WebSocketsSansIOProtocol": SOCKET,
    "uvicorn.Server": SERVER,
    "multiprocess.Process": PROCESS,
}
ORDINARY = {"_asdict", "feed_data", "pause_reading", "resume_reading", "send", "transport"}
"""Names that generators, transports, parsers and named tuples have too."""
LISTED = {(owner, name) for owner, names in PARTS.items() for name in names.split()}


SETTINGS = {setting.name for setting in fields(Config)}


def is_library(path: str) -> bool:
    return path.split(".")[0] in LIBRARIES


# what is there


def found(path: str) -> Any:
    """The module or class at a path."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name) if name[0].isupper() else importlib.import_module(path)


@cache
def members(path: str) -> frozenset[str]:
    """The names in a module, or of a class and its objects, those included that only a method assigns."""
    owner = found(path)
    names = set(dir(owner))
    for kind in inspect.getmro(owner) if inspect.isclass(owner) else ():
        names.update(inspect.get_annotations(kind))
        if is_library(kind.__module__) and (inspect.getmodule(kind).__file__ or "").endswith(".py"):  # type: ignore[union-attr]  # never None here
            source = ast.parse(textwrap.dedent(inspect.getsource(kind)))
            names.update(node.attr for node in ast.walk(source) if isinstance(node, ast.Attribute) and is_set(node))
    return frozenset(names)


@cases("owner", [*PARTS, *UNWRITTEN])
def test_every_part_exists_in_the_installed_version(owner: str) -> None:
    names = f"{PARTS.get(owner, '')} {UNWRITTEN.get(owner, '')}".split()
    assert [name for name in names if name not in members(owner)] == []


def test_what_does_not_exist_is_noticed() -> None:
    """Breaks the look itself: attributes that only a method assigns are found, and no others are."""
    assert {"response_started", "run_asgi", "flow"} <= members(CYCLE)
    assert "response_begun" not in members(CYCLE)
    assert "_protocol" in members(CONNECTION) and "_nothing" not in members(WIRE)


# what is used


def is_set(node: ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Store) and written(node.value) == "self"


def written(node: ast.expr) -> str:
    """An expression as text; `ast.unparse` is slow, and most are names, or attributes of names."""
    names: list[str] = []
    part = node
    while isinstance(part, ast.Attribute):
        names.append(part.attr)
        part = part.value
    return ".".join([part.id, *reversed(names)]) if isinstance(part, ast.Name) else ast.unparse(node)


def bases(node: ast.ClassDef) -> list[str]:
    """The classes of theirs that a class of ours inherits from."""
    return [SUBCLASSES[base] for base in map(ast.unparse, node.bases) if base in SUBCLASSES]


def own_names(node: ast.ClassDef) -> set[str]:
    """What a subclass adds by itself: in its body, or in `__init__`."""
    names: set[str] = set()
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(statement.name)
            if statement.name == "__init__":
                names |= {part.attr for part in ast.walk(statement) if isinstance(part, ast.Attribute) and is_set(part)}
        elif isinstance(statement, ast.AnnAssign):
            names.add(ast.unparse(statement.target))
        elif isinstance(statement, ast.Assign):
            names |= set(map(ast.unparse, statement.targets))
    return names


@cache
def sources() -> dict[str, list[ast.AST]]:
    """All nodes of each file of ours: to walk along a tree takes most of the time."""
    files = sorted(SRC.rglob("*.py"))
    return {str(file.relative_to(SRC)): [*ast.walk(ast.parse(file.read_text("utf-8")))] for file in files}


@cache
def classes_between() -> dict[str, ast.ClassDef]:
    """The classes of ours that are both a subclass of theirs and a base of ours."""
    nodes = (node for nodes in sources().values() for node in nodes)
    found = (node for node in nodes if isinstance(node, ast.ClassDef) and bases(node))
    return {node.name: node for node in found if node.name in SUBCLASSES}


def inherited_names(node: ast.ClassDef) -> set[str]:
    """What the bases of a class add, those of ours."""
    between = [classes_between()[base] for base in map(ast.unparse, node.bases) if base in classes_between()]
    return set().union(*(own_names(base) | inherited_names(base) for base in between))


@dataclass
class Scan:
    """The uses in one file."""

    nodes: list[ast.AST]
    used: set[tuple[str, str]] = field(default_factory=set)
    known: set[ast.Attribute] = field(default_factory=set)
    """Accesses whose object is known to be one of theirs, or of ours."""

    def __post_init__(self) -> None:
        modules = dict(self.imported())
        for node in self.nodes:
            if isinstance(node, ast.ClassDef):
                for owner in bases(node):
                    self.inherit(node, owner)
            elif isinstance(node, ast.Attribute):
                text = written(node.value)
                owners = (modules[text],) if text in modules else RECEIVERS.get(text, ())
                if text in SUBCLASSES:
                    owners = (SUBCLASSES[text],)
                for owner in [owner for owner in owners if (owner, node.attr) in LISTED] or owners:
                    self.access(node, owner)

    def imported(self) -> Iterator[tuple[str, str]]:
        """Notes what is imported from submodules of theirs; gives the submodules among it, by name."""
        for node in self.nodes:
            if isinstance(node, ast.ImportFrom) and node.module and is_library(node.module) and "." in node.module:
                for alias in node.names:
                    self.used.add((node.module, alias.name))
                    if alias.name.islower():
                        yield alias.asname or alias.name, f"{node.module}.{alias.name}"

    def inherit(self, node: ast.ClassDef, owner: str) -> None:
        """A subclass uses what it overrides, and whatever of `self` and `super()` is not its own."""
        own = own_names(node)
        self.used |= {(owner, name) for name in own & members(owner) if (owner, name) in LISTED or name[:2] != "__"}
        own |= inherited_names(node)
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute):
                text = written(part.value)
                if text.startswith("super(") or (text == "self" and part.attr not in own):
                    self.access(part, owner, certain=True)

    def access(self, node: ast.Attribute, owner: str, certain: bool = False) -> None:
        self.known.add(node)
        name = node.attr
        if owner == CONNECTION and not name.startswith("_"):  # its methods are public
            return
        if owner == CONFIG and name in SETTINGS:  # ours has the same name
            return
        if certain or (owner, name) in LISTED or name in members(owner):
            self.used.add((owner, name))


@cache
def scans() -> dict[str, Scan]:
    return {file: Scan(nodes) for file, nodes in sources().items()}


def test_the_list_holds_what_the_source_uses_and_no_more() -> None:
    used = set().union(*(scan.used for scan in scans().values()))
    assert {"uses that are not in PARTS": sorted(used - LISTED), "not used any more": sorted(LISTED - used)} == {
        "uses that are not in PARTS": [],
        "not used any more": [],
    }


def definitions(nodes: list[ast.AST]) -> Iterator[str]:
    """Every name that a file defines as a member of something."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and is_set(node):
            yield node.attr
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            yield from map(written, [node.target] if isinstance(node, ast.AnnAssign) else node.targets)


def test_no_part_is_used_of_an_object_that_the_scan_does_not_know() -> None:
    ours = {name for scan in scans().values() for name in definitions(scan.nodes)} | ORDINARY
    theirs = {name for owner, name in LISTED if owner.rpartition(".")[2][0].isupper()} - ours
    unknown = [
        f"src/diptych/{file}:{node.lineno}: {ast.unparse(node)}"
        for file, scan in scans().items()
        for node in scan.nodes
        if isinstance(node, ast.Attribute) and node not in scan.known and node.attr not in ours
        if node.attr in theirs or (node.attr.startswith("_") and not node.attr.startswith("__"))
    ]
    assert not unknown, "\n".join(["add how the object is written to RECEIVERS:", *unknown])


# bounds


def project() -> dict[str, Requirement]:
    written = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    return {found.name: found for found in map(Requirement, written)}


@pytest.mark.parametrize("name", LIBRARIES)
def test_the_next_version_that_may_differ_is_not_allowed(name: str) -> None:
    major, minor, *_ = Version(importlib.metadata.version(name)).release
    bound = project()[name].specifier
    assert bound.contains(f"{major}.{minor}") or bound.contains(f"{major}.{minor}.999")
    following = f"0.{minor + 1}" if major == 0 else f"{major + 1}.0"
    assert not bound.contains(following)


@pytest.mark.parametrize("lock", ["run", "dev", "bench"])
def test_the_locks_are_within_the_bounds(lock: str) -> None:
    text = (ROOT / "requirements" / f"{lock}.txt").read_text("utf-8")
    pinned = dict(re.findall(r"^([\w.-]+)==([^ ;\\]+)", text, re.MULTILINE))
    assert project().keys() <= pinned.keys()
    assert [name for name, found in project().items() if not found.specifier.contains(pinned[name])] == []
