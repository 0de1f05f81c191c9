"""What the checkout holds: its files as git sees them, and the imports of a Python file."""

import ast
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("db", "runner", "dashboard")


def project_files() -> list[Path]:
    """Return every file that is tracked or would be with `git add`, relative to the checkout's root."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    paths = (Path(name) for name in listed.split("\0") if name)
    return sorted(path for path in paths if (ROOT / path).is_file())


def room_files(*rooms: str) -> list[Path]:
    """Return the Python files of these rooms (all three by default), relative to the checkout's root."""
    wanted = rooms or ROOMS
    return [path for path in project_files() if path.suffix == ".py" and path.parts[0] in wanted]


@dataclass(frozen=True)
class Import:
    """One imported module, by its full name: `from db.records import trial` is db.records.trial."""

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

    `from a import b` counts as a.b, since b may be a module; relative imports keep their dots.
    """
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from (Import(alias.name, node.lineno) for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                base = "." * level + (module or "")
                yield from (Import(f"{base}.{alias.name}", node.lineno) for alias in names)
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield Import(name, node.lineno)
            case _:
                pass


@cache
def imports_of(path: Path) -> tuple[Import, ...]:
    """Return the imports of a project file, which is read once."""
    return tuple(imports((ROOT / path).read_text(encoding="utf-8")))
