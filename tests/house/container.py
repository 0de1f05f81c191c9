"""A container without an engine: a root directory, namespaces of its own, a numbered user, mounts.

`unshare` makes the namespaces and `chroot` the root, both as root. They and every mount end with the
first process, so nothing is left on the machine. Unlike an engine it sets no seccomp filter and no limits.
"""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

PROGRAMS = ("unshare", "nsenter", "chroot", "setpriv", "mount", "ip")
"""What has to be installed to start one."""
NAMESPACES = ["unshare", "--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child"]
PATIENCE_S = 60
DEVICES = "null zero full random urandom tty"
# $1 is the root, $2 how it is mounted, $3 a script with further mounts; what follows is run in it.
# /proc, /sys, /dev and /dev/shm are as an engine gives them.
MOUNTS = f"""
set -eu
root=$1; how=$2; further=$3; shift 3
mount --bind "$root" "$root"
mount -t proc -o nosuid,nodev,noexec proc "$root/proc"
mount -t sysfs -o ro,nosuid,nodev,noexec sysfs "$root/sys"
mount -t tmpfs -o nosuid,mode=755 tmpfs "$root/dev"
mkdir "$root/dev/shm"
mount -t tmpfs -o nosuid,nodev,noexec,mode=1777,size=64m shm "$root/dev/shm"
for device in {DEVICES}; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
ln -s /proc/self/fd "$root/dev/fd"
ln -s /proc/self/fd/0 "$root/dev/stdin"
ln -s /proc/self/fd/1 "$root/dev/stdout"
ln -s /proc/self/fd/2 "$root/dev/stderr"
eval "$further"
mount -o "remount,bind,$how" "$root"
exec "$@"
"""
# A loopback of its own and nothing else: nobody outside is reached, and no port of the machine is taken.
STARTED = """
ip link set lo up
mount -t tmpfs -o nosuid,nodev,exec,mode=1777 tmpfs "$root/tmp"
mount --bind {volume} "$root"/data
"""


@dataclass(frozen=True)
class Process:
    """How something is started in a root directory: its variables, folder and numbered user."""

    environment: Mapping[str, str]
    folder: str = "/"
    user: str = "0:0"

    def command(self, words: Sequence[str]) -> list[str]:
        """`words` with nothing of the caller's environment."""
        variables = [f"{name}={value}" for name, value in self.environment.items()]
        return ["env", "-i", f"--chdir={self.folder}", *variables, *words]

    def in_root(self, root: Path, words: Sequence[str]) -> list[str]:
        """`words` with `root` as the root directory, as the user and in none of its other groups."""
        return ["chroot", f"--userspec={self.user}", "--groups=", str(root), *self.command(words)]


def build_step(root: Path, process: Process, words: Sequence[str], further: str) -> None:
    """Run `words` in a writable `root` with the network of the machine; `further` mounts what it reads.

    Raises CalledProcessError with everything printed.
    """
    mounts = ["sh", "-c", MOUNTS, "mounts", str(root), "rw", further]
    subprocess.run(
        [*NAMESPACES, *mounts, *process.in_root(root, words)],
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@dataclass
class Container:
    """A read-only root with a tmpfs on /tmp and a volume on /data, until its first process ends.

    As `docker run --read-only --tmpfs /tmp:exec --cap-drop ALL --security-opt no-new-privileges` has it.
    """

    root: Path
    volume: Path
    process: Process
    words: Sequence[str]
    log: Path
    outer: subprocess.Popen[bytes] = field(init=False)

    def __enter__(self) -> Container:
        mounts = ["sh", "-c", MOUNTS, "mounts", str(self.root), "ro", STARTED.format(volume=self.volume)]
        inner = ["setpriv", "--no-new-privs", *self.process.in_root(self.root, self.words)]
        with self.log.open("wb") as log:
            self.outer = subprocess.Popen(
                [*NAMESPACES, "--net", *mounts, *inner],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        deadline = time.monotonic() + PATIENCE_S
        while self.outer.poll() is None and not self._is_inside():
            if time.monotonic() > deadline:
                self.__exit__()
                raise TimeoutError(self.printed())
            time.sleep(0.02)
        return self

    def __exit__(self, *_: object) -> None:
        if self.outer.poll() is None:
            for process in psutil.Process(self.outer.pid).children():
                process.kill()
            self.outer.wait(PATIENCE_S)

    def _is_inside(self) -> bool:
        """Whether the mounts are made and the root is changed: what comes next may enter."""
        children = psutil.Process(self.outer.pid).children()
        return bool(children) and children[0].cmdline()[:1] == [self.words[0]]

    def printed(self) -> str:
        """What the container has printed up to now."""
        return self.log.read_text(encoding="utf-8")

    def first(self) -> psutil.Process:
        """The process that is number 1 inside, seen from outside."""
        return psutil.Process(self.outer.pid).children()[0]

    def processes(self) -> list[psutil.Process]:
        """The first process and all below it, which is everything but what `run` brings in."""
        first = self.first()
        return [first, *first.children(recursive=True)]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run something more in it, as `docker exec` does."""
        user, group = self.process.user.split(":")
        enter = ["nsenter", f"--target={self.first().pid}", "--mount", "--pid", "--net", "--ipc", "--uts"]
        enter += ["--root", "--wd", f"--setgid={group}", f"--setuid={user}"]
        return subprocess.run(
            ["setpriv", "--no-new-privs", *enter, *self.process.command(words)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=600,
        )

    def stop(self) -> tuple[int, float]:
        """Send SIGTERM to the first process, as `docker stop` does; its exit code and the seconds it took."""
        began = time.monotonic()
        self.first().send_signal(signal.SIGTERM)
        return self.outer.wait(PATIENCE_S), time.monotonic() - began
