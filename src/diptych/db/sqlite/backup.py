"""Online backup of a SQLite database, its verification, and the restore of one.

A backup is a snapshot: pages are copied inside one read transaction, which in WAL mode holds up nobody. It counts as
made once it was read back (`integrity_check`, `foreign_key_check`), is on the disk, and has its name.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import apsw

from diptych.db.sqlite.private_file import BESIDE
from diptych.db.whole_file import whole_file
from diptych.errors import StartError

_PAGES = 2_000
"""Pages between two calls of `progress`."""
_READ = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
Progress = Callable[[int, int], None]


def back_up(database: str, target: Path, progress: Progress = lambda done, total: None) -> int:
    """Copy a database that may be in use, verify the copy, and give its size in bytes."""
    if target.exists() and target.samefile(database):
        raise StartError(f"{target} is the database itself; choose another name.")
    if logs := _logs(target):
        raise StartError(f"{target} is a database in use, or was not closed: {logs[0]} is there; choose another name.")
    with whole_file(target) as part:
        try:
            _copy(database, part, progress)
        except apsw.Error as error:
            why = "the disk is full or cannot be written" if isinstance(error, apsw.IOError | apsw.FullError) else error
            raise StartError(f"{database} cannot be copied: {why}.") from None
        verify_backup(part)
        return part.stat().st_size


def _copy(database: str, part: Path, progress: Progress) -> None:
    with closing(_open(database)) as source, closing(_open(str(part))) as copy:
        source.execute("BEGIN")
        source.execute("SELECT count(*) FROM sqlite_schema").fetchall()  # the snapshot begins here
        with copy.backup("main", source, "main") as pages:
            while not pages.done:
                pages.step(_PAGES)
                progress(pages.page_count - pages.remaining, pages.page_count)


def verify_backup(path: Path) -> None:
    """Read all of a database: a StartError if it is not a sound one."""
    try:
        with closing(apsw.Connection(f"{path.absolute().as_uri()}?immutable=1", flags=_READ)) as db:
            state = db.execute("PRAGMA integrity_check(1)").get
            dangling = db.execute("PRAGMA foreign_key_check").fetchall()
    except apsw.NotADBError:
        raise StartError(f"{path} is not a SQLite database.") from None
    except apsw.Error as error:
        raise StartError(f"{path} cannot be read: {error}.") from None
    if state != "ok":
        raise StartError(f"{path} is corrupt: {state}.")
    if dangling:
        raise StartError(f"{path} has references that lead nowhere, the first in the table {dangling[0][0]}.")


def restore(source: Path, database: str) -> Path | None:
    """Put a verified copy of a backup in the place of a database that nobody has open; gives where the old one is."""
    if logs := _logs(source):
        how = f"open it once by `sqlite3 {source} 'PRAGMA journal_mode=DELETE'`"
        raise StartError(f"{source} is not all of a database: {logs[0]} may have what is not in it; {how}.")
    verify_backup(source)
    path = Path(database)
    if path.is_symlink():
        path = path.resolve()  # the database may be on another disk
    with _alone(path), whole_file(path) as part:
        shutil.copyfile(source, part)
        verify_backup(part)
        return _keep(path)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold a database that no other process has open; a StartError if one has.

    Leaving WAL mode needs the only connection, and folds the log into the file. One that is corrupt remains as it is.
    """
    if not path.exists():
        yield
        return
    with closing(_open(str(path))) as db:
        try:
            db.execute("PRAGMA locking_mode=EXCLUSIVE").fetchall()
            db.execute("PRAGMA journal_mode=DELETE").fetchall()
            db.execute("BEGIN EXCLUSIVE")
        except apsw.BusyError:
            raise StartError(f"{path} is in use; stop the services that have it open first.") from None
        except (apsw.NotADBError, apsw.CorruptError):
            pass
        except apsw.Error as error:
            raise StartError(f"{path} cannot be opened: {error}.") from None
        yield


def _keep(path: Path) -> Path | None:
    """Give a database a second name, under which it remains when the first is given to another. A log that is still
    beside it goes along: SQLite would take it for that of the other, and put old pages into it."""
    kept = path.with_name(f"{path.name}.replaced-{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
    for log in _logs(path):
        log.rename(kept.with_name(kept.name + log.name.removeprefix(path.name)))
    for suffix in BESIDE[1:]:
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    if not path.exists():
        return None
    kept.hardlink_to(path)
    return kept


def _logs(path: Path) -> list[Path]:
    """The logs beside a database that have what is not in its file."""
    beside = [path.with_name(path.name + suffix) for suffix in ("-wal", "-journal")]
    return [log for log in beside if log.exists() and log.stat().st_size]


def _open(path: str) -> apsw.Connection:
    return apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
