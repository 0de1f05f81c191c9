"""What the compiler takes of a workload, without code being generated: graphs, operations, guards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch

from compilewatch.runner.worker.compiler.compiler_facts import short_location
from compilewatch.runner.worker.internals.compilations import compilation_metrics
from compilewatch.runner.worker.internals.compiler import falls_back, register_capturing_backend

BACKEND = "compilewatch_explain"
_MOST = 100


class Explained:
    """A backend of `torch.compile` that looks at each graph as Inductor would get it and runs it as it is."""

    def __init__(self) -> None:
        self._operations: Counter[str] = Counter()
        self._fallbacks: Counter[str] = Counter()
        register_capturing_backend(BACKEND, self._look)

    def _look(self, module: torch.fx.GraphModule, _inputs: Any) -> Callable[..., Any]:
        for node in module.graph.nodes:
            if isinstance(node.target, torch._ops.OpOverload):
                name = str(node.target.overloadpacket)
                self._operations[name] += 1
                self._fallbacks[name] += falls_back(node.target)
        return module.forward

    def facts(self) -> dict[str, Any]:
        """Frames as {"function", "location", "operations", "guards"} in the order of their compilation, and
        the operations after decomposition, the most frequent first, with how many of each Inductor
        leaves to ATen.
        """
        return {
            "frames": [
                {
                    "function": entry.co_name,
                    "location": short_location(f"{entry.co_filename}:{entry.co_firstlineno}"),
                    "operations": entry.graph_op_count,
                    "guards": entry.guard_count,
                }
                for entry in (compilation_metrics() or [])[:_MOST]
                if entry.graph_op_count
            ],
            "operations": dict(self._operations.most_common(_MOST)),
            "fallbacks": {name: count for name, count in self._fallbacks.most_common(_MOST) if count},
        }
