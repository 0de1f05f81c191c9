"""Finding the file and function behind "module:function" without running any of it.

Importing a user's module would import torch into the parent process, which plans and supervises and must
stay small; so modules are located by path and their functions read from the syntax tree.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.machinery import PathFinder
from pathlib import Path

from compilewatch.db.errors import ConfigError, did_you_mean, nearest
from compilewatch.db.records.trial import Task

# An editable installation is found through an import hook, not through sys.path.
_OWN_ROOT = Path(__file__).absolute().parents[3]
# What a builder may declare beside sizes, and is given then.
_PLACEMENT = {"device", "dtype"}
_PAIR = 2
_TARGET = re.compile(r"\w+(?:\.\w+)*:[A-Za-z_]\w*")


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
    near = nearest(function, sorted(names))
    hint = f"Did you mean {module}:{near[0]}?" if near else f"Define a function {function} in {file.name}."
    raise ConfigError(f"{file} has no function {function}.", hint)


def check_builder(target: str, file: Path, given: Iterable[str], *, is_training: bool) -> None:
    """That the function of `target`, in `file`, takes the sizes `given` by name and returns what is needed.

    A function that is made otherwise than by `def` is left to the measured process. Raises ConfigError for a
    size that it does not take, one that it needs, and a training step that can only return (model, inputs).
    """
    module, name = split_target(target)
    named = [node for node in _tree(file).body if getattr(node, "name", None) == name]
    if named and isinstance(named[-1], ast.ClassDef):
        raise _a_class(named[-1], module, file)
    defined = [node for node in named if isinstance(node, ast.FunctionDef)]
    if not defined or defined[-1].decorator_list:
        return
    function = defined[-1]
    _check_parameters(function.args, name, file, set(given))
    returned = [node.value for node in _own_statements(function) if isinstance(node, ast.Return)]
    pairs = [value for value in returned if isinstance(value, ast.Tuple) and len(value.elts) == _PAIR]
    if returned and len(pairs) == len(returned) and _switches_to_training(function):
        raise ConfigError(
            f"{name} in {file.name} calls train() and returns no loss, and is measured in eval mode.",
            "Return Built(model, inputs, 'inference'), which is measured as it is built, or (model, inputs, "
            "loss) for a training step; or leave out train().",
        )
    if is_training and returned and len(pairs) == len(returned):
        raise ConfigError(
            f"The task is training, and {name} in {file.name} returns no loss.",
            "Return (model, inputs, loss); loss(output) returns a scalar tensor.",
        )


def _a_class(defined: ast.ClassDef, module: str, file: Path) -> ConfigError:
    """That a class is no builder, with the one to write for it."""
    made = [each for each in defined.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
    needed = []
    if made:
        positional = [each.arg for each in made[-1].args.args][1:]
        needed = positional[: max(0, len(positional) - len(made[-1].args.defaults))]
    arguments = ", ".join(f"{each}=..." for each in needed)
    return ConfigError(
        f"{defined.name} in {file.name} is a class; a workload is a function that returns (model, inputs).",
        f"Write `def build(): return {defined.name}({arguments}), (torch.randn(8, 64),)` with inputs that it "
        f"takes, and name {module}:build.",
    )


def _switches_to_training(function: ast.FunctionDef) -> bool:
    """Whether it calls `.train()` or `.train(True)` of something."""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "train"
        and (not node.args or ast.unparse(node.args[0]) == "True")
        for node in _own_statements(function)
    )


def returned_task(target: str, file: Path) -> Task | None:
    """The task that the function of `target`, in `file`, shows by what it returns: with a loss as third, or
    in a `Built` with its task written out, by name or by position. None where only calling it would tell.
    """
    name = split_target(target)[1]
    defined = [node for node in _tree(file).body if isinstance(node, ast.FunctionDef) and node.name == name]
    statements = _own_statements(defined[-1]) if defined else ()
    tasks = {_task_of(node.value) for node in statements if isinstance(node, ast.Return)}
    return tasks.pop() if len(tasks) == 1 else None


def _task_of(value: ast.expr | None) -> Task | None:
    if isinstance(value, ast.Tuple):
        return Task.TRAINING if len(value.elts) > _PAIR else Task.INFERENCE
    if not isinstance(value, ast.Call) or ast.unparse(value.func).rpartition(".")[2] != "Built":
        return None
    named = next((each.value for each in value.keywords if each.arg == "task"), None)
    task = named if named is not None else value.args[_PAIR] if len(value.args) > _PAIR else None
    text = (
        ast.unparse(task).rpartition(".")[2].strip("'\"").lower()
        if task is not None
        else Task.INFERENCE.value
    )
    return Task(text) if text in set(Task) else None


def _check_parameters(parameters: ast.arguments, name: str, file: Path, given: set[str]) -> None:
    named = [each.arg for each in (*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs)]
    for size in sorted(given.difference(named) if parameters.kwarg is None else ()):
        takes = f"It takes {', '.join(named)}." if named else f"{name} takes nothing."
        raise ConfigError(
            f"{name} in {file.name} has no parameter {size}.",
            did_you_mean(size, named, takes),
        )
    positional = [each.arg for each in parameters.args]
    needed = positional[: len(positional) - len(parameters.defaults)]
    needed += [
        each.arg
        for each, default in zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True)
        if default is None
    ]
    for parameter in needed:
        if parameter not in given | _PLACEMENT:
            raise ConfigError(
                f"{name} in {file.name} needs {parameter}, which the workload does not give.",
                f"Give it a default, or a [[workload]] with shape = {{ {parameter} = ... }}.",
            )


def _own_statements(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """The nodes of `function` without those of functions inside it."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            waiting.extend(ast.iter_child_nodes(node))


def _tree(file: Path) -> ast.Module:
    try:
        return ast.parse(file.read_bytes())
    except SyntaxError as error:
        raise ConfigError(
            f"{file} is not valid Python: line {error.lineno}: {error.msg}.", "Correct that line."
        ) from error
    except RecursionError as error:
        raise ConfigError(f"{file} nests too deeply to be read.", "Simplify its expressions.") from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file} cannot be read: {error}.", "Make the file readable.") from error


def _defined_names(file: Path) -> set[str] | None:
    """Names bound at the top level of `file`; None where only running it would tell."""
    names: set[str] = set()
    for node in ast.walk(_tree(file)):
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
