"""A measured process without torch that can go wrong in every way that a real one can.

The rig starts it in the place of the interpreter of a build: it gets the real specification on standard
input, has the real record pipe, and runs under the real guard. `kwargs.fault` of its workload says how it
goes wrong. Standard library only, so that a thousand of them start in a minute.
"""

import ctypes
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path

# Asked with -c what it is, as an interpreter with torch is before a run: then it has no pipe.
IS_ASKED = "-c" in sys.argv
PIPE = -1 if IS_ASKED else int(sys.argv[-1])
SLEEP_S = 60.0


def tell(content):
    send(json.dumps(content).encode() + b"\n")


def send(data):
    view = memoryview(data)
    while view:
        view = view[os.write(PIPE, view[:65536]) :]


def phase(name):
    tell({"mark": "phase", "phase": name, "at_ns": time.monotonic_ns()})


def record(**changes):
    now = time.monotonic_ns()
    content = {
        "status": "ok",
        "entered_ns": now,
        "first_result_ns": now + 1,
        "cold_start": {},
        "warmup_ns": [3_000_000, 1_000_000],
        "samples_ns": [1_000_000 + n for n in range(20)],
    }
    tell({"mark": "record", **content, **changes})


def hang_in_c():
    """No Python code runs any more, and TERM is not delivered."""
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, signal.NSIG))
    ctypes.CDLL(None).sleep(int(SLEEP_S))


def hang_in_python():
    signal.signal(signal.SIGTERM, lambda *_: None)
    while True:
        time.sleep(1)


def stop():
    os.kill(os.getpid(), signal.SIGSTOP)


def die_by(number):
    os.kill(os.getpid(), number)


def fork_and_finish():
    for _ in range(3):
        if os.fork() == 0:
            time.sleep(SLEEP_S)
            os._exit(0)
    record()


def detach_and_finish():
    """A daemon as they are made: another session, another parent, no open files."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(0, 64)
            time.sleep(SLEEP_S)
        os._exit(0)
    record()


def flood():
    chunk = b"x" * 65_535 + b"\n"
    for _ in range(100_000_000 // len(chunk)):
        os.write(1, chunk)
    record()


def huge_record():
    send(b'{"mark": "record", "status": "ok", "samples_ns": [')
    for _ in range(40):
        send(b"1000000, " * 100_000)
    send(b"1]}}\n")


def half_record():
    send(b'{"mark": "record", "status": "ok", "samples_ns": [1000000, 10000')


def two_records():
    record()
    record()


def foreign_ids():
    record(trial_id="SOMEBODY-ELSE", run_id="ANOTHER-RUN", schema="compilewatch.trial/99")


def garbage():
    send(os.urandom(200) + b"\n")
    record()


def deep_record():
    send(b'{"mark": "record", "memory": ' + b"[" * 50_000 + b"]" * 50_000 + b"}\n")


def bad_samples():
    tell({"mark": "record", "status": "ok", "samples_ns": [1_000_000, -5, None, "x"]})


def infinite_samples():
    send(b'{"mark": "record", "status": "ok", "samples_ns": [Infinity, NaN]}\n')


def unknown_failure():
    record(status="failed", failure={"kind": "no_such_kind", "phase": "x", "message": "m\nINFO forged"})


def told_failure():
    record(
        status="failed",
        samples_ns=[],
        failure={"kind": "compile_error", "phase": "first_call", "message": "a compile worker died"},
    )


def out_of_memory():
    resource.setrlimit(resource.RLIMIT_AS, (1 << 28, 1 << 28))
    phase("build_model")
    _ = bytearray(1 << 29)


def out_of_memory_by_cgroup():
    """Joins the group that it is told of, then writes to every page, so that the kernel has to find some."""
    Path(os.environ["COMPILEWATCH_FAULT_GROUP"]).write_text(str(os.getpid()))
    phase("build_model")
    take_all_memory()


def take_all_memory():
    held = []
    while True:
        held.append(b"m" * 4_000_000)


def out_of_processor_time():
    resource.setrlimit(resource.RLIMIT_CPU, (1, 1))
    while True:
        pass


def lost_compile_worker():
    """What Inductor's pool meets when one of its processes is killed: its pipe ends."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        time.sleep(SLEEP_S)
        os._exit(0)
    os.close(write_end)
    os.kill(child, signal.SIGKILL)
    assert os.read(read_end, 1) == b""
    told_failure()


def full_cache():
    """Writes kernels into its cache until the disk refuses."""
    where = Path(os.environ["TORCHINDUCTOR_CACHE_DIR"])
    where.mkdir(parents=True, exist_ok=True)
    with (where / "kernel").open("wb") as file:
        for _ in range(64):
            file.write(b"k" * 1_000_000)
            file.flush()
    record()


FAULTS = {
    "none": record,
    "hangs in C": hang_in_c,
    "hangs in Python, ignores TERM": hang_in_python,
    "is stopped": stop,
    "segmentation fault": lambda: die_by(signal.SIGSEGV),
    "abort": lambda: die_by(signal.SIGABRT),
    "kill -9": lambda: die_by(signal.SIGKILL),
    "TERM": lambda: die_by(signal.SIGTERM),
    "exits 0 without a record": lambda: None,
    "exits 3": lambda: sys.exit(3),
    "forks and leaves children": fork_and_finish,
    "detaches a daemon": detach_and_finish,
    "100 MB on stdout": flood,
    "a record of 36 MB": huge_record,
    "half a record": half_record,
    "two records": two_records,
    "a record with other ids": foreign_ids,
    "bytes that are no record": garbage,
    "a record 50,000 deep": deep_record,
    "samples that are none": bad_samples,
    "infinite samples": infinite_samples,
    "a failure of no known kind": unknown_failure,
    "out of memory by rlimit": out_of_memory,
    "out of memory by cgroup": out_of_memory_by_cgroup,
    "takes all memory": take_all_memory,
    "out of processor time by rlimit": out_of_processor_time,
    "a compile worker killed": lost_compile_worker,
    "slow": lambda: (time.sleep(0.15), record()),
    "a second": lambda: (time.sleep(1.0), record()),
    "ten seconds": lambda: (time.sleep(10.0), record()),
    "full cache": full_cache,
}


def answer():
    """What is asked of every interpreter before it measures."""
    facts = {"python": BUILD["python"], "executable": sys.executable, "torch": BUILD["torch"], "error": None}
    facts |= {"cuda": None, "hip": None, "cuda_available": False, "device_count": 0}
    sys.stdout.write(json.dumps(facts) + "\n")


def main():
    if IS_ASKED:
        answer()
        return
    specification = json.loads(sys.stdin.readline())
    tell({"mark": "facts", "machine": MACHINE, "build": BUILD})
    phase("build_model")
    FAULTS[specification["workload"]["kwargs"]["fault"]]()


MACHINE = {"name": "fault-box", "device": "cpu", "device_name": "CPU", "threads": 1}
BUILD = {"torch": "2.13.0", "python": "3.11.2", "settings": {}}

if __name__ == "__main__":
    main()
