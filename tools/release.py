"""Make a release: `make release VERSION=1.2.0`, or with `DRY_RUN=1` everything but the commit and the tag.

    check     the version is newer than the last tag, the tree is clean, CHANGELOG.md has something under Unreleased
    prepare   in a worktree of its own: the version in pyproject.toml, the section of CHANGELOG.md with version and date
    build     wheel and sdist, twice, in two folders: the bytes must be the same
    describe  a bill of materials (CycloneDX) from requirements/run.txt, and SHA256SUMS of all files
    publish   the commit becomes the head of the branch and gets the tag; pushing and uploading are left to you

Everything happens in the worktree until the last step, so a release that fails changes nothing here.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from packaging.version import InvalidVersion, Version

from tools.sbom import sbom

_HEADING = "## Unreleased"
_SECTION = re.compile(rf"^{_HEADING}\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


class Refused(Exception):
    """Why there is no release: one sentence."""


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout.strip()


# check


def check(root: Path, version: str) -> None:
    """Refuse a release that cannot be made from this tree."""
    try:
        wanted = Version(version)
    except InvalidVersion:
        raise Refused(f"{version!r} is no version; write VERSION=1.2.0.") from None
    if str(wanted) != version or len(wanted.release) != 3 or wanted.local or wanted.dev is not None:
        raise Refused(f"{version!r} is no version of a release; write VERSION=1.2.0, or 1.2.0rc1.")
    if git(root, "status", "--porcelain"):
        raise Refused("The tree is not clean; commit or remove what `git status` lists.")
    for tag in git(root, "tag", "--list", "v*").split():
        with_tag = _version(tag.removeprefix("v"))
        if with_tag is not None and with_tag >= wanted:
            raise Refused(f"{version} is not newer than {tag}.")
    if not has_news(section(root)):
        raise Refused(f"CHANGELOG.md has nothing under {_HEADING!r}.")


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


def section(root: Path) -> str:
    """What CHANGELOG.md has under Unreleased."""
    found = _SECTION.search((root / "CHANGELOG.md").read_text("utf-8"))
    return found[1].strip() if found else ""


def has_news(text: str) -> bool:
    """Is there more than headings?"""
    return any(line.strip() and not line.startswith("#") for line in text.splitlines())


# prepare


@contextmanager
def worktree(root: Path, folder: Path) -> Iterator[Path]:
    """The head of the branch in a folder of its own."""
    git(root, "worktree", "add", "--quiet", "--detach", str(folder), "HEAD")
    try:
        yield folder
    finally:
        git(root, "worktree", "remove", "--force", str(folder))


def prepare(tree: Path, version: str, date: str) -> str:
    """Write the version and the date, and commit; gives the commit."""
    _rewrite(tree / "pyproject.toml", r'(?m)^version = ".*"$', f'version = "{version}"')
    _rewrite(tree / "CHANGELOG.md", rf"(?m)^{_HEADING}$", f"{_HEADING}\n\n## {version} ({date})")
    git(tree, "commit", "--quiet", "--all", "--allow-empty", "--message", f"chore: release {version}")
    return git(tree, "rev-parse", "HEAD")


def _rewrite(file: Path, pattern: str, text: str) -> None:
    changed, count = re.subn(pattern, lambda _: text, file.read_text("utf-8"))
    if count != 1:
        raise Refused(f"{file.name} has {count} lines like {pattern}; one is expected.")
    file.write_text(changed, "utf-8")


# build


def build(tree: Path, folder: Path) -> dict[str, bytes]:
    """Wheel and sdist of a tree, by name. hatchling gives all files the same date and mode."""
    env = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    done = subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Refused(f"The build failed: {done.stderr.strip().splitlines()[-1]}")
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def build_twice(tree: Path, commit: str, scratch: Path) -> dict[str, bytes]:
    """The same from the worktree and from an archive of the commit."""
    archive = subprocess.run(["git", "archive", commit], cwd=tree, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        if hasattr(tarfile, "data_filter"):  # Python 3.11.4
            files.extraction_filter = tarfile.data_filter
        files.extractall(scratch / "again")
    first, second = build(tree, scratch / "first"), build(scratch / "again", scratch / "second")
    if differing := [name for name in first | second if first.get(name) != second.get(name)]:
        raise Refused(f"Two builds differ: {', '.join(differing)}.")
    return first


# describe


def describe(tree: Path, version: str, date: str, files: dict[str, bytes]) -> dict[str, bytes]:
    """All files of the release: what was built, its bill of materials, and the checksums."""
    project = tomllib.loads((tree / "pyproject.toml").read_text("utf-8"))["project"]
    lock = (tree / "requirements" / "run.txt").read_text("utf-8")
    materials = sbom(project["name"], version, project["license"], lock, date).encode()
    files = files | {f"{project['name']}-{version}.cdx.json": materials}
    sums = "".join(f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files))
    return files | {"SHA256SUMS": sums.encode()}


def warnings(tree: Path) -> Iterator[str]:
    """What does not keep a release from being made, and should."""
    urls = tomllib.loads((tree / "pyproject.toml").read_text("utf-8"))["project"]["urls"]
    if any(".example" in url for url in urls.values()):
        yield "pyproject.toml has addresses under .example, which lead nowhere."


# all of it


def release(root: Path, version: str, date: str, *, dry_run: bool) -> None:
    """Make a release of the project at `root`; its files are in dist/VERSION then."""
    check(root, version)
    dist = root / "dist" / version
    with tempfile.TemporaryDirectory() as folder, worktree(root, Path(folder, "tree")) as tree:
        text = section(tree)
        commit = prepare(tree, version, date)
        files = describe(tree, version, date, build_twice(tree, commit, Path(folder)))
        shutil.rmtree(dist, ignore_errors=True)
        dist.mkdir(parents=True)
        for name, data in files.items():
            (dist / name).write_bytes(data)
        for warning in warnings(tree):
            print(f"Warning: {warning}")
    print(files["SHA256SUMS"].decode(), end="")
    if dry_run:
        print(f"A dry run: the files are in dist/{version}, and there is no commit and no tag.")
        return
    git(root, "merge", "--quiet", "--ff-only", commit)
    git(root, "tag", "--annotate", f"v{version}", "--cleanup=verbatim", "--message", f"Diptych {version}\n\n{text}\n")
    print(f"Diptych {version} is in dist/{version}, committed and tagged as v{version}. Next: git push --follow-tags")


def main() -> None:
    parser = argparse.ArgumentParser(prog="make release", description="Make a release.")
    parser.add_argument("version", help="the version, such as 1.2.0")
    parser.add_argument("--dry-run", action="store_true", help="make the files, and neither a commit nor a tag")
    parser.add_argument("--date", default=datetime.datetime.now(datetime.UTC).date().isoformat(), help="default: today")
    chosen = parser.parse_args()
    try:
        release(Path.cwd(), chosen.version, chosen.date, dry_run=chosen.dry_run)
    except Refused as refused:
        sys.exit(str(refused))
    except subprocess.CalledProcessError as error:
        sys.exit(f"{' '.join(error.cmd[:3])} failed: {str(error.stderr).strip()}")


if __name__ == "__main__":
    main()
