"""The strategies every installation knows, their order, and where they mean something."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from compilewatch.db.errors import NotFoundError, did_you_mean
from compilewatch.db.records.trial import CacheState, Strategy, StrategyKind

EAGER = Strategy(name="eager", kind=StrategyKind.EAGER, cache=CacheState.NONE)

# The cache state of a strategy that names none: a fresh process with empty caches, or a package loaded.
CACHE_OF_KIND = {
    StrategyKind.EAGER: CacheState.NONE,
    StrategyKind.COMPILE: CacheState.COLD,
    StrategyKind.EXPORT: CacheState.COLD,
    StrategyKind.AOT_PACKAGE: CacheState.PACKAGED,
}


def _of_inductor(name: str, **fields: Any) -> Strategy:
    cold = {"kind": StrategyKind.COMPILE, "backend": "inductor", "cache": CacheState.COLD}
    return Strategy(name=name, **cold | fields)


def compile_arguments(strategy: Strategy) -> dict[str, Any]:
    """The arguments of torch.compile that a strategy gives."""
    arguments = {
        "backend": strategy.backend,
        "mode": strategy.mode,
        "dynamic": strategy.dynamic,
        "fullgraph": strategy.fullgraph or None,
        "options": strategy.options or None,
    }
    return {name: value for name, value in arguments.items() if value is not None}


_MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
_OPTIONS: dict[str, dict[str, Any]] = {
    "no-epilogue-fusion": {"epilogue_fusion": False},
    "max-fusion-8": {"max_fusion_size": 8},
    # Autotuning among the kernels of libraries alone, and over every configuration of Triton's templates.
    "max-autotune-aten": {"max_autotune": True, "max_autotune_gemm_backends": "ATEN"},
    "max-autotune-exhaustive": {"max_autotune": True, "max_autotune_gemm_search_space": "EXHAUSTIVE"},
    # Draws the random numbers that eager draws, so that both can be compared.
    "fallback-random": {"fallback_random": True},
}
BUILTIN: dict[str, Strategy] = {
    strategy.name: strategy
    for strategy in (
        EAGER,
        *(_of_inductor(mode, mode=mode) for mode in _MODES),
        # Captured by torch.export and executed operation by operation: what capture alone costs and gains.
        Strategy(name="export", kind=StrategyKind.EXPORT, cache=CacheState.COLD),
        # Captured by torch.onnx.export, executed by ONNX Runtime on the provider of the device.
        Strategy(name="onnxruntime", kind=StrategyKind.EXPORT, backend="onnxruntime", cache=CacheState.COLD),
        # Captured and compiled in another process (AOTInductor); the measured one loads the package.
        _of_inductor("packaged", kind=StrategyKind.AOT_PACKAGE, cache=CacheState.PACKAGED),
        # The same by Dynamo, as one graph (`torch.compile(fullgraph=True).aot_compile`): guards are kept, and
        # functions and training steps can be packaged too.
        _of_inductor("aot-compile", kind=StrategyKind.AOT_PACKAGE, fullgraph=True, cache=CacheState.PACKAGED),
        # Each differs from default by one decision of `torch._inductor.config`.
        *(_of_inductor(name, options=options) for name, options in _OPTIONS.items()),
    )
}

ONNX_PACKAGES = ("onnx", "onnxscript", "onnxruntime")
"""What the strategy `onnxruntime` needs: to export, and to execute."""

PASSES: dict[str, Any] = {
    "pattern_matcher": False,
    "epilogue_fusion": False,
    "max_fusion_size": 1,
    "loop_ordering_after_fusion": False,
    "batch_fusion": False,
    "split_cat_fx_passes": False,
    "joint_graph_constant_folding": False,
    "reorder_for_locality": False,
    "reorder_for_peak_memory": False,
    "layout_optimization": False,
    "comprehensive_padding": False,
    "shape_padding": False,
    "split_reductions": False,
    "inplace_buffers": False,
}
"""Passes of Inductor that are on by themselves, by the option of `torch._inductor.config` that leaves each
out, with the value that does. At a fusion size of 1 nothing is fused.
"""

# What may follow a name after "+", in the order of the short name. One of each group at most.
_MODIFIERS: tuple[dict[str, dict[str, Any]], ...] = (
    {"dynamic": {"dynamic": True}, "static": {"dynamic": False}},
    {"fullgraph": {"fullgraph": True}},
    {"regional": {"scope": "regional"}, "nested": {"scope": "nested"}},
    {},
    {"warm": {"cache": CacheState.WARM}, "portable": {"cache": CacheState.PORTABLE}},
)
_SUBMODULE = re.compile(r"submodule:\w+(\.\w+)*")
WITHOUT = "+without"
_WITHOUT = re.compile(r"without:(\w+(?:\.\w+)*)")
_OF_WITHOUT = 3
"""Place of `without:OPTION` among the modifiers."""
# Part of torch itself (torch._dynamo.list_backends). Any other is looked up among the entry points of what is
# installed, and runs its code.
TORCH_BACKENDS = frozenset({"aot_eager", "aot_eager_decomp_partition", "cudagraphs", "eager", "inductor"})

_BACKEND = re.compile(r"backend:([A-Za-z_]\w*)")


def names_code(workload: str, strategy: str = "eager") -> bool:
    """Whether `compilewatch run` of these names would import what they say instead of what is configured.

    "module:function" is a workload of the command line alone: no command that holds one is suggested, for
    names of records are what somebody wrote.
    """
    backend = _BACKEND.match(strategy)
    return ":" in workload or (backend is not None and backend.group(1) not in TORCH_BACKENDS)


# torch._inductor.list_mode_options(): CUDA graphs are all that this mode switches on. What max-autotune does,
# there is on a CPU too: Inductor has C++ templates of matrix products there, and autotunes them.
_GPU_ONLY_MODES = {
    "reduce-overhead": "CUDA graphs do not exist on a CPU, so this mode runs the code of default",
}


def not_applicable_reason(strategy: Strategy, device: str) -> str | None:
    """Why `strategy` means nothing on `device` ("cpu", "cuda", "hip"), or None where it does."""
    return _GPU_ONLY_MODES.get(strategy.mode or "") if device == "cpu" else None


def sort_key(name: str) -> tuple[int, str]:
    """Orders strategy names: the built-in ones first, in their own order, then by name."""
    order = list(BUILTIN)
    base = name.split("+", 1)[0]
    return (order.index(base) if base in order else len(order), name)


def parse_strategy(name: str, named: Mapping[str, Strategy] | None = None) -> Strategy:
    """The strategy behind a short name: a built-in one or one of `named`, with modifiers after "+".

    `default+dynamic`, `reduce-overhead+regional+fullgraph`, `max-autotune+submodule:encoder.layer`,
    `default+warm`, and `backend:aot_eager` for another backend. The name of the result has its modifiers in
    one order, whatever order they were given in. Raises NotFoundError naming the nearest one.
    """
    known = {**BUILTIN, **(named or {})}
    if name in known:
        return known[name]
    base, *modifiers = name.split("+")
    other = _BACKEND.fullmatch(base)
    if other is not None and base not in known:
        known[base] = _of_inductor(base, backend=other.group(1))
    if not modifiers and base in known:
        return known[base]
    if base not in known:
        raise NotFoundError(
            f"There is no strategy {base!r}.",
            f"{did_you_mean(base, known)} `compilewatch list strategies` shows all.".lstrip(),
        )
    strategy = known[base]
    if strategy.kind is not StrategyKind.COMPILE:
        raise NotFoundError(
            f"{base} is not torch.compile, so +{modifiers[0]} means nothing for it.", f"Write {base}."
        )
    groups = {_group_of(modifier, name): modifier for modifier in modifiers}
    if len(groups) < len(modifiers):
        raise NotFoundError(
            f"{name!r} gives two modifiers that exclude each other.", "Leave one of them out."
        )
    changes: dict[str, Any] = {}
    for group, modifier in sorted(groups.items()):
        if left_out := _WITHOUT.fullmatch(modifier):
            # What was said of the whole says nothing of it without a part.
            changes |= {"options": _options_without(strategy, left_out.group(1)), "reason": None}
        else:
            changes |= _MODIFIERS[group].get(modifier, {"scope": modifier})
    if strategy.regions and "scope" in changes:
        raise NotFoundError(f"{base} says itself which parts are compiled.", f"Write {base}.")
    ordered = [base, *(groups[group] for group in sorted(groups))]
    return strategy.model_copy(update={"name": "+".join(ordered), **changes})


def settings_of_name(name: str) -> str:
    """What follows a strategy's name after "+" and is no modifier of the compiler: eager can have it too."""
    known = {*(word for group in _MODIFIERS for word in group), *CacheState}
    words = name.split("+")[1:]
    named = (_SUBMODULE, _WITHOUT)
    return "+".join(
        word for word in words if word not in known and not any(each.fullmatch(word) for each in named)
    )


