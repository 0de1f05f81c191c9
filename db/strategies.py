"""The strategies every installation knows, their order, and where they mean something."""

from __future__ import annotations

from db.records import CacheState, Strategy, StrategyKind

EAGER = Strategy(name="eager", kind=StrategyKind.EAGER, cache=CacheState.NONE)


def _compiled(mode: str) -> Strategy:
    return Strategy(
        name=mode, kind=StrategyKind.COMPILE, backend="inductor", mode=mode, cache=CacheState.COLD
    )


BUILTIN: dict[str, Strategy] = {
    strategy.name: strategy
    for strategy in (
        EAGER,
        _compiled("default"),
        _compiled("reduce-overhead"),
        _compiled("max-autotune"),
        _compiled("max-autotune-no-cudagraphs"),
    )
}

# torch._inductor.list_mode_options(): these modes only switch on CUDA graphs and Triton autotuning.
_GPU_ONLY_MODES = {
    "reduce-overhead": "CUDA graphs do not exist on a CPU, so this mode runs the code of default",
    "max-autotune": "CUDA graphs and Triton autotuning do not exist on a CPU",
    "max-autotune-no-cudagraphs": "Triton autotuning does not exist on a CPU",
}


def not_applicable_reason(strategy: Strategy, device: str) -> str | None:
    """Why `strategy` means nothing on `device` ("cpu", "cuda", "hip"), or None where it does."""
    if device == "cpu" and strategy.mode is not None:
        return _GPU_ONLY_MODES.get(strategy.mode)
    return None


def sort_key(name: str) -> tuple[int, str]:
    """Orders strategy names: the built-in ones first, in their own order, then by name."""
    order = list(BUILTIN)
    base = name.split("+", 1)[0]
    return (order.index(base) if base in order else len(order), name)
