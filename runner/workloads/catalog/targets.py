"""Finding the file and function behind "module:function" without running any of it.

Importing a user's module would import torch into the parent process, which plans and supervises and must
stay small; so modules are located by path and their functions read from the syntax tree.
"""

from __future__ import annotations

import ast
import difflib
import re
import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import Path

from db.errors import ConfigError

# An editable installation is found through an import hook, not through sys.path.
_OWN_ROOT = Path(__file__).resolve().parents[3]
_TARGET = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


def is_target(text: str) -> bool:
    """Whether `text` reads as "module:function"."""
    return _TARGET.fullmatch(text) is not None


def split_target(target: str) -> tuple[str, str]:
    """ "package.module:function" -> its two names. Raises ConfigError when it is not of that form."""
    if not is_target(target):
        raise ConfigError(
            f"{target!r} does not name a function as module:function.",
            'Write for example "my_models:build" for the function `build` in my_models.py.',
        )
    module, function = target.split(":")
    return module, function


def locate_module(module: str, path: tuple[str, ...] = ()) -> Path:
    """The source file of `module`, looked for in `path` first and then in this interpreter's `sys.path`.

    Raises ConfigError when there is none, or it is not Python source.
    """
    file = source_file(module, [*path, str(_OWN_ROOT), *sys.path])
    if file is not None:
        return file
    searched = ", ".join(path) or "the installed packages"
    raise ConfigError(
        f"There is no Python file for module {module} in {searched}.",
        "Check the spelling; paths are relative to the configuration file.",
    )


def source_file(module: str, search: Sequence[str]) -> Path | None:
    """The Python source of `module` in one of the directories `search`, if there is one."""
    places, spec = list(search), None
    for depth in range(1, module.count(".") + 2):
        spec = PathFinder.find_spec(".".join(module.split(".")[:depth]), places) if places else None
        places = list(spec.submodule_search_locations or []) if spec else []
    return Path(spec.origin) if spec and spec.origin and spec.origin.endswith(".py") else None


def check_target(target: str, path: tuple[str, ...] = ()) -> Path:
    """The file behind `target`, once it is sure to define the function.

    Raises ConfigError naming the nearest function when it does not, or the line of a syntax error.
    """
    module, function = split_target(target)
    file = locate_module(module, path)
    names = _defined_names(file)
    if names is None or function in names:
        return file
    near = difflib.get_close_matches(function, sorted(names), n=1)
    hint = f"Did you mean {module}:{near[0]}?" if near else f"Define a function {function} in {file.name}."
    raise ConfigError(f"{file} has no function {function}.", hint)


def _defined_names(file: Path) -> set[str] | None:
    """Names bound at the top level of `file`; None where only running it would tell."""
    try:
        tree = ast.parse(file.read_bytes())
    except SyntaxError as error:
        raise ConfigError(
            f"{file} is not valid Python: line {error.lineno}: {error.msg}.", "Correct that line."
        ) from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file} cannot be read: {error}.", "Make the file readable.") from error
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(node.name)
            case ast.Name(ctx=ast.Store()):
                names.add(node.id)
            case ast.Import() | ast.ImportFrom():
                if any(alias.name == "*" for alias in node.names):
                    return None
                names.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
    return None if "__getattr__" in names else names
