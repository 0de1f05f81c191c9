"""Suites: named lists of workloads and strategies, how often each case runs, and in what environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Suite:
    """`workloads` and `strategies` by name. `trials` is per case. `worker_env` is added to the environment
    of each measured process and stored in the trial's `build.settings`, since it can change a cold start.
    """

    name: str
    workloads: tuple[str, ...]
    strategies: tuple[str, ...]
    summary: str = ""
    trials: int = 3
    worker_env: Mapping[str, str] = field(default_factory=dict)


# Together these take two thirds off a cold compilation on a CPU, and neither depends on the model: the probe
# for vector instructions (torch/_inductor/cpu_vec_isa.py) runs g++ three times per empty cache directory,
# and the precompiled header (torch/_inductor/codecache.py) is 149 MB that only many kernels pay back.
_WITHOUT_HOST_SETUP = {"TORCHINDUCTOR_VEC_ISA_OK": "1", "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0"}

SUITES: dict[str, Suite] = {
    suite.name: suite
    for suite in (
        Suite(
            name="smoke",
            summary="four small workloads in plain torch: minutes on two CPU cores",
            workloads=("cnn", "encoder", "elementwise", "mlp-train"),
            strategies=("eager", "default", "reduce-overhead"),
            worker_env=_WITHOUT_HOST_SETUP,
        ),
        Suite(
            name="smoke-all",
            summary="the workloads of smoke under every strategy and cache state: up to half an hour",
            workloads=("cnn", "encoder", "elementwise", "mlp-train"),
            strategies=(
                "eager",
                "default",
                "default+static",
                "default+dynamic",
                "default+fullgraph",
                "default+regional",
                "default+warm",
                "default+portable",
                "backend:aot_eager",
                "export",
                "packaged",
                "reduce-overhead",
                "max-autotune",
                "max-autotune-no-cudagraphs",
            ),
            trials=1,
            worker_env=_WITHOUT_HOST_SETUP,
        ),
        Suite(
            name="streams",
            summary="requests of different lengths, a first epoch and decoding: recompilations and padding",
            workloads=("varlen", "varlen-max", "varlen-buckets", "varlen-dynamic", "first-epoch", "decode"),
            strategies=("eager", "default", "default+dynamic"),
            worker_env=_WITHOUT_HOST_SETUP,
        ),
        Suite(
            name="standard",
            summary="ten workloads at datacenter size: for a GPU, needs the extra `models`",
            workloads=(
                "resnet50",
                "bert-base",
                "bert-base-train",
                "vit-b16",
                "gpt2",
                "sd-unet",
                "encoder-512",
                "lstm-cell",
                "mlp-4096",
                "elementwise-4096",
            ),
            strategies=(
                "eager",
                "default",
                "reduce-overhead",
                "max-autotune",
                "max-autotune-no-cudagraphs",
            ),
        ),
    )
}
