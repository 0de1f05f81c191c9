"""What the checkout holds: its files as git sees them, and the imports of a Python file."""

import ast
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("db", "runner", "dashboard")
PACKAGE = "compilewatch"


def project_files() -> list[Path]:
    """Return every file that is tracked or would be with `git add`, relative to the checkout's root."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    paths = (Path(name) for name in listed.split("\0") if name)
    return sorted(path for path in paths if (ROOT / path).is_file())


def copy_files(paths: Iterable[Path], folder: Path) -> None:
    """Copy these files of the checkout, and the links that make a package of the rooms, into `folder`."""
    for path in (*paths, *(Path(PACKAGE, room) for room in ROOMS)):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, folder / path, follow_symlinks=False)


def packaged_files() -> set[Path]:
    """Where the wheel has the files of the checkout that are the product."""
    own = {path for path in project_files() if path.parts[0] == PACKAGE}
    return own | {PACKAGE / path for path in project_files() if path.parts[0] in ROOMS}


def room_files(*rooms: str) -> list[Path]:
    """Return the Python files of these rooms (all three by default), relative to the checkout's root."""
    wanted = rooms or ROOMS
    return [path for path in project_files() if path.suffix == ".py" and path.parts[0] in wanted]


@dataclass(frozen=True)
class Import:
    """One imported module, by its full name: `from compilewatch.db.records import trial` is
    db.records.trial, as the folders stand in the checkout.
    """

    module: str
    line: int

    @property
    def top(self) -> str:
        return self.module.partition(".")[0]

    def inside(self, package: str) -> bool:
        """Tell whether the import is `package` or something in it."""
        return self.module == package or self.module.startswith(f"{package}.")


def imports(source: str) -> Iterator[Import]:
    """Yield what `source` imports anywhere: at the top, in functions, for type checking, by import_module.

    XX
        are called after their folders, without the name of the package before them.
    """
    for name, line in _imported(source):
        own = name.removeprefix(f"{PACKAGE}.")
        yield Import(own if own.partition(".")[0] in ROOMS else name, line)


def _imported(source: str) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from ((alias.name, node.lineno) for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                base = "." * level + (module or "")
                yield from ((f"{base}.{alias.name}", node.lineno) for alias in names)
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield name, node.lineno
            case _:
                pass


@cache
def imports_of(path: Path) -> tuple[Import, ...]:
    """Return the imports of a project file, which is read once."""
    return tuple(imports((ROOT / path).read_text(encoding="utf-8")))
