"""What the phases of a cold start are called, and how they are drawn."""

from __future__ import annotations

from compilewatch.dashboard.text import theme

# Phases of `db.records.trial.ColdStart`, in the order in which a process goes through them: word and colour.
_PHASES = {
    "interpreter": ("interpreter", "#C5D08A"),
    "import_torch": ("import torch", "#6BAF3A"),
    "harness": ("benchmark harness", "#C2447E"),
    "import_libraries": ("import libraries", "#4CC9CC"),
    "import_compile_stack": ("import compile stack", "#1E7B84"),
    "build_model": ("build model", theme.SKY),
    "eager_first": ("eager first call", theme.GREY),
    "dynamo": ("dynamo", theme.BLUE),
    "aot_autograd": ("AOTAutograd", theme.PURPLE),
    "inductor": ("inductor", theme.VERMILLION),
    "kernel_compile": ("kernel compile", theme.ORANGE),
    "isa_probe": ("ISA probe", "#F0E442"),
    "autotune": ("autotune", theme.GREEN),
    "backward": ("backward", "#7B4EA3"),
    "cudagraph_capture": ("CUDA-graph capture", "#3B4CC0"),
    "first_call": ("first call", "#7F5539"),
    "other": ("other", "#C9A58B"),
    "unattributed": ("unattributed", "#DAD7D2"),
}
PHASES = {phase: word for phase, (word, _) in _PHASES.items()}
COLOURS = dict(_PHASES.values())
