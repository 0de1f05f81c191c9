"""What the phases of a cold start are called, and the groups in which they are drawn."""

from __future__ import annotations

from compilewatch.dashboard.text import theme

UNTOLD = "unattributed"
# Colour, and the text on it that can be read.
GROUPS = {
    "import": (theme.GREY, "black"),
    "trace": (theme.SKY, "black"),
    "lower": (theme.BLUE, "white"),
    "kernels": (theme.ORANGE, "black"),
    "first run": (theme.GREEN, "black"),
    UNTOLD: ("#DAD7D2", "black"),
}
"""In the order in which a process goes through them; the last is what no phase tells."""

# Phases of `db.records.trial.ColdStart`, in the order in which a process goes through them.
_PHASES = {
    "interpreter": ("interpreter", "import"),
    "import_torch": ("import torch", "import"),
    "harness": ("benchmark harness", "import"),
    "import_libraries": ("import libraries", "import"),
    "import_compile_stack": ("import compile stack", "import"),
    "build_model": ("build model", "import"),
    "eager_first": ("eager first call", "first run"),
    "dynamo": ("dynamo", "trace"),
    "aot_autograd": ("AOTAutograd", "trace"),
    "inductor": ("inductor", "lower"),
    "kernel_compile": ("kernel compile", "kernels"),
    "isa_probe": ("ISA probe", "kernels"),
    "autotune": ("autotune", "kernels"),
    "backward": ("backward", "lower"),
    "cudagraph_capture": ("CUDA-graph capture", "first run"),
    "first_call": ("first call", "first run"),
    "other": ("other", "first run"),
    "unattributed": (UNTOLD, UNTOLD),
}
PHASES = {phase: word for phase, (word, _) in _PHASES.items()}
GROUP_OF = dict(_PHASES.values())
"""By the word of a phase."""
