"""A process that writes audited rows, and appends them to the log, until it is killed: `python -m … DATABASE`."""

from __future__ import annotations

import asyncio
import sys

from diptych.audit import appender
from tests.contract.audit.audited_model import ANN, MODEL
from tests.support.in_process import in_process


def main(database: str) -> None:
    appender._EVERY = 0.01
    appender._AT_A_TIME = 7
    with asyncio.Runner() as runner, in_process(MODEL, database, runner, {}) as service:
        token = service.token(ANN)
        print("ready", flush=True)
        while True:
            rows = [{"authorId": ANN, "title": f"{number}"} for number in range(5)]
            answer = service.send_json("POST", "/posts", rows, token)
            assert answer.status == 201, answer.body
            row = answer.json()[0]["id"]
            assert service.send_json("PATCH", f"/posts/{row}", {"title": "x"}, token).status == 200


if __name__ == "__main__":
    main(sys.argv[1])
