"""A real Slurm on one host: a controller, two nodes of one CPU, and a partition that another one pre-empts.

Of Debian's packages, started as root. A job of the partition `low` is pre-empted by one of `high`: SIGTERM to
its processes, SIGKILL five seconds later, then it is requeued where its options let it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGES = "slurmctld slurmd slurm-client munge"
HOW_TO_INSTALL = f"as root: apt-get install --no-install-recommends {PACKAGES}"
KILL_WAIT_S = 5
NODES = ("n1", "n2")
_START_TIMEOUT_S = 60.0
_MUNGE_KEY = Path("/etc/munge/munge.key")

_CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
KillWait={kill_wait_s}
NodeName=n[1-2] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first}-{last}] CPUs=1 State=UNKNOWN
PartitionName=low Nodes=n[1-2] Default=YES MaxTime=INFINITE State=UP PriorityTier=1
PartitionName=high Nodes=n[1-2] MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
"""


class Unavailable(Exception):
    """No Slurm can be had; the message is what to type to change that."""


@dataclass(frozen=True)
class Cluster:
    """A Slurm that runs; `environment` has what its commands need."""

    folder: Path
    environment: dict[str, str]

    def ask(self, *command: str) -> str:
        """What a command of Slurm prints. Raises CalledProcessError."""
        done = subprocess.run(
            command, env=os.environ | self.environment, capture_output=True, text=True, check=True, timeout=60
        )
        return done.stdout.strip()

    def jobs(self, partition: str, state: str = "pending,configuring,running,completing") -> list[str]:
        """The numbers of jobs that are not over; `state` as squeue takes it, such as "running"."""
        return self.ask("squeue", "-h", "-p", partition, "-t", state, "-o", "%i").split()


@contextlib.contextmanager
def slurm_cluster(folder: Path) -> Iterator[Cluster]:
    """Two idle nodes, gone afterwards with all jobs. Raises Unavailable."""
    missing = [name for name in ("slurmctld", "slurmd", "sbatch", "munged") if _program(name) is None]
    if missing or os.geteuid() != 0:
        raise Unavailable(f"needs Slurm and root ({HOW_TO_INSTALL})")
    for name in ("state", *(f"spool-{node}" for node in NODES)):
        (folder / name).mkdir(parents=True)
    port = _free_ports(1 + len(NODES))
    configuration = folder / "slurm.conf"
    configuration.write_text(
        _CONFIGURATION.format(
            host=socket.gethostname().partition(".")[0],
            port=port,
            first=port + 1,
            last=port + len(NODES),
            folder=folder,
            kill_wait_s=KILL_WAIT_S,
        ),
        encoding="utf-8",
    )
    cluster = Cluster(folder, {"SLURM_CONF": str(configuration)})
    with _munge():
        try:
            _start(cluster, "slurmctld")
            _until(lambda: "UP" in cluster.ask("scontrol", "ping"), f"slurmctld: {folder}/slurmctld.log")
            for node in NODES:
                _start(cluster, "slurmd", "-N", node)
            _until(
                lambda: cluster.ask("sinfo", "-h", "-N", "-p", "low", "-o", "%T").split() == ["idle", "idle"],
                f"slurmd: {folder}/slurmd-n1.log",
            )
            yield cluster
        finally:
            _end(cluster)


def _program(name: str) -> str | None:
    return shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin")


def _start(cluster: Cluster, name: str, *arguments: str) -> None:
    program = _program(name)
    assert program is not None
    environment = os.environ | cluster.environment
    subprocess.run([program, *arguments], env=environment, check=True, capture_output=True, timeout=60)


def _end(cluster: Cluster) -> None:
    with contextlib.suppress(subprocess.SubprocessError, Unavailable):
        cluster.ask("scancel", "--signal=KILL", "--full", "--user=root")
        _until(lambda: not cluster.jobs("low,high"), "the end", timeout_s=20)
    for file in (*cluster.folder.glob("slurmd-*.pid"), cluster.folder / "slurmctld.pid"):
        with contextlib.suppress(OSError, ValueError):
            os.kill(int(file.read_text()), signal.SIGTERM)


@contextlib.contextmanager
def _munge() -> Iterator[None]:
    """The service by which Slurm's programs know each other: the one that runs, else one for the block."""
    if _munge_answers():
        yield
        return
    for directory in ("/etc/munge", "/run/munge", "/var/lib/munge", "/var/log/munge"):
        Path(directory).mkdir(parents=True, exist_ok=True)
        shutil.chown(directory, "munge", "munge")
    Path("/run/munge").chmod(0o755)
    if not _MUNGE_KEY.exists():
        _MUNGE_KEY.write_bytes(os.urandom(1024))
        _MUNGE_KEY.chmod(0o400)
        shutil.chown(_MUNGE_KEY, "munge", "munge")
    program = _program("munged")
    assert program is not None
    process = subprocess.Popen([program, "--foreground", "--force"], user="munge", stderr=subprocess.DEVNULL)
    try:
        _until(_munge_answers, "munged")
        yield
    finally:
        process.terminate()
        process.wait(20)


def _munge_answers() -> bool:
    credential = subprocess.run(["munge", "-n"], capture_output=True, check=False)
    decoded = subprocess.run(["unmunge"], input=credential.stdout, capture_output=True, check=False)
    return decoded.returncode == 0


def _free_ports(count: int) -> int:
    """The first of so many ports beside each other that nobody listens on."""
    for first in range(16_800, 17_800, 10):
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for number in range(count):
                probe = stack.enter_context(socket.socket())
                probe.bind(("127.0.0.1", first + number))
            return first
    raise Unavailable("needs free ports on this host")


def _until(condition: Callable[[], bool], what: str, timeout_s: float = _START_TIMEOUT_S) -> None:
    """Raises Unavailable with `what` where it does not become true."""
    deadline = time.monotonic() + timeout_s
    while True:
        with contextlib.suppress(subprocess.SubprocessError):
            if condition():
                return
        if time.monotonic() > deadline:
            raise Unavailable(f"did not start: {what}")
        time.sleep(0.2)
