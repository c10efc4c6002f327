"""SIGHUP starts a service of one process anew, and refuses no connection meanwhile."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from tests.support.running import PATIENCE, Answer, Client, Said, environment


def has_new_settings(client: Client) -> bool:
    """Is a page of 30 rows allowed? It depends on the setting max_page."""
    return client.get("/users?first=30").status == 200


def test_a_hangup_starts_the_service_anew_and_refuses_no_connection(tmp_path: Path) -> None:
    settings = tmp_path / "diptych.toml"
    settings.write_text("max_page = 20\n")
    command = [sys.executable, "-m", "diptych", "serve", "--port", "0", "--workers", "1", "--sample"]
    command += ["--database", f"sqlite:///{tmp_path}/data.db"]
    inherited = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # below nohup it is ignored, by children as well
    try:
        process = subprocess.Popen(
            command, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    finally:
        signal.signal(signal.SIGHUP, inherited)
    assert process.stdout is not None and process.stderr is not None
    out, err, stopped = Said(), Said(), threading.Event()
    readers = [out.follow(process.stdout), err.follow(process.stderr)]
    try:
        address = out.wait(r"^GraphQL  (\S+)/graphql\n").expand(r"\1")
        client = Client(address)
        assert not has_new_settings(client)
        answers: list[Answer | OSError] = []

        def ask() -> None:
            while not stopped.wait(0.005):
                try:
                    answers.append(client.get("/users?first=2"))
                except OSError as error:
                    answers.append(error)

        asking = threading.Thread(target=ask)
        asking.start()
        settings.write_text("max_page = 50\n")
        for hangups in (1, 2):  # the new program takes one as well, as soon as it serves
            count = len(answers)
            while len(answers) < count + 2:
                assert asking.is_alive()
                time.sleep(0.01)
            process.send_signal(signal.SIGHUP)
            until = time.monotonic() + PATIENCE
            while out.text.count("GraphQL") <= hangups:
                assert time.monotonic() < until and process.poll() is None, err.text
                time.sleep(0.05)
        assert has_new_settings(client)
        stopped.set()
        asking.join(PATIENCE)
        failed = [answer for answer in answers if isinstance(answer, OSError) or answer.status != 200]
        assert answers and not failed, (failed, err.text)
        assert process.poll() is None
    finally:
        stopped.set()
        process.terminate()
        code = process.wait(PATIENCE)
        for reader in readers:
            reader.join(PATIENCE)
        process.stdout.close()
        process.stderr.close()
    assert code in (0, -signal.SIGTERM), err.text
