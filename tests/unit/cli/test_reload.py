"""Which changes of files the supervisor of `diptych dev` sees."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from diptych.cli.reload import SourceWatch, source_folders


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "model.py").write_text("")
    for name in ("app", "app/deep", ".git", "node_modules", "__pycache__", "env", "env/lib", "conda/conda-meta"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "env" / "pyvenv.cfg").write_text("")
    return tmp_path


def save(file: Path) -> None:
    """As editors do: a new file takes the place of the old one."""
    beside = file.with_suffix(".swp")
    beside.write_text("new")
    beside.replace(file)


CHANGES: dict[str, tuple[Callable[[Path], object], list[str]]] = {
    "a file is written": (lambda root: (root / "model.py").write_text("new"), ["model.py"]),
    "a file is replaced": (lambda root: save(root / "model.py"), ["model.py"]),
    "a file is removed": (lambda root: (root / "model.py").unlink(), ["model.py"]),
    "a file is new": (lambda root: (root / "app/deep/other.py").write_text(""), ["app/deep/other.py"]),
    "a file is renamed": (lambda root: (root / "model.py").rename(root / "app/m.py"), ["app/m.py", "model.py"]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes_are_seen_from_the_moment_of_making(name: str, project: Path) -> None:
    change, expected = CHANGES[name]
    watch = SourceWatch([project], threading.Event())
    change(project)
    assert [str(file.relative_to(project)) for file in watch.wait()] == expected


def test_a_file_in_a_new_folder_is_seen_at_once_and_later(project: Path) -> None:
    watch = SourceWatch([project], threading.Event())
    file = project / "new" / "deep" / "part.py"
    file.parent.mkdir(parents=True)
    file.write_text("")
    assert watch.wait() == [file]
    file.write_text("again")
    assert watch.wait() == [file]


def test_a_folder_that_is_made_anew_is_watched(project: Path) -> None:
    folder, aside = project / "app", project.parent / f"{project.name}-aside"
    watch = SourceWatch([project], threading.Event())
    folder.rename(aside)
    folder.mkdir()
    (folder / "one.py").write_text("")
    assert folder / "one.py" in watch.wait()
    (folder / "two.py").write_text("")
    assert watch.wait() == [folder / "two.py"]


def test_databases_caches_environments_and_hidden_folders_are_ignored(project: Path) -> None:
    watch = SourceWatch([project], threading.Event())
    for name in ("a.db", "a.db-wal", "a.db-shm", "a.sqlite3", "notes.md", "model.pyc"):
        (project / name).write_text("")
    for folder in (".git", "node_modules", "__pycache__", "env", "env/lib", "conda", ".cache/new", "uploads/2026"):
        (project / folder).mkdir(parents=True, exist_ok=True)
        if folder != "uploads/2026":
            (project / folder / "module.py").write_text("")
    (project / "model.py").write_text("new")
    assert watch.wait() == [project / "model.py"]


def test_only_folders_of_source_are_watched(project: Path) -> None:
    found = {str(folder.relative_to(project)) for folder in source_folders([project])}
    assert found == {".", "app", "app/deep"}


def test_waiting_ends_when_it_is_stopped(project: Path) -> None:
    stopped = threading.Event()
    watch = SourceWatch([project], stopped)
    threading.Timer(0.3, stopped.set).start()
    assert watch.wait() == []


@pytest.mark.slow
def test_where_the_system_reports_nothing_files_are_polled(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCHFILES_FORCE_POLLING", "true")
    watch = SourceWatch([project], threading.Event())
    os.utime(project / "model.py", (2_000_000_000, 2_000_000_000))  # polling compares whole seconds
    assert watch.wait() == [project / "model.py"]
