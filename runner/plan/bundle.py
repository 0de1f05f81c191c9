"""Source of several modules as one file: what a function needs, in the order in which it must be defined.

Works on syntax trees, so nothing is imported or run, and what is carried keeps its comments.
"""

from __future__ import annotations

import ast
import pprint
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compilewatch.db.errors import CompilewatchError
from compilewatch.runner.catalog.targets import source_file, split_target

Locate = Callable[[str], Path | None]
_Import = ast.Import | ast.ImportFrom


class BundleError(CompilewatchError):
    """The source cannot be put into one file."""


@dataclass
class _Module:
    """One carried module: what its top level defines, and what it takes from elsewhere."""

    name: str
    source: str
    definitions: dict[str, ast.stmt] = field(default_factory=dict)
    others: list[ast.stmt] = field(default_factory=list)
    """Statements that define nothing and are run for what they do."""
    carried: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Name -> (module, name there)."""
    imports: dict[str, str] = field(default_factory=dict)
    """Name -> the statement that imports it from an installed package."""


class Bundle:
    """Collects definitions. `locate` gives the file of a module to carry, None for an installed one."""

    def __init__(self, locate: Locate) -> None:
        self._locate = locate
        self._modules: dict[str, _Module] = {}
        self._imports: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        self._visited: set[tuple[str, str]] = set()
        self._in_order: list[str] = []

    def add(self, module: str, name: str) -> None:
        """Carry `module.name` and all it refers to. Raises BundleError where that is not possible."""
        self._need(self._read(module), name)

    def add_whole(self, module: str) -> None:
        """Carry everything of `module`, the statements that define nothing included."""
        read = self._read(module)
        for name in (*read.definitions, *read.imports):
            self._need(read, name)
        for statement in read.others:
            self._follow(read, statement)
            self._in_order.append(_text(read.source, statement))

    def imports(self) -> str:
        """The import statements of installed packages, one per line."""
        plain = sorted({text for text in self._imports.values() if text.startswith("import")})
        return "\n".join([*plain, *sorted(set(self._imports.values()) - set(plain))])

    def body(self) -> str:
        """Every carried definition, what is referred to before what refers to it."""
        return "\n\n\n".join(self._in_order)

    def _read(self, name: str) -> _Module:
        if name not in self._modules:
            path = self._locate(name)
            assert path is not None
            source = path.read_text(encoding="utf-8")
            module = _Module(name, source)
            for statement in ast.parse(source).body:
                self._sort_in(module, statement)
            self._modules[name] = module
        return self._modules[name]

    def _sort_in(self, module: _Module, statement: ast.stmt) -> None:
        match statement:
            case ast.ImportFrom(module="__future__"):
                return
            case ast.Import() | ast.ImportFrom():
                self._note_import(module, statement)
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                for inner in statement.body:
                    self._sort_in(module, inner)
            case ast.Expr(value=ast.Constant(value=str())):
                return
            case _:
                names = list(_bound(statement))
                module.definitions |= dict.fromkeys(names, statement)
                if not names:
                    module.others.append(statement)

    def _note_import(self, module: _Module, statement: _Import) -> None:
        source = statement.module if isinstance(statement, ast.ImportFrom) else None
        for alias in statement.names:
            bound = alias.asname or alias.name.partition(".")[0]
            whole = f"{source}.{alias.name}" if source else alias.name
            level = statement.level if isinstance(statement, ast.ImportFrom) else 0
            renamed = f" as {alias.asname}" if alias.asname else ""
            if level or self._locate(whole) is not None:
                raise BundleError(
                    f"{module.name} imports {whole} as a module, which one file cannot hold.",
                    "Import the names it needs: from module import name.",
                )
            if source and self._locate(source) is not None:
                if alias.name == "*" or alias.asname:
                    raise BundleError(
                        f"{module.name} imports from {source} under another name, or everything.",
                        "Import each name as it is called there.",
                    )
                module.carried[bound] = (source, alias.name)
            elif source:
                module.imports[bound] = f"from {source} import {alias.name}{renamed}"
            else:
                module.imports[bound] = f"import {alias.name}{renamed}"

    def _need(self, module: _Module, name: str) -> None:
        if (module.name, name) in self._visited:
            return
        self._visited.add((module.name, name))
        if name in module.carried:
            other, there = module.carried[name]
            self._need(self._read(other), there)
        elif name in module.imports:
            self._claim(self._imports, name, module.imports[name], module)
        elif name in module.definitions:
            statement = module.definitions[name]
            self._follow(module, statement)
            text = _text(module.source, statement)
            if self._texts.get(name) != text:
                self._claim(self._texts, name, text, module)
                if text not in self._in_order:
                    self._in_order.append(text)

    def _follow(self, module: _Module, statement: ast.stmt) -> None:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name):
                self._need(module, node.id)
            elif isinstance(node, ast.ImportFrom) and node.module and self._locate(node.module):
                raise BundleError(
                    f"{module.name} imports {node.module} inside a function, which one file cannot hold.",
                    "Import it at the top of the module.",
                )

    def _claim(self, names: dict[str, str], name: str, text: str, module: _Module) -> None:
        other = self._imports if names is self._texts else self._texts
        if name in other or names.get(name, text) != text:
            raise BundleError(
                f"{module.name} defines {name!r}, which another part of the script defines as well.",
                "Rename it there.",
            )
        names[name] = text


def _bound(statement: ast.stmt) -> Iterator[str]:
    """Names that a top-level statement defines."""
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign() | ast.If() | ast.Try() | ast.With() | ast.For():
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    yield node.id


def literal(value: dict[str, Any]) -> str:
    """As a script has it in its source."""
    return pprint.pformat(value, width=100, sort_dicts=False)


def _text(source: str, statement: ast.stmt) -> str:
    """The lines of a statement with its decorators and the comment above it."""
    lines = source.splitlines()
    first = min([statement.lineno, *(node.lineno for node in getattr(statement, "decorator_list", ()))]) - 1
    while first and lines[first - 1].startswith("#"):
        first -= 1
    return "\n".join(lines[first : statement.end_lineno])


_RUNNER = Path(__file__).parents[1]
_OWN = "compilewatch.runner."


def bundle_of(
    target: str, path: tuple[str, ...], *, without: tuple[str, ...] = (), whole: bool = True
) -> Bundle:
    """The function named "module:function" with all it needs; modules are looked for in `path` first.

    Of a module that is not ours all is carried, for what it does when it is imported; only what is needed
    where it is not to be `whole`. Modules of `without` stay imports. Raises BundleError.
    """
    bundle = Bundle(_carried(path, without))
    module, function = split_target(target)
    if module.startswith(_OWN) or not whole:
        bundle.add(module, function)
    else:
        bundle.add_whole(module)
    return bundle


def _carried(path: tuple[str, ...], without: tuple[str, ...]) -> Locate:
    """Which modules a script carries: ours, and those beside the configuration. Others must be installed."""

    def locate(module: str) -> Path | None:
        if module in without:
            return None
        if module.startswith(_OWN):
            file = _RUNNER.joinpath(*module.removeprefix(_OWN).split(".")).with_suffix(".py")
            return file if file.is_file() else None
        return source_file(module, path)

    return locate
