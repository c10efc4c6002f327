"""The Containerfile: its instructions are read, and executed in a root of their own, read-only and as another user.

There is no registry and no container engine here. What an engine does with the file is done by its own means: a folder
becomes the root of a process (`chroot`, in a mount namespace), with the Python of these tests in place of that of the
base image, and the dependencies that are installed for them in place of those that pip would download.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.running import PATIENCE, ROOT, Client, free_port, scratch

FILE = ROOT / "deploy" / "Containerfile"
KNOWN = frozenset(
    ("FROM", "COPY", "RUN", "WORKDIR", "USER", "VOLUME", "ENV", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "CMD")
)
MODEL = """
from diptych import Model, Resource, grant


class Task(Resource):
    title: str
    access = (grant("read", "create"),)


model = Model(Task)
"""
HOST = ("/usr", "/bin", "/lib", "/lib64", "/etc")
"""What the base image has, besides Python."""
PACKAGES = "/packages"
"""Where the dependencies are: not where they are outside, which may be below /tmp."""


class Instruction(NamedTuple):
    """A line of the file: what it does, and the rest of it."""

    name: str
    rest: str

    @property
    def words(self) -> list[str]:
        """Of the exec form: its words."""
        found: list[str] = json.loads(self.rest[self.rest.index("[") :])
        assert all(isinstance(word, str) for word in found)
        return found


def stages() -> list[list[Instruction]]:
    """The instructions of each stage."""
    text = re.sub(r"\\\n", " ", FILE.read_text())
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    found: list[list[Instruction]] = []
    for line in lines:
        name, _, rest = line.partition(" ")
        assert name in KNOWN and rest, line
        if name == "FROM":
            found.append([])
        found[-1].append(Instruction(name, rest.strip()))
    return found


def of(stage: list[Instruction], name: str) -> list[Instruction]:
    return [instruction for instruction in stage if instruction.name == name]


def environment_of(stage: list[Instruction]) -> dict[str, str]:
    return {
        name: value for one in of(stage, "ENV") for name, value in (pair.split("=", 1) for pair in one.rest.split())
    }


def test_the_instructions_fit_together() -> None:
    build, final = stages()
    ((base, name),) = re.findall(r"\A(\S+:[\d.]+\S*) AS (\w+)\Z", build[0].rest)
    assert final[0].rest == base, "one base image, with a version"
    copied = [one.rest.split() for one in of(final, "COPY")]
    assert [f"--from={name}", "/opt/diptych", "/opt/diptych"] in copied
    names = [one.name for one in final]
    assert "RUN" not in names[names.index("USER") :], "what it makes as another user, that user could change"
    assert [one.words[0] for one in (*of(final, "CMD"), *of(final, "HEALTHCHECK"))] == ["diptych", "python"]
    ports = {
        value.rpartition(":")[2] for key, value in environment_of(final).items() if key.endswith(("PORT", "ADDRESS"))
    }
    assert set(of(final, "EXPOSE")[0].rest.split()) == ports
    check = of(final, "HEALTHCHECK")[0].words[-1]
    assert f":{environment_of(final)['DIPTYCH_PORT']}/health/" in check
    (volume,) = of(final, "VOLUME")
    assert environment_of(final)["DIPTYCH_DATABASE"].startswith(f"sqlite:///{volume.rest}/")


def is_able() -> bool:
    """May a process here have a root and mounts of its own?"""
    tools = all(map(shutil.which, ("unshare", "nsenter", "chroot", "mount")))
    if sys.platform != "linux" or os.geteuid() or not tools:
        return False
    tried = ["unshare", "--mount", "--propagation", "private", "mount", "--bind", "/tmp", "/tmp"]
    return subprocess.run(tried, capture_output=True, check=False).returncode == 0


class Container:
    """A root for processes, made as the file says."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.installed = Path(sysconfig.get_path("purelib"))
        self.base = Path(sys.base_prefix)
        for folder in (*HOST, str(self.base), PACKAGES, "/dev", "/proc", "/tmp", "/wheels"):
            (root / folder.strip("/")).mkdir(parents=True, exist_ok=True)
        names = root / "names"  # Debian's has only the name python3
        names.mkdir()
        (names / "python").symlink_to(self.base / "bin" / f"python3.{sys.version_info.minor}")

    def _mounts(self, *more: str) -> str:
        lines = [f"mount --bind {self.root} {self.root}"]
        same = {folder: folder for folder in (*HOST, str(self.base))}
        for folder, place in {**same, str(self.installed): PACKAGES}.items():
            if Path(folder).is_dir():
                target = f"{self.root}{place}"
                lines += [f"mount --bind {folder} {target}", f"mount -o remount,bind,ro {target}"]
        lines += [f"mount --rbind {folder} {self.root}{folder}" for folder in ("/dev", "/proc")]
        return " && ".join((*lines, *more))

    def _command(self, mounts: str, user: str, folder: str, environment: dict[str, str], *words: str) -> list[str]:
        given = [f"{name}={value}" for name, value in environment.items()]
        inside = ["chroot", f"--userspec={user}", str(self.root), "/usr/bin/env", "-i", "-C", folder, *given, *words]
        script = f'{mounts} && exec "$@"'
        return ["unshare", "--mount", "--propagation", "private", "bash", "-c", script, "bash", *inside]

    def run(self, line: str) -> None:
        """A RUN, with a Python that downloads nothing."""
        environment = {
            "PATH": f"{self.base}/bin:/usr/bin:/bin:/names",
            "PIP_NO_DEPS": "1",
            "PIP_NO_INDEX": "1",
            "HOME": "/tmp",
        }
        command = self._command(self._mounts(), "0:0", "/", environment, "/bin/sh", "-c", line)
        done = subprocess.run(command, capture_output=True, text=True, timeout=4 * PATIENCE, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self, final: list[Instruction], environment: dict[str, str]) -> subprocess.Popen[str]:
        """The CMD, on a file system that is read-only but for the volume and /tmp."""
        (user,), (volume,), (folder,) = of(final, "USER"), of(final, "VOLUME"), of(final, "WORKDIR")
        data = f"{self.root}{volume.rest}"
        mounts = self._mounts(
            f"mount --bind {data} {data}",
            f"mount -t tmpfs tmpfs {self.root}/tmp",
            f"mount -o remount,bind,ro {self.root}",
        )
        command = self._command(mounts, user.rest, folder.rest, environment, *of(final, "CMD")[0].words)
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.fixture
def container(tmp_path: Path) -> Iterator[Container]:
    if not is_able():
        pytest.skip("no process here may have a root of its own")
    root = Path(scratch("root-"))
    root.chmod(0o755)
    yield Container(root)
    shutil.rmtree(root, ignore_errors=True)


