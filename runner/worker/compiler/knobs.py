"""Options of a strategy beside Inductor's: settings of Dynamo and AOT Autograd, and what is done with guards.

What may be set is what this interpreter's torch knows: a switch or a number of `torch._dynamo.config` or
`torch._functorch.config`. Texts, paths and functions are not.
"""

from __future__ import annotations

import difflib
import importlib
from typing import Any

import torch

from compilewatch.runner.worker.step.internals import simple_settings
from compilewatch.runner.worker.step.loading import UnsupportedCaseError

SETTINGS = {"dynamo": "torch._dynamo.config", "functorch": "torch._functorch.config"}
"""The module behind the first word of an option: `dynamo.recompile_limit`."""
GUARD_FILTER = "guard_filter_fn"
SKIP_GUARDS = "skip_guard_eval_unsafe"


def skips_guards(options: dict[str, Any]) -> bool:
    """Whether guards that tell no compiled code from another are skipped once it is steady
    (`torch.compiler.set_stance`).
    """
    return bool(options.get(SKIP_GUARDS, False))


def of_compile(options: dict[str, Any]) -> dict[str, Any]:
    """Those of `options` that are an argument of `torch.compile`, with the guard filter that is named.

    Raises UnsupportedCaseError where this torch has no such filter.
    """
    arguments = {name: value for name, value in options.items() if not _is_setting(name)}
    if GUARD_FILTER in arguments:
        arguments[GUARD_FILTER] = _guard_filter(arguments[GUARD_FILTER])
    return arguments


def put_in_force(options: dict[str, Any]) -> None:
    """Set what `options` say of Dynamo and AOT Autograd in this process, which ends with the trial.

    Raises UnsupportedCaseError for a setting that this torch lacks or of another kind.
    """
    for option, value in options.items():
        if not _is_setting(option) or option == SKIP_GUARDS:
            continue
        word, _, name = option.partition(".")
        known = simple_settings(SETTINGS[word])
        if name not in known:
            raise UnsupportedCaseError(_unknown(option, name, word, list(known)))
        is_switch = isinstance(known[name], bool)
        if isinstance(value, bool) != is_switch or not isinstance(value, int | float):
            kind = "true or false" if is_switch else "a number"
            raise UnsupportedCaseError(f"{SETTINGS[word]}.{name} is {kind}, not {value!r}.")
        setattr(importlib.import_module(SETTINGS[word]), name, value)


def _is_setting(option: str) -> bool:
    return option == SKIP_GUARDS or option.partition(".")[0] in SETTINGS


def _unknown(option: str, name: str, word: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    hint = f" Did you mean {word}.{near[0]}?" if near else ""
    return f"torch {torch.__version__} has no switch or number {option!r} in {SETTINGS[word]}.{hint}"


def _guard_filter(name: Any) -> Any:
    """A filter of guards that `torch.compiler` comes with (from 2.8)."""
    known = [each for each in dir(torch.compiler) if "_guard" in each and each.endswith("_unsafe")]
    if name not in known:
        names = ", ".join(known) or "none"
        raise UnsupportedCaseError(f"torch {torch.__version__} has no guard filter {name!r}; it has {names}.")
    return getattr(torch.compiler, name)
