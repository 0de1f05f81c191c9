"""What the phases of a cold start are called."""

from __future__ import annotations

# Phases of `db.records.trial.ColdStart`, in the order in which a process goes through them, as they are said.
PHASES = {
    "interpreter": "interpreter",
    "import_torch": "import torch",
    "harness": "benchmark harness",
    "import_libraries": "import libraries",
    "import_compile_stack": "import compile stack",
    "build_model": "build model",
    "eager_first": "eager first call",
    "dynamo": "dynamo",
    "aot_autograd": "AOTAutograd",
    "inductor": "inductor",
    "kernel_compile": "kernel compile",
    "isa_probe": "ISA probe",
    "autotune": "autotune",
    "backward": "backward",
    "cudagraph_capture": "CUDA-graph capture",
    "first_call": "first call",
    "other": "other",
    "unattributed": "unattributed",
}
