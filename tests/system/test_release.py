"""`make release`, run in a copy of this repository: what it refuses, what it makes, and that a dry run changes nothing."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
VERSION = "97.8.6"
IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Ann"), ("EMAIL", "ann@example.org"))
}
FILES = [
    "SHA256SUMS",
    f"diptych-{VERSION}-py3-none-any.whl",
    f"diptych-{VERSION}.cdx.json",
    f"diptych-{VERSION}.tar.gz",
]
NEWS = "# Changes\n\n## Unreleased\n\n### Added\n\n- Something new.\n\n## 0.0.1 (2020-01-01)\n\n- Something old.\n"
pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(not (ROOT / ".git").exists(), reason="a release is made from a repository"),
]


def git(folder: Path, *arguments: str) -> str:
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | IDENTITY
    done = subprocess.run(["git", *arguments], cwd=folder, env=env, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "-c", "commit.gpgsign=false", "commit", "--quiet", "--message", "A state")


def make(folder: Path, *variables: str) -> subprocess.CompletedProcess[str]:
    """`make release`, with the environment of these tests, which it does not set up again."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "MAKE", "MFLAGS", "ARGS"))}
    command = ["make", "--no-print-directory", "-o", ".venv/run.stamp", f"BIN={BIN}", "release", *variables]
    return subprocess.run(command, cwd=folder, env=env | IDENTITY, capture_output=True, text=True, check=False)


