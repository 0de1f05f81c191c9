"""Workloads whose module plants one defect in the compiler of the process that builds them."""

from __future__ import annotations

from typing import Any

import torch

from compilewatch.runner.workloads.built import Built


def _step(x: torch.Tensor) -> torch.Tensor:
    return torch.cos(torch.nn.functional.gelu(x) * torch.sin(x)) + x.mean()


def _built() -> Built:
    return Built(model_or_fn=_step, inputs=(torch.randn(64, 64),))


def build_right(*_: Any, **__: Any) -> Built:
    """Nothing is wrong with it."""
    return _built()


def build_decomposition(*_: Any, **__: Any) -> Built:
    """GELU is decomposed into something that is near it."""
    from torch._inductor.decomposition import decompositions

    decompositions[torch.ops.aten.gelu.default] = lambda x, approximate="none": x * torch.sigmoid(1.6 * x)
    return _built()


def build_lowering(*_: Any, **__: Any) -> Built:
    """A sine is lowered to a cosine."""
    from torch._inductor.lowering import lowerings

    lowerings[torch.ops.aten.sin.default] = lambda x: lowerings[torch.ops.aten.cos.default](x)
    return _built()


def build_fusion(*_: Any, **__: Any) -> Built:
    """A pass over the graph turns cosines into sines."""
    from torch._inductor import config

    def swap(graph: torch.fx.Graph) -> None:
        for node in graph.nodes:
            if node.target is torch.ops.aten.cos.default:
                node.target = torch.ops.aten.sin.default

    config.post_grad_custom_post_pass = swap
    return _built()


def build_in_place(*_: Any, **__: Any) -> Built:
    """What decides what may be written in place overwrites the input."""
    import torch._inductor.fx_passes.post_grad

    # Untyped: it takes what this release of torch gives it.
    passes: Any = torch._inductor.fx_passes.post_grad
    original = passes.reinplace_inplaceable_ops

    def reinplace(fake: Any, graph: torch.fx.Graph) -> None:
        original(fake, graph)
        for sine in [node for node in graph.nodes if node.target is torch.ops.aten.sin.default]:
            with graph.inserting_before(next(reversed(graph.nodes))):
                graph.call_function(torch.ops.aten.copy_.default, (sine.args[0], sine))

    passes.reinplace_inplaceable_ops = reinplace
    return _built()


def build_uncompilable(*_: Any, **__: Any) -> Built:
    """A sine cannot be lowered."""
    from torch._inductor.lowering import lowerings

    def refuse(_: Any) -> None:
        raise RuntimeError("planted")

    lowerings[torch.ops.aten.sin.default] = refuse
    return _built()
