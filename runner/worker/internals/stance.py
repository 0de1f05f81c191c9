"""What is compiled, and running it as it was written."""

from __future__ import annotations

import contextlib
import sys
from contextlib import AbstractContextManager
from typing import Any

from compilewatch.runner.worker.internals.lookup import attribute


def force_eager() -> AbstractContextManager[Any]:
    """Whatever is compiled runs as it was written inside (`torch.compiler.set_stance`, from 2.6). Before
    anything imported Dynamo nothing can be compiled, and eager's process does without it.
    """
    stance = attribute("torch.compiler", "set_stance") if "torch._dynamo" in sys.modules else None
    return contextlib.nullcontext() if stance is None else stance("force_eager")


def without_telling_guards() -> AbstractContextManager[Any]:
    """Guards that tell no compiled code from another are skipped inside (`torch.compiler.set_stance`, from
    2.6), as in a server whose inputs were all seen.
    """
    stance = attribute("torch.compiler", "set_stance")
    return contextlib.nullcontext() if stance is None else stance(skip_guard_eval_unsafe=True)


def is_compiled(function: Any) -> bool:
    """Whether `torch.compile` returned it, or changed it in place as `nn.Module.compile` does."""
    if getattr(function, "_torchdynamo_disable", False):
        return False
    attributes = getattr(function, "__dict__", {})
    in_place = attributes.get("_compiled_call_impl") is not None
    code, variables = getattr(function, "__code__", None), getattr(function, "__globals__", {})
    if code is not None and "compile" in code.co_names:
        # It compiles something whenever it is called; what torch's own do is theirs.
        torch = sys.modules.get("torch")
        is_torchs = variables.get("__name__", "").partition(".")[0] == "torch"
        return not is_torchs and any(variables.get(name) is torch for name in code.co_names)
    return (
        in_place
        or "_torchdynamo_orig_callable" in attributes
        or "_orig_mod" in attributes.get("_modules", {})
    )


def as_written(function: Any) -> Any:
    """What `torch.compile` was given where it returned `function`; `function` itself where it did not."""
    while is_compiled(function):
        attributes = vars(function)
        inner = attributes.get("_modules", {}).get("_orig_mod") or attributes.get(
            "_torchdynamo_orig_callable"
        )
        if inner is None:
            break
        function = inner
    return function
