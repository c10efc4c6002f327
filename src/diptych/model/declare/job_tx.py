"""The transaction of a job: what a function that runs in the background gets, and the exception that asks for a retry.

@action(background=True)
@classmethod
async def import_feed(cls, tx: JobTx, url: str) -> int:
    items = await download(url)                     no transaction is open yet
    tx.progress(0.5, "downloaded")
    for item in items:
        await tx.save(Post(title=item.title))       it begins here, and ends with the function
    return len(items)
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from diptych.model.declare.tx import Tx


class JobTx(Tx):
    """A transaction that begins at its first use, and is committed together with the end of the job."""

    @property
    @abstractmethod
    def job_id(self) -> str:
        """The id of the job; the same in every attempt."""

    @property
    @abstractmethod
    def attempt(self) -> int:
        """The number of this attempt, from 1."""

    @property
    @abstractmethod
    def state(self) -> Any:
        """The JSON value of the last checkpoint, of this attempt or one before; None if there was none."""

    @abstractmethod
    def progress(self, part: float, text: str = "") -> None:
        """Report how much is done, from 0 to 1, and in words. It is stored about once a second, without waiting."""

    @abstractmethod
    async def checkpoint(self, state: Any = None) -> None:
        """Commit what was done so far, together with a JSON value from which the next attempt goes on.

        The next use begins a new transaction. If another node has taken the job over, or it was cancelled, nothing is
        committed, and the function ends with an exception that it should not catch.
        """


class Retry(Exception):
    """Raised by a job's function: nothing of this attempt is kept, and it runs again, after a backoff or `after`
    seconds."""

    def __init__(self, message: str = "", after: float | None = None) -> None:
        super().__init__(message)
        self.after = after


class LostJob(Exception):
    """The job is not this node's any more: it was cancelled, or its lease has expired."""
