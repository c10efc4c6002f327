"""`diptych dev` as a process: it reloads by file events, and ends as a whole."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.running import PATIENCE, NewDatabase, Said, environment, running, stop

NOTES = '''
from diptych import Model, Resource, grant


class Note(Resource):
    """A note."""

    text: str = ""
    access = (grant("read"),)


model = Model(Note)
'''
WATCHED = 4.0
"""Seconds over which an idle service is measured, three times: what else the machine does can only add to it."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a model, and a virtual environment in which much is installed."""
    (tmp_path / "notes.py").write_text(NOTES)
    environment_folder = tmp_path / "env"
    venv.create(environment_folder)
    for package in range(100):
        folder = environment_folder / "lib" / "packages" / f"package{package}"
        folder.mkdir(parents=True)
        for module in range(20):
            (folder / f"module{module}.py").write_text("")
    return tmp_path


def processes(pid: int) -> list[int]:
    """A process and all that it started, directly or not."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(found for child in children for found in processes(int(child)))]


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def seconds_of_cpu(pids: list[int]) -> float:
    """Processor time of all threads, to the nanosecond: a thread that sleeps most of the time escapes the ticks."""
    threads = [file for pid in pids for file in Path(f"/proc/{pid}/task").glob("*/schedstat")]
    return sum(int(file.read_text().split()[0]) for file in threads) / 1e9


def share_of_a_core(pids: list[int], seconds: float) -> float:
    begun, spent = time.monotonic(), seconds_of_cpu(pids)
    time.sleep(seconds)
    return (seconds_of_cpu(pids) - spent) / (time.monotonic() - begun)


def watches(pid: int) -> int:
    """The inotify watches of a process."""
    texts = [file.read_text() for file in Path(f"/proc/{pid}/fdinfo").iterdir()]
    return sum(line.startswith("inotify ") for text in texts for line in text.splitlines())


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_an_idle_service_takes_next_to_no_time_beside_a_virtual_environment(
    project: Path, new_sqlite: NewDatabase
) -> None:
    with running("dev", "notes:model", database=new_sqlite(), cwd=project) as service:
        time.sleep(2)  # what start-up left to do
        pids = processes(service.process.pid)
        assert len(pids) >= 2
        assert watches(pids[0]) == 1
        shares: list[float] = []
        while not shares or (shares[-1] >= 0.01 and len(shares) < 3):  # a busy machine can only make it seem more
            shares.append(share_of_a_core(pids, WATCHED))
        assert shares[-1] < 0.01, [f"{share:.2%} of a core" for share in shares]


def test_it_starts_again_on_the_same_database(new_sqlite: NewDatabase) -> None:
    database = new_sqlite()
    for _ in range(2):
        with running("dev", database=database) as service:
            assert service.get("/users").status == 200


def test_a_syntax_error_is_shown_and_the_next_save_starts_the_server(project: Path, new_sqlite: NewDatabase) -> None:
    file = project / "notes.py"
    with running("dev", "notes:model", database=new_sqlite(), cwd=project) as service:
        file.write_text(NOTES + "\nclass:")
        service.err.wait(r"(?s)Reloading: notes\.py changed.*cannot be imported: invalid syntax \(notes\.py:14\)")
        service.err.wait("the service starts again")
        file.write_text(NOTES)
        service.err.wait(r"(?s)Reloading.*Reloading.*Application startup complete")
        assert service.get("/notes").status == 200


def test_who_connects_while_no_server_runs_is_answered_by_the_next_one(project: Path, new_sqlite: NewDatabase) -> None:
    file = project / "notes.py"
    with running("dev", "notes:model", database=new_sqlite(), cwd=project) as service:
        file.write_text("broken")
        service.err.wait("cannot be imported")
        with socket.create_connection(("127.0.0.1", service.port), timeout=PATIENCE) as connection:
            connection.sendall(b"GET /notes HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n")
            file.write_text(NOTES)
            assert connection.recv(65536).startswith(b"HTTP/1.1 200")


def test_a_change_while_the_server_starts_is_not_missed(project: Path, new_sqlite: NewDatabase) -> None:
    file = project / "notes.py"
    with running("dev", "notes:model", database=new_sqlite(), cwd=project) as service:
        for count in range(1, 6):
            file.write_text(NOTES.replace("text: str", f"text{count}: str"))
            time.sleep(0.25)  # in the middle of a start
        service.err.wait(r"(?s)(Reloading.*)+Application startup complete")
        until = time.monotonic() + PATIENCE
        while service.get("/notes?fields=text5").status != 200:
            assert time.monotonic() < until
            time.sleep(0.1)


def test_a_change_within_the_second_and_of_the_same_size_is_served(project: Path, new_sqlite: NewDatabase) -> None:
    """Python takes cached bytecode for that of every source with its time, in seconds, and its size."""
    file = project / "notes.py"
    with running("dev", "notes:model", database=new_sqlite(), cwd=project) as service:
        written = file.stat().st_mtime
        for count in range(1, 4):
            file.write_text(NOTES.replace("text: str", f"text{count}: str"))
            os.utime(file, (written, written))
            until = time.monotonic() + PATIENCE / 4
            while service.get(f"/notes?fields=text{count}").status != 200:
                assert time.monotonic() < until
                time.sleep(0.1)


@contextmanager
def session(project: Path, database: str) -> Iterator[tuple[subprocess.Popen[str], Said, Said]]:
    """`diptych dev` in a process group of its own, as a terminal has it."""
    command = [sys.executable, "-m", "diptych", "dev", "notes:model", "--database", database, "--port", "0"]
    process = subprocess.Popen(
        command,
        cwd=project,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None and process.stderr is not None
    with process.stdout, process.stderr:
        out, err = Said(), Said()
        threads = [out.follow(process.stdout), err.follow(process.stderr)]
        try:
            yield process, out, err
        finally:
            stop(process)
            for thread in threads:
                thread.join(PATIENCE)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("moment", ["serving", "starting", "broken"])
def test_ctrl_c_ends_everything(moment: str, project: Path, new_sqlite: NewDatabase) -> None:
    with session(project, new_sqlite()) as (process, out, err):
        out.wait("GraphQL")
        if moment != "starting":
            err.wait("startup complete")
        if moment == "broken":
            (project / "notes.py").write_text("broken")
            err.wait("cannot be imported")
        while len(processes(process.pid)) < 2:
            time.sleep(0.01)
        pids = processes(process.pid)
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(PATIENCE) == 0
    assert err.ended and "Traceback" not in err.text
    until = time.monotonic() + PATIENCE
    while any(map(is_running, pids)):
        assert time.monotonic() < until
        time.sleep(0.05)