def leaves_out(strategy: Strategy) -> list[str]:
    """What can be left out of a strategy in turn: its own options, else the passes of Inductor."""
    return list(strategy.options or PASSES)


def whole_of(name: str) -> tuple[str, str] | None:
    """Of the name of a strategy that leaves something out the one that does not, and what; else None."""
    words = name.split("+")
    left_out = next((each for each in words if _WITHOUT.fullmatch(each)), None)
    if left_out is None:
        return None
    return "+".join(each for each in words if each != left_out), left_out.partition(":")[2]


def _options_without(strategy: Strategy, name: str) -> dict[str, Any]:
    """Its options without its own `name`, or with the pass of that name left out. Raises NotFoundError."""
    if name in strategy.options:
        return {option: value for option, value in strategy.options.items() if option != name}
    if name in PASSES and strategy.backend == "inductor":
        return {**strategy.options, name: PASSES[name]}
    known = list(dict.fromkeys((*strategy.options, *(PASSES if strategy.backend == "inductor" else ()))))
    raise NotFoundError(
        f"{strategy.name} has nothing called {name!r} to leave out.",
        f"{did_you_mean(name, known)} It has {', '.join(known) or 'nothing'}.".lstrip(),
    )


def _group_of(modifier: str, name: str) -> int:
    for group, members in enumerate(_MODIFIERS):
        if modifier in members or ("regional" in members and _SUBMODULE.fullmatch(modifier)):
            return group
    if _WITHOUT.fullmatch(modifier):
        return _OF_WITHOUT
    every = [member for members in _MODIFIERS for member in members]
    raise NotFoundError(
        f"{name!r} has an unknown modifier {modifier!r}.",
        f"{did_you_mean(modifier, every)} Modifiers are {', '.join(every)}, submodule:PATH and "
        "without:OPTION.".lstrip(),
    )
