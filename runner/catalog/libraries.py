"""Models of installed libraries by name: `hf:gpt2`, `timm:resnet50@b32-i224`, `torchvision:vit_b_16`.

Imports neither the libraries nor torch: names and sizes are read from their source files, and a model of
transformers from its configuration alone. Nothing is downloaded, and no code of a model's repository runs.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from compilewatch.db.errors import CompilewatchError, ConfigError, NotFoundError, nearest, one_line
from compilewatch.runner.catalog.definition import WorkloadDefinition, sequence_tokens

BATCH_SIZE = 8
SEQUENCE_LENGTH = 128
IMAGE_SIZE = 224
_BUILDERS = "compilewatch.runner.workloads.library_models"


LIBRARIES = {"hf": "transformers", "timm": "timm", "torchvision": "torchvision"}
"""The package of each prefix of names."""
_VISION = ("timm", "torchvision")
# A key that names code of a model's own repository (transformers, `trust_remote_code`). It is never followed.
_CODE_OF_A_REPOSITORY = frozenset({"auto_map", "custom_pipelines"})
_SIZE = re.compile(r"(?P<key>[bsi])(?P<size>[1-9]\d{0,6})|(?P<dtype>float(16|32|64)|bfloat16)")


def is_library_name(text: str) -> bool:
    """Whether `text` reads as a model of a library, such as `timm:resnet50`."""
    prefix, colon, model = text.partition(":")
    return bool(colon and model) and prefix in LIBRARIES


def extra_of(package: str) -> str:
    """The extra of compilewatch that installs `package`."""
    if package == "torchao":
        return "quantised"
    return "vision" if package in _VISION else "models"


def library_workload(name: str, root: Path) -> WorkloadDefinition:
    """The workload of `name`: `LIBRARY:MODEL`, then `@` and sizes such as `b8-s128-bfloat16`.

    A MODEL of `hf` is a file or folder below `root` with its `config.json`, a model of the local cache, or
    one whose configuration is the default of a class of transformers. Inference; nothing is imported.
    Raises ConfigError or NotFoundError with what is missing and the next step.
    """
    prefix, _, rest = name.partition(":")
    model, _, sizes = rest.partition("@")
    package = LIBRARIES[prefix]
    if importlib.util.find_spec(package) is None:
        raise ConfigError(
            f"{one_line(name)} needs {package}, which is not installed.",
            f"Install it with: pip install 'compilewatch[{extra_of(package)}]'",
        )
    base = _transformers_model(name, model, root) if prefix == "hf" else _vision_model(prefix, model)
    return _sized(replace(base, name=name, packages=(package,)), sizes)


def _sized(base: WorkloadDefinition, sizes: str) -> WorkloadDefinition:
    batch_size, shape, dtype = base.batch_size, dict(base.shape), base.dtype
    for part in sizes.split("-") if sizes else ():
        match = _SIZE.fullmatch(part)
        if match is None:
            raise ConfigError(
                f"{one_line(part)!r} is no size of a workload.",
                "Write @b8-s128-bfloat16: b is the batch size, s the sequence length, i the image size.",
            )
        if match["dtype"]:
            dtype = match["dtype"]
        elif match["key"] == "b":
            batch_size = int(match["size"])
        else:
            key = {"s": "sequence_length", "i": "image_size"}[match["key"]]
            if key not in shape:
                raise ConfigError(
                    f"{one_line(base.name)} has no {key}, so {part} means nothing for it.",
                    f"Its size is {', '.join(shape)}.",
                )
            shape[key] = int(match["size"])
    return replace(base, batch_size=batch_size, shape=shape, dtype=dtype)


def _of_images(target: str, summary: str, image_size: int, kwargs: dict[str, Any]) -> WorkloadDefinition:
    return WorkloadDefinition(
        name=target,
        summary=summary,
        target=f"{_BUILDERS}:{target}",
        batch_size=BATCH_SIZE,
        shape={"image_size": image_size},
        item="image",
        kwargs=kwargs,
    )


# timm and torchvision: a model is a function of their source that is registered by a decorator.

_DECORATORS = r"(?:^@[^\n]*\n(?:[ )][^\n]*\n)*)*"
_REGISTERED = re.compile(rf"^@register_model\b[^\n]*\n{_DECORATORS}^def (\w+)\(", re.MULTILINE)


def _vision_model(prefix: str, model: str) -> WorkloadDefinition:
    """A model of timm may be followed by a dot and the tag of its weights, of which only the sizes count."""
    registered = _registered_models(_folder(prefix))
    architecture = model.partition(".")[0] if prefix == "timm" else model
    if architecture not in registered:
        near = nearest(architecture, registered)
        raise NotFoundError(
            f"{prefix} has no model {one_line(model)!r}.",
            f"Did you mean {prefix}:{near[0]}?" if near else f"See the list of models of {prefix}.",
        )
    return _of_images(f"build_{prefix}", f"{model} of {prefix}", IMAGE_SIZE, {"model": model})


@functools.cache
def _registered_models(folder: Path) -> tuple[str, ...]:
    sources = (folder / "models").rglob("*.py")
    return tuple(sorted({name for file in sources for name in _REGISTERED.findall(_text(file))}))


def _folder(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")


# transformers: a model is its configuration.


@dataclass(frozen=True)
class _ConfigurationClass:
    """A class of transformers, as far as its source says what it is."""

    name: str
    model_type: str
    checkpoint: str | None
    """The published model that its defaults describe."""
    defaults: dict[str, Any] = field(hash=False)
    """The sizes among its fields."""


_CLASS = re.compile(rf"({_DECORATORS})^class (\w+)\([^\n]*\n", re.MULTILINE)
_CHECKPOINT = re.compile(r'checkpoint="([^"]+)"')
_MODEL_TYPE = re.compile(r'^    model_type = "([^"]+)"', re.MULTILINE)
_SIZE_FIELD = re.compile(
    r"^    (image_size|num_channels|vocab_size|max_position_embeddings|n_positions)\b[^\n=]*= (\d+)\s*$",
    re.MULTILINE,
)


@functools.cache
def _configuration_classes(folder: Path) -> tuple[_ConfigurationClass, ...]:
    """Every configuration of a model that the transformers in `folder` has."""
    classes = []
    for file in sorted((folder / "models").glob("*/configuration_*.py")):
        text = _text(file)
        starts = list(_CLASS.finditer(text))
        for match, following in zip(starts, [*starts[1:], None], strict=True):
            body = text[match.end() : following.start() if following else len(text)]
            model_type = _MODEL_TYPE.search(body)
            if model_type is None:
                continue
            checkpoint = _CHECKPOINT.search(match[1])
            defaults = {key: int(value) for key, value in _SIZE_FIELD.findall(body)}
            classes.append(
                _ConfigurationClass(match[2], model_type[1], checkpoint and checkpoint[1], defaults)
            )
    return tuple(classes)


def _transformers_model(name: str, model: str, root: Path) -> WorkloadDefinition:
    """From a file, the cache or the defaults of a class, in this order."""
    file = _configuration_file(model, root)
    if file is None:
        defaults = _class_of(name, model)
        summary = f"defaults of {defaults.name} of transformers"
        config: dict[str, Any] = {"model_type": defaults.model_type}
        return _of_configuration(name, summary, config, defaults.defaults)
    config = _read_configuration(name, file)
    return _of_configuration(name, "from its configuration, with random weights", config, config)


def _configuration_file(model: str, root: Path) -> Path | None:
    """The file below `root`, or that of the local cache, where there is one."""
    for file in (root / model, root / model / "config.json"):
        if file.suffix == ".json" and file.is_file():
            return file
    if model.endswith(".json"):
        raise ConfigError(f"There is no file {one_line(model)} in {root}.", "Check the path.")
    # huggingface_hub takes a while to import, and most plans have no name of this library.
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        cached = try_to_load_from_cache(model, "config.json")
    except HFValidationError as error:
        raise ConfigError(
            f"{one_line(model)!r} is no name of a model.", "Write hf:bert-base-uncased or hf:ORG/MODEL."
        ) from error
    return Path(cached) if isinstance(cached, str) else None


def _read_configuration(name: str, file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(
            f"The configuration {file} of {one_line(name)} cannot be read: {one_line(str(error))}.",
            "Put the config.json of the model there.",
        ) from error
    known = {each.model_type for each in _configuration_classes(_folder("transformers"))}
    model_type = content.get("model_type") if isinstance(content, dict) else None
    if not isinstance(model_type, str) or model_type not in known:
        raise ConfigError(
            f"The installed transformers has no model of type {one_line(str(model_type))!r} ({file}).",
            "Install a release that has it; code from a model's repository is never run.",
        )
    return {key: value for key, value in content.items() if key not in _CODE_OF_A_REPOSITORY}


def _class_of(name: str, model: str) -> _ConfigurationClass:
    """The class whose defaults describe `model`: by type, or by the checkpoint it documents."""
    classes = _configuration_classes(_folder("transformers"))
    short = {each: (each.checkpoint or "").rpartition("/")[2] for each in classes}
    matches = [each for each in classes if model == each.model_type]
    matches = matches or [each for each in classes if model in (each.checkpoint, short[each])]
    if matches:
        # Of a model of several parts, the class of the whole is the last in its file.
        return matches[-1]
    near = nearest(model, filter(None, short.values()))
    hint = f"Did you mean hf:{near[0]}? " if near else ""
    raise NotFoundError(
        f"The configuration of {one_line(name)} is neither in the cache nor a default of transformers.",
        f"{hint}`hf download {one_line(model)} config.json` fetches it; a file does as well: hf:config.json.",
    )


def _of_configuration(
    name: str, summary: str, config: dict[str, Any], sizes: dict[str, Any]
) -> WorkloadDefinition:
    """`sizes` are fields of the configuration or defaults of its class."""
    if "vocab_size" in sizes:
        limits = (sizes.get(key) for key in ("max_position_embeddings", "n_positions"))
        length = min([SEQUENCE_LENGTH, *(limit for limit in limits if isinstance(limit, int) and limit > 0)])
        return WorkloadDefinition(
            name=name,
            summary=summary,
            target=f"{_BUILDERS}:build_hf",
            batch_size=BATCH_SIZE,
            shape={"sequence_length": length},
            item="token",
            count_items=sequence_tokens,
            kwargs={"config": config},
        )
    if "image_size" in sizes or "num_channels" in sizes:
        size = sizes.get("image_size")
        return _of_images(
            "build_hf", summary, size if isinstance(size, int) else IMAGE_SIZE, {"config": config}
        )
    raise CompilewatchError(
        f"{one_line(name)} takes neither tokens nor images alone, so its inputs are not known.",
        "Write a builder for it: docs/workloads.md.",
    )
