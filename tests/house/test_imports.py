"""The rooms import one way, runner -> db <- dashboard, and heavy libraries stay where they belong."""

import ast
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from tests.house.tracked import ROOT, Import, imports_of, room_files

# Who may import a library, by path prefix; every other file of the three rooms may not.
KEPT_IN = {
    "torch": ("runner/worker/", "runner/workloads/"),
    "sqlalchemy": ("db/engine/", "db/queries/", "db/store/", "db/service/"),
    "sqlmodel": ("db/engine/", "db/queries/", "db/store/", "db/service/"),
    "streamlit": (
        "dashboard/login/access.py",
        "dashboard/server/",
        "dashboard/read/versions.py",
        "dashboard/render/",
        "dashboard/pages/",
        "dashboard/reports/share.py",
    ),
}
NOT_FROM = {
    "db": ("runner", "dashboard"),
    "runner": ("dashboard",),
    "dashboard": ("runner",),
}
# The worker runs under any interpreter that has a torch in it: of ours, nothing else may come along.
CARRIED_BY_WORKER = ("runner.worker", "runner.workloads")
# Triton comes with torch for a GPU, onnxruntime with an extra; their users ask whether they are there.
OF_TORCH = ("torch", "triton", "onnxruntime")
MODEL_LIBRARIES = (*OF_TORCH, "transformers", "diffusers", "torchao")

PURE = ("db/cause/", "db/columns/", "db/metrics/", "db/judge/", "db/units.py")
IO_MODULES = (
    "asyncio",
    "db.engine",
    "db.queries",
    "db.store",
    "http",
    "io",
    "logging",
    "multiprocessing",
    "os",
    "pathlib",
    "pickle",
    "requests",
    "shutil",
    "socket",
    "sqlite3",
    "subprocess",
    "tempfile",
    "threading",
    "time",
    "urllib",
)
IO_CALLS = frozenset({"open", "print", "input", "exec", "eval", "now", "utcnow", "today"})
IO_METHODS = ("read_", "to_csv", "to_parquet", "to_pickle", "to_sql", "write_")


def strangers(path: Path, found: Iterable[Import], allowed: Iterable[str]) -> list[str]:
    """Return the imports that are neither the standard library nor inside an `allowed` package."""
    return [
        f"{path}:{found_import.line} imports {found_import.module}"
        for found_import in found
        if found_import.top not in sys.stdlib_module_names
        and not any(found_import.inside(package) for package in allowed)
    ]


def io_calls(source: str) -> list[str]:
    """Return the calls in `source` that read or write something, or read the clock, with their lines."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in IO_CALLS:
                found.append(f"{node.lineno}: {name}")
            case ast.Call(func=ast.Attribute(attr=name)) if name in IO_CALLS or name.startswith(IO_METHODS):
                found.append(f"{node.lineno}: {name}")
            case _:
                pass
    return found


@cache
def loaded_by(statement: str) -> set[str]:
    """Return the names of all modules in a fresh interpreter after `statement`."""
    program = f"import sys\n{statement}\nprint(*sys.modules)"
    command = [sys.executable, "-W", "ignore", "-c", program]
    return set(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split())


@pytest.mark.parametrize(("room", "forbidden"), NOT_FROM.items())
def test_rooms_import_one_way(room: str, forbidden: tuple[str, ...]) -> None:
    wrong = [
        f"{path}:{found.line} imports {found.module}"
        for path in room_files(room)
        for found in imports_of(path)
        if found.top in forbidden
    ]
    assert wrong == []


@pytest.mark.parametrize(("library", "homes"), KEPT_IN.items())
def test_library_stays_in_its_room(library: str, homes: tuple[str, ...]) -> None:
    wrong = [
        f"{path}:{found.line} imports {found.module}"
        for path in room_files()
        if not path.as_posix().startswith(homes)
        for found in imports_of(path)
        if found.inside(library)
    ]
    assert wrong == []


def carried_by_worker() -> list[Path]:
    """Return what a worker may load of ours: its files, every builder of models, and what they import."""
    known = {".".join(p.with_suffix("").parts).removesuffix(".__init__"): p for p in room_files("runner")}
    worker = [p for name, p in known.items() if Import(name, 0).inside("runner.worker")]
    builders = [
        p
        for name, p in known.items()
        if Import(name, 0).inside("runner.workloads") and any(i.top in MODEL_LIBRARIES for i in imports_of(p))
    ]
    waiting, carried = [*worker, *builders], set()
    while waiting:
        path = waiting.pop()
        carried.add(path)
        names = {found.module for found in imports_of(path)} | {".".join(path.parent.parts)}
        owners = names | {name.rpartition(".")[0] for name in names} | {"runner"}
        waiting += [known[name] for name in owners if name in known and known[name] not in carried]
    return sorted(carried)


def test_worker_runs_where_only_torch_is_installed() -> None:
    files = carried_by_worker()
    allowed = (*MODEL_LIBRARIES, *CARRIED_BY_WORKER)
    wrong = [line for path in files for line in strangers(path, imports_of(path), allowed)]
    assert {Path("runner/__init__.py"), Path("runner/worker/__init__.py")} <= set(files)
    assert wrong == []


def test_worker_itself_leaves_the_model_libraries_to_the_builders() -> None:
    files = [path for path in room_files("runner") if path.as_posix().startswith("runner/worker/")]
    wrong = [line for p in files for line in strangers(p, imports_of(p), (*OF_TORCH, *CARRIED_BY_WORKER))]
    assert wrong == []


def test_commands_start_without_torch_and_streamlit() -> None:
    modules = {"compilewatch.runner.cli", "compilewatch.runner.plan.plan"}
    loaded = loaded_by(f"import {', '.join(modules)}")
    assert modules <= loaded
    assert not loaded & {"torch", "streamlit"}


def test_what_judges_nothing_starts_without_the_functions_of_scipy() -> None:
    """A fifth of a second, which `list` and `db check` would wait for as well."""
    loaded = loaded_by("import compilewatch.db.judge.decide, compilewatch.runner.cli.stored.listing")
    assert "scipy" in loaded
    assert "scipy.special" not in loaded


def test_arithmetic_imports_nothing_that_reads_or_writes() -> None:
    files = [p for p in room_files("db") if p.as_posix().startswith(PURE)]
    wrong = [
        f"{path}:{found.line} imports {found.module}"
        for path in files
        for found in imports_of(path)
        if any(found.inside(module) for module in IO_MODULES)
    ]
    assert files
    assert wrong == []


def test_arithmetic_reads_no_file_and_no_clock() -> None:
    files = [p for p in room_files("db") if p.as_posix().startswith(PURE)]
    wrong = [f"{p}:{call}" for p in files for call in io_calls((ROOT / p).read_text(encoding="utf-8"))]
    assert wrong == []