@pytest.mark.timeout(600)
def test_its_steps_run_and_it_serves_as_another_user_on_a_read_only_file_system(container: Container) -> None:
    build, final = stages()
    wheels = str(container.root / "wheels")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", wheels], cwd=ROOT, check=True)
    for one in of(build, "RUN"):
        container.run(one.rest)
    (library,) = (container.root / "opt" / "diptych" / "lib").glob("python*/site-packages")
    assert not list(library.glob("pip*")), "what only the build needs is gone"
    (library / "dependencies.pth").write_text(f"{PACKAGES}\n")  # pip would have downloaded them
    (container.root / "app").mkdir()
    (container.root / "app" / "tasks.py").write_text(MODEL)
    for one in of(final, "RUN"):
        container.run(one.rest)
    port = free_port()
    environment = environment_of(final)
    check = of(final, "HEALTHCHECK")[0].words
    check[-1] = check[-1].replace(f":{environment['DIPTYCH_PORT']}/", f":{port}/")
    environment |= {"PATH": environment["PATH"].replace("$PATH", "/usr/bin:/bin"), "DIPTYCH_PORT": str(port)}
    environment |= {"DIPTYCH_HOST": "127.0.0.1", "DIPTYCH_METRICS_ADDRESS": "127.0.0.1:0"}
    process = container.start(final, environment)
    try:
        serves(process, port, check, environment["PATH"])
    finally:
        process.kill()
        process.communicate()


def serves(process: subprocess.Popen[str], port: int, check: list[str], path: str) -> None:
    client, end = Client(f"http://127.0.0.1:{port}"), time.monotonic() + PATIENCE
    while not answers(client):
        assert process.poll() is None and time.monotonic() < end, process.stdout and process.stdout.read()
        time.sleep(0.1)
    assert client.post("/tasks", {"title": "one"}).status == 201
    assert [row["title"] for row in client.get("/tasks").json()["data"]] == ["one"]
    status = Path(f"/proc/{process.pid}/status").read_text()
    assert re.search(r"^Uid:\t10001\t10001\t10001\t10001$", status, re.MULTILINE), status
    inside = [
        "nsenter",
        "-t",
        str(process.pid),
        "-m",
        "-r",
        "-S",
        "10001",
        "-G",
        "10001",
        "/usr/bin/env",
        f"PATH={path}",
    ]
    assert subprocess.run([*inside, *check], check=False).returncode == 0, "the health check"
    for place in ("/app/x", "/opt/diptych/x", "/x"):
        done = subprocess.run([*inside, "touch", place], capture_output=True, text=True, check=False)
        assert "Read-only file system" in done.stderr, (place, done)
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) in (0, -signal.SIGTERM)


def answers(client: Client) -> bool:
    try:
        return client.get("/health/ready").status == 200
    except OSError:
        return False
