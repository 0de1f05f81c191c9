"""Published figures: only what states its circumstances, shown only where the workload matches."""

import pytest

from compilewatch.db.interchange.published import published_for
from compilewatch.db.records.trial import Task

RESNET = {"task": Task.INFERENCE, "dtype": "bfloat16", "shape": {"image_size": 224}, "mode": "default"}
UNET = {"task": Task.INFERENCE, "dtype": "float16", "shape": {"latent_size": 64, "text_length": 77}}


def test_resnet50_is_published_on_the_rtx_4090() -> None:
    (figure,) = published_for("resnet50", **RESNET)
    assert figure.sentence() == "published elsewhere: 1.87x (RTX 4090, torch 2.9.1, batch 1024, amp)"
    assert (figure.eager_ns, figure.compiled_ns) == (237_959_000, 127_355_000)
    assert figure.source.startswith("huggingface/pytorch-image-models:results/")


def test_other_names_of_the_same_model_match() -> None:
    (figure,) = published_for("vit-b16", **RESNET)
    assert figure.model == "vit_base_patch16_224"
    assert figure.speedup == pytest.approx(1.128, abs=0.001)
    steps = published_for("sd-unet", **UNET, mode="reduce-overhead")
    a100 = [f for f in steps if (f.device_name, f.torch, f.batch_size) == ("A100", "2.0", 1)]
    assert [figure.speedup for figure in a100] == [2.0328]
    assert a100[0].sentence().endswith("(A100, torch 2.0, batch 1, float16, pipeline step)")


def test_a_figure_without_a_size_says_so() -> None:
    """It may be of another one than the case has."""
    (figure,) = published_for(
        "densenet121", task=Task.TRAINING, dtype="amp", shape={"image_size": 64}, mode="default"
    )
    assert figure.sentence().endswith("batch 4, amp, input size not stated)")


@pytest.mark.parametrize(
    "change",
    [
        {"task": Task.TRAINING},
        {"dtype": "float32"},
        {"shape": {"image_size": 288}},
        {"shape": {}},
        {"mode": "max-autotune"},
        {"mode": None},
    ],
)
def test_another_case_has_no_figure(change: dict[str, object]) -> None:
    assert published_for("resnet50", **(RESNET | change)) == []
    assert published_for("my-model", **RESNET) == []
