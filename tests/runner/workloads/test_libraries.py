"""Models of transformers, timm and torchvision by name: from sources and configurations alone, offline."""

from __future__ import annotations

import importlib.util
import json
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from compilewatch.db.errors import CompilewatchError
from compilewatch.db.records.trial import Status
from compilewatch.runner.catalog.libraries import is_library_name, library_workload
from compilewatch.runner.config.sources import load_settings
from compilewatch.runner.plan.plan import plan_run
from compilewatch.runner.plan.selection import known_workloads, select
from compilewatch.runner.process.supervise import run_trial
from compilewatch.runner.worker.step.steps import tensors_of
from compilewatch.runner.workloads.built import Built
from tests.runner.measuring import build

# The sources of a library that is not installed, as far as names are read from them.
STAND_IN = {
    "torchvision": {
        "resnet.py": "@register_model()\n@legacy(\n    weights=1,\n)\ndef resnet18(*, weights=None):\n",
        "transformer.py": '@register_model(name="x")\ndef vit_b_16(*, weights=None):\n\ndef helper():\n',
    },
    "timm": {"resnet.py": "@register_model\ndef resnet50(pretrained=False, **kwargs):\n"},
    "transformers": {
        "bert/configuration_bert.py": (
            '@auto_docstring(checkpoint="google-bert/bert-base-uncased")\n@strict\n'
            'class BertConfig(PreTrainedConfig):\n    model_type = "bert"\n'
            "    vocab_size: int = 30522\n    max_position_embeddings: int = 64\n"
        ),
        "vit/configuration_vit.py": (
            '@auto_docstring(\n    checkpoint="google/vit-base-patch16-224",\n)\n@strict\n'
            'class ViTConfig(PreTrainedConfig):\n    model_type = "vit"\n'
            "    image_size: int | list[int] = 192\n"
        ),
        "clap/configuration_clap.py": (
            'class ClapConfig(PreTrainedConfig):\n    model_type = "clap"\n    projection_dim: int = 512\n'
        ),
    },
}


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installation of the three libraries that has no more than the lines above."""
    for package, files in STAND_IN.items():
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("raise SystemExit('imported')\n")
        for name, text in files.items():
            file = tmp_path / package / "models" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
    found = importlib.util.find_spec

    def find(name: str, package: str | None = None) -> Any:
        if name in STAND_IN:
            return importlib.util.spec_from_file_location(name, tmp_path / name / "__init__.py")
        return found(name, package)

    monkeypatch.setattr("importlib.util.find_spec", find)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    return tmp_path


def _refused(name: str, root: Path) -> CompilewatchError:
    with pytest.raises(CompilewatchError) as caught:
        library_workload(name, root)
    assert caught.value.next_step
    return caught.value


def test_which_names_are_models_of_a_library() -> None:
    assert all(map(is_library_name, ("hf:gpt2", "timm:resnet50.a1_in1k", "torchvision:vit_b_16@b2")))
    assert not any(
        map(is_library_name, ("hf", "hf:", "my_models:build", "torchvision.models:resnet18", "cnn"))
    )


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("timm:resnet50", (8, {"image_size": 224}, "float32")),
        ("timm:resnet50.a1_in1k@b2-i64", (2, {"image_size": 64}, "float32")),
        ("torchvision:vit_b_16@bfloat16-b1", (1, {"image_size": 224}, "bfloat16")),
    ],
)
def test_sizes_stand_after_the_name(stand_in: Path, name: str, sizes: tuple[Any, ...]) -> None:
    definition = library_workload(name, stand_in)
    assert (definition.batch_size, dict(definition.shape), definition.dtype) == sizes
    assert definition.name == name
    assert definition.record().items_per_iteration == sizes[0]


@pytest.mark.parametrize(
    ("name", "message", "next_step"),
    [
        ("timm:resnet5", "timm has no model 'resnet5'.", "Did you mean timm:resnet50?"),
        ("torchvision:helper", "torchvision has no model 'helper'.", "See the list"),
        ("torchvision:resnet18@b0", "'b0' is no size of a workload.", "Write @b8-s128-bfloat16"),
        ("torchvision:resnet18@s9", "has no sequence_length, so s9 means nothing", "Its size is image_size."),
    ],
)
def test_what_is_missing_is_one_sentence(stand_in: Path, name: str, message: str, next_step: str) -> None:
    refused = _refused(name, stand_in)
    assert message in refused.message
    assert refused.next_step.startswith(next_step)


@pytest.mark.parametrize(("name", "extra"), [("hf:gpt2", "models"), ("timm:resnet50", "vision")])
def test_a_library_that_is_not_installed(
    name: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    refused = _refused(name, tmp_path)
    assert re.fullmatch(r"\S+ needs (transformers|timm), which is not installed\.", refused.message)
    assert refused.next_step == f"Install it with: pip install 'compilewatch[{extra}]'"


# A model of transformers is its configuration.


@pytest.fixture
def hub(stand_in: Path) -> Path:
    pytest.importorskip("huggingface_hub")
    return stand_in


def test_the_defaults_of_a_class_stand_for_the_model_it_documents(hub: Path) -> None:
    for name in ("hf:bert-base-uncased", "hf:google-bert/bert-base-uncased", "hf:bert"):
        definition = library_workload(name, hub)
        assert definition.kwargs == {"config": {"model_type": "bert"}}
        assert definition.shape == {"sequence_length": 64}
        assert definition.record().items_per_iteration == 8 * 64
    assert library_workload("hf:vit-base-patch16-224", hub).shape == {"image_size": 192}


def test_a_file_comes_first_and_makes_a_version_of_its_own(hub: Path) -> None:
    (hub / "bert").mkdir()
    file = hub / "bert" / "config.json"
    file.write_text(json.dumps({"model_type": "bert", "vocab_size": 99, "max_position_embeddings": 512}))
    own = library_workload("hf:bert", hub)
    assert own.kwargs["config"]["vocab_size"] == 99
    assert own.shape == {"sequence_length": 128}
    assert own.kwargs == library_workload("hf:bert/config.json", hub).kwargs
    assert own.version != library_workload("hf:bert-base-uncased", hub).version


def test_the_cache_comes_before_the_defaults(hub: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The layout of https://huggingface.co/docs/huggingface_hub/guides/manage-cache
    folder = hub / "cache" / "models--bert-base-uncased"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text("abc")
    (folder / "snapshots" / "abc").mkdir(parents=True)
    (folder / "snapshots" / "abc" / "config.json").write_text('{"model_type": "bert", "vocab_size": 7}')
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(hub / "cache"))
    monkeypatch.setattr("huggingface_hub.file_download.constants.HF_HUB_CACHE", str(hub / "cache"))
    assert library_workload("hf:bert-base-uncased", hub).kwargs["config"]["vocab_size"] == 7


def test_code_of_a_models_repository_is_never_named(hub: Path) -> None:
    code = {"auto_map": {"AutoModel": "modeling_evil.Evil"}, "custom_pipelines": {"x": {"impl": "evil.X"}}}
    (hub / "a.json").write_text(json.dumps({"model_type": "bert", "vocab_size": 7, **code}))
    assert library_workload("hf:a.json", hub).kwargs["config"] == {"model_type": "bert", "vocab_size": 7}
    (hub / "b.json").write_text(json.dumps({"model_type": "evil", "vocab_size": 7, **code}))
    refused = _refused("hf:b.json", hub)
    assert refused.message.startswith("The installed transformers has no model of type 'evil'")
    assert "never run" in refused.next_step


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("hf:bert-base-uncasd", "neither in the cache nor a default of transformers"),
        ("hf:gone.json", "There is no file gone.json in"),
        ("hf:half.json", "cannot be read"),
        ("hf:list.json", "has no model of type 'None'"),
        ("hf:a/b/c", "is no name of a model"),
        ("hf:clap", "takes neither tokens nor images alone"),
    ],
)
def test_a_configuration_that_is_not_there(hub: Path, name: str, message: str) -> None:
    (hub / "half.json").write_text('{"model_type":')
    (hub / "list.json").write_text("[1]")
    assert message in _refused(name, hub).message


def test_the_configuration_of_a_host_gives_it_a_name_and_a_sweep(
    stand_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (stand_in / "compilewatch.toml").write_text(
        '[[workload]]\nname = "resnet"\ntarget = "timm:resnet50@i64"\nbatch_size = [1, 8]\n'
    )
    monkeypatch.chdir(stand_in)
    settings = load_settings()
    assert {name for name in known_workloads(settings) if name.startswith("resnet-")} == {
        "resnet-b1",
        "resnet-b8",
    }
    (definition,) = select(settings, workloads=["resnet-b8"]).workloads
    assert (definition.batch_size, definition.shape) == (8, {"image_size": 64})


# The real libraries, where they are installed.

TINY = {
    "bert": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64},
    "t5": {"d_model": 32, "d_ff": 64, "num_layers": 1, "num_heads": 2, "d_kv": 16},
    "vit": {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64},
}
SIZES = {"bert": {"vocab_size": 99}, "t5": {"vocab_size": 99}, "vit": {"image_size": 32}}


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)


def _torchvision_for_this_torch() -> None:
    """torchvision as a build of its own for this torch would be; its C++ operators are not called here."""
    for operator in ("nms", "qnms"):
        if not hasattr(torch.ops.torchvision, operator):
            torch.library.define(f"torchvision::{operator}", "(Tensor a, Tensor b, float c) -> Tensor")


@pytest.fixture
def transformers() -> None:
    """transformers, which imports torchvision where that is installed."""
    _torchvision_for_this_torch()
    pytest.importorskip("transformers")


@pytest.fixture
def torchvision() -> None:
    """timm and torchvision, which timm imports."""
    if importlib.util.find_spec("timm") is None or importlib.util.find_spec("torchvision") is None:
        pytest.skip("timm or torchvision is not installed")
    _torchvision_for_this_torch()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.usefixtures("transformers")
@pytest.mark.parametrize(
    ("kind", "architecture", "made"),
    [
        ("bert", None, "BertModel"),
        ("bert", "BertForMaskedLM", "BertForMaskedLM"),
        ("t5", None, "T5Model"),
        ("vit", "os.system", "ViTModel"),
    ],
)
def test_a_model_is_made_of_its_configuration(
    kind: str, architecture: str | None, made: str, tmp_path: Path, no_network: None
) -> None:
    content = {
        "model_type": kind,
        "architectures": architecture and [architecture],
        **TINY[kind],
        **SIZES[kind],
    }
    (tmp_path / "config.json").write_text(json.dumps(content))
    name = "hf:config.json@b2" + ("" if kind == "vit" else "-s16")
    ready = build(library_workload(name, tmp_path))
    assert type(ready.model_or_fn).__name__ == made
    assert not ready.model_or_fn.training
    assert ready.inputs[0].shape == ((2, 3, 32, 32) if kind == "vit" else (2, 16))
    assert _spread(ready) > 1e-2


@pytest.mark.usefixtures("transformers")
def test_the_published_bert_is_that_of_the_catalogue(no_network: None, tmp_path: Path) -> None:
    ready = build(library_workload("hf:bert-base-uncased@b1-s8", tmp_path))
    # https://huggingface.co/google-bert/bert-base-uncased: 110 million parameters, without the head.
    assert sum(p.numel() for p in ready.model_or_fn.parameters()) == 109_482_240


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")
@pytest.mark.parametrize(
    "name",
    ["timm:resnet18@b2-i64", "torchvision:resnet18@b2-i64", "torchvision:fcn_resnet50@b2-i64"],
)
def test_a_registered_model_is_made_without_weights(
    torchvision: None, no_network: None, tmp_path: Path, name: str
) -> None:
    ready = build(library_workload(name, tmp_path))
    assert ready.inputs[0].shape == (2, 3, 64, 64)
    assert 1e-2 < _spread(ready) < 1e2


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")
def test_a_model_of_another_image_size_says_which(torchvision: None, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="measure timm:vit_tiny_patch16_384@i384"):
        build(library_workload("timm:vit_tiny_patch16_384@b1", tmp_path))


def test_naming_a_model_imports_no_library(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    code = (
        "import sys; from pathlib import Path;"
        "from compilewatch.runner.catalog.libraries import library_workload;"
        "library_workload('hf:gpt2', Path()); print({'torch', 'transformers', 'timm'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_a_model_of_a_library_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers")
    if importlib.util.find_spec("torchvision") is not None:
        beside = [sys.executable, "-c", "import torchvision"]
        if subprocess.run(beside, capture_output=True, check=False).returncode != 0:
            pytest.skip("torchvision is of another torch, and transformers imports it")
    monkeypatch.chdir(tmp_path)
    content = {"model_type": "bert", **TINY["bert"], **SIZES["bert"]}
    Path("config.json").write_text(json.dumps(content))
    plan = plan_run(
        load_settings(options={"run": {"samples": 5, "timeout_s": 200}}),
        workloads=["hf:config.json@b2-s16"],
        strategies=["backend:aot_eager"],
        trials=1,
        device="cpu",
    )
    trial = run_trial(plan.trials[0])
    assert trial.status is Status.OK, trial.failure
    assert (trial.workload.name, trial.workload.shape) == ("hf:config.json@b2-s16", {"sequence_length": 16})


def _spread(ready: Built) -> float:
    """Standard deviation of the first output."""
    with torch.no_grad():
        return float(next(iter(tensors_of(ready.model_or_fn(*ready.inputs)))).float().std())