def state(folder: Path) -> tuple[str, ...]:
    commands = (["rev-parse", "HEAD"], ["tag"], ["status", "--porcelain"], ["worktree", "list"], ["branch"])
    return tuple(git(folder, *command) for command in commands)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the files of this one as they are now, and a short CHANGELOG."""
    folder = tmp_path_factory.mktemp("original")
    for name in git(ROOT, "ls-files", "-z").split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    (folder / "CHANGELOG.md").write_text(NEWS)
    git(folder, "init", "--quiet", "--initial-branch", "main")
    commit(folder)
    return folder


@pytest.fixture
def repository(original: Path, tmp_path: Path) -> Path:
    git(tmp_path, "clone", "--quiet", str(original), "repository")
    return tmp_path / "repository"


def refused(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode != 0, done
    assert "Traceback" not in done.stderr
    return done.stderr.splitlines()[0]


def materials(folder: Path) -> Any:
    return json.loads((folder / f"diptych-{VERSION}.cdx.json").read_text())


# what is refused


@pytest.mark.parametrize("version", ["", "1.2", "one", "1.2.0.dev1", "1.2.0+local", "v1.2.0", "01.2.0"])
def test_what_is_no_version_is_refused(version: str, original: Path) -> None:
    said = refused(make(original, f"VERSION={version}"))
    assert "is no version" in said if version else said == "Name the version: make release VERSION=1.2.0"


@pytest.mark.parametrize("dry", [[], ["DRY_RUN=1"]], ids=["", "dry run"])
def test_a_tree_that_is_not_clean_is_refused(dry: list[str], repository: Path) -> None:
    (repository / "note.txt").touch()
    said = refused(make(repository, f"VERSION={VERSION}", *dry))
    assert said == "The tree is not clean; commit or remove what `git status` lists."


def test_a_changelog_without_news_is_refused(repository: Path) -> None:
    (repository / "CHANGELOG.md").write_text(NEWS.replace("- Something new.\n", ""))
    commit(repository)
    assert refused(make(repository, f"VERSION={VERSION}")) == "CHANGELOG.md has nothing under '## Unreleased'."


def test_a_version_that_is_not_newer_is_refused(repository: Path) -> None:
    git(repository, "tag", "v97.8.6rc1")
    git(repository, "tag", "v97.10.0")
    assert refused(make(repository, f"VERSION={VERSION}")) == f"{VERSION} is not newer than v97.10.0."


def test_a_build_that_fails_changes_nothing(repository: Path) -> None:
    project = repository / "pyproject.toml"
    project.write_text(project.read_text().replace('license = "MIT"', 'license = "No License"'))
    commit(repository)
    before = state(repository)
    assert refused(make(repository, f"VERSION={VERSION}")).startswith("The build failed: ")
    assert state(repository) == before
    assert not (repository / "dist").exists()


@pytest.mark.long
def test_builds_that_differ_are_refused(repository: Path) -> None:
    (repository / ".gitattributes").write_text("README.md export-ignore\ndocs export-ignore\n")
    project = repository / "pyproject.toml"
    project.write_text(project.read_text().replace('readme = "README.md"\n', ""))
    commit(repository)
    assert refused(make(repository, f"VERSION={VERSION}")) == f"Two builds differ: diptych-{VERSION}.tar.gz."


# what is made


@pytest.fixture(scope="module")
def tried(original: Path) -> Path:
    """The files of a dry run."""
    before = state(original)
    done = make(original, f"VERSION={VERSION}", "DRY_RUN=1", "ARGS=--date 2026-01-31")
    assert done.returncode == 0, done.stderr
    assert state(original) == before, "a dry run makes neither a commit nor a tag"
    assert done.stdout.endswith(f"A dry run: the files are in dist/{VERSION}, and there is no commit and no tag.\n")
    return original / "dist" / VERSION


def test_a_dry_run_makes_all_files_with_their_checksums(tried: Path) -> None:
    assert sorted(file.name for file in tried.iterdir()) == FILES
    sums = {name: hashlib.sha256((tried / name).read_bytes()).hexdigest() for name in FILES[1:]}
    assert (tried / "SHA256SUMS").read_text() == "".join(f"{sums[name]}  {name}\n" for name in FILES[1:])


def test_wheel_and_sdist_have_the_version_and_the_section(tried: Path) -> None:
    with zipfile.ZipFile(tried / FILES[1]) as wheel:
        assert f"\nVersion: {VERSION}\n" in wheel.read(f"diptych-{VERSION}.dist-info/METADATA").decode()
    with tarfile.open(tried / FILES[3]) as sdist:
        changes = sdist.extractfile(f"diptych-{VERSION}/CHANGELOG.md")
        assert changes is not None
        assert changes.read().decode() == NEWS.replace("Unreleased\n", f"Unreleased\n\n## {VERSION} (2026-01-31)\n")
        assert f"diptych-{VERSION}/tools/release.py" in sdist.getnames()


def test_the_bill_of_materials_is_the_lock(tried: Path) -> None:
    found = materials(tried)
    assert (found["bomFormat"], found["specVersion"], found["version"]) == ("CycloneDX", "1.6", 1)
    assert re.fullmatch(
        r"urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", found["serialNumber"]
    )
    assert found["metadata"]["component"]["purl"] == f"pkg:pypi/diptych@{VERSION}"
    lock = (ROOT / "requirements" / "run.txt").read_text()
    pinned = re.findall(r"^([\w.-]+)==([^ ;\\]+)", lock, re.MULTILINE)
    assert [(each["name"], each["version"]) for each in found["components"]] == sorted(pinned)
    licensed = {each["name"]: each["licenses"] for each in found["components"] if "licenses" in each}
    assert licensed["uvicorn"] == [{"expression": "BSD-3-Clause"}]


def test_the_bill_of_materials_tells_who_needs_what(tried: Path) -> None:
    found = materials(tried)
    graph = {each["ref"]: each["dependsOn"] for each in found["dependencies"]}
    known = {each["bom-ref"] for each in found["components"]} | {found["metadata"]["component"]["bom-ref"]}
    assert graph.keys() == known
    reached: set[str] = set()
    waiting = [f"pkg:pypi/diptych@{VERSION}"]
    while waiting:
        ref = waiting.pop()
        if ref not in reached:
            reached.add(ref)
            waiting += graph[ref]
    assert reached == known, "everything is needed by something"
    (cffi,) = [each for each in known if each.startswith("pkg:pypi/cffi@")]
    (cryptography,) = [each for each in known if each.startswith("pkg:pypi/cryptography@")]
    assert cffi in graph[cryptography]


def test_a_release_is_committed_and_tagged_with_the_same_bytes(repository: Path, tried: Path) -> None:
    before = git(repository, "rev-parse", "HEAD")
    done = make(repository, f"VERSION={VERSION}", "ARGS=--date 2026-01-31")
    assert done.returncode == 0, done.stderr
    assert git(repository, "log", "-1", "--format=%s%n%P") == f"chore: release {VERSION}\n{before}"
    assert git(repository, "rev-parse", f"v{VERSION}^{{commit}}") == git(repository, "rev-parse", "HEAD")
    tag = git(repository, "cat-file", "tag", f"v{VERSION}")
    assert tag.endswith(f"Diptych {VERSION}\n\n### Added\n\n- Something new.")
    assert git(repository, "diff", "--stat", "HEAD~1").count("|") == 2
    assert git(repository, "status", "--porcelain") == "" and git(repository, "worktree", "list").count("\n") == 0
    for name in FILES:
        assert (repository / "dist" / VERSION / name).read_bytes() == (tried / name).read_bytes()
    assert refused(make(repository, "VERSION=97.8.7")) == "CHANGELOG.md has nothing under '## Unreleased'."
    assert refused(make(repository, f"VERSION={VERSION}")) == f"{VERSION} is not newer than v{VERSION}."


def test_an_sdist_builds_the_same_wheel(tried: Path, tmp_path: Path) -> None:
    with tarfile.open(tried / FILES[3]) as sdist:
        if hasattr(tarfile, "data_filter"):  # Python 3.11.4
            sdist.extraction_filter = tarfile.data_filter
        sdist.extractall(tmp_path)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")]
    subprocess.run(command, cwd=tmp_path / f"diptych-{VERSION}", check=True, capture_output=True)
    assert (tmp_path / "dist" / FILES[1]).read_bytes() == (tried / FILES[1]).read_bytes()
