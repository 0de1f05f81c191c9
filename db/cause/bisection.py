"""Which part of the compiler a failure comes from, in words, with the line that shows it."""

from __future__ import annotations

from compilewatch.db.records.evidence import Bisection
from compilewatch.db.units import duration, plural

_PASSES = {
    "pre_grad_passes": "Inductor's pass {operator} over the graph before autograd",
    "joint_graph_passes": "Inductor's pass {operator} over the joint graph",
    "post_grad_passes": "Inductor's pass {operator} over the graph after autograd",
    "decomposition": "The decomposition of {operator}",
    "lowerings": "Inductor's lowering of {operator}",
    "cudagraphs": "A CUDA graph",
}
_BACKENDS = {
    "eager": "Dynamo's capture",
    "aot_eager": "AOTAutograd",
    "aot_eager_decomp_partition": "AOTAutograd's decompositions or partitioner",
    "aot_eager_decomp_partition_crossref": "A decomposition, checked against its operator,",
    "inductor": "Inductor, outside of its passes and lowerings,",
}

_NOT_NAMED = {
    "passed": "It did not fail again ({tried}).",
    "out_of_time": "No part of the compiler was named in time ({tried}): raise `bisect_s` in [run].",
    "unstable": "It fails by chance: the same compilation was right once and wrong once ({tried}).",
    "host": "Inductor compiles nothing on this host, not even `x + 1` ({tried}).",
}


def bisection_sentence(found: Bisection) -> str:
    """What was found, in one sentence."""
    tried = f"{plural(found.attempts, 'compilation')}, {duration(found.spent_ns)}"
    if found.outcome != "named":
        return _NOT_NAMED[found.outcome].format(tried=tried)
    backend, subsystem = found.backend or "", found.subsystem
    if subsystem is None:
        return f"{_BACKENDS.get(backend, backend)} makes it fail ({tried})."
    named = _PASSES.get(subsystem)
    if named is None:
        return f"It does not fail with {_option(backend, subsystem)} changed ({tried})."
    return f"{named.format(operator=found.operator or 'an operator')} makes it fail ({tried})."


def replay_line(found: Bisection) -> str | None:
    """How the failure comes and goes; None where nothing was named."""
    if found.outcome != "named" or found.backend is None:
        return None
    if found.subsystem is None:
        return f'It fails with torch.compile(..., backend="{found.backend}").'
    if found.subsystem not in _PASSES or found.number is None:
        return f"Change `{_option(found.backend, found.subsystem)}` to see it come and go."
    variables = f"TORCH_BISECT_BACKEND={found.backend} TORCH_BISECT_SUBSYSTEM={found.subsystem}"
    fails, right = found.number, found.number - 1
    return f"It fails with {variables} TORCH_BISECT_MAX={fails}, and not with TORCH_BISECT_MAX={right}."


def _option(backend: str, subsystem: str) -> str:
    """The option of a subsystem that is one: "emulate_precision_casts" of "inductor_emulate_..."."""
    return subsystem.removeprefix(f"{backend}_")
