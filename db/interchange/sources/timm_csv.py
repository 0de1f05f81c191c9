"""timm (pytorch-image-models) benchmark CSV: one file per setting, eager and `-dynamo` side by side.

Written by its `benchmark.py`; what was measured stands only in the file's name, for example
`benchmark-infer-amp-nchw-pt291-cu128-4090-dynamo.csv`. A lone file under a name that is not timm's does not
say whether it was compiled. `*_step_time` is ms per batch. `-dynamo` files were
measured with `torch.compile(model, backend="inductor", mode=None)`, torch's default mode.

A compiled row has a control only where the eager file has the same model, image size and batch: some
published pairs differ in batch, and then there is no speedup to speak of.

Not taken: samples, memory, compile cost. To name: the moment; GPUs that the name abbreviates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from compilewatch.db.interchange.files.fields import NS_PER_MS, Fields, Place, csv_header, csv_rows
from compilewatch.db.interchange.files.foreign_trials import (
    ForeignResult,
    compiled,
    cuda_facts,
    with_controls,
)
from compilewatch.db.interchange.files.opening import InputFile
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.trial import Strategy, Summary, Task
from compilewatch.db.units import plural

_NAME = re.compile(
    r"benchmark-(?P<kind>infer|train)-(?P<dtype>[a-z0-9_]+)-(?P<layout>nchw|nhwc)-pt(?P<torch>\d{3,4})"
    r"-(?P<variant>cu\d{3}|cpu)-(?P<device>[a-z0-9_]+?)(?P<compiled>-dynamo)?\.csv"
)
# What a renamed file of theirs still says of the release that it was measured with.
_TORCH = re.compile(r"(?<![a-z0-9])pt(?P<torch>\d{3,4})-(?P<variant>cu\d{3}|cpu)(?![a-z0-9])")
# Tokens in the names of timm's result files, as torch.cuda.get_device_name() spells these cards.
_GPUS = {
    **{card: f"NVIDIA GeForce RTX {card}" for card in ("3090", "4090", "5090")},
    "pro6000maxq": "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",
}
_TASKS = {"infer": Task.INFERENCE, "train": Task.TRAINING}
_Key = tuple[str, str | None, str | None]


def read(file: InputFile, options: ImportOptions) -> Iterator[ForeignResult]:
    """Trials of the file and, where its eager or compiled partner lies beside it, of both.

    Of rows that repeat model, image size and batch the first counts, and a sentence counts the others. Raises
    RecordError.
    """
    eager, dynamo = _pair(file)
    yield from with_controls(
        [
            ((prefix, _key(row)), _result(row, part, _TASKS[prefix]))
            for part in filter(None, (eager, dynamo))
            for prefix in _prefixes(part)
            for row in _first_rows(part, prefix, options)
        ]
    )


def _pair(file: InputFile) -> tuple[InputFile | None, InputFile | None]:
    """(eager file, compiled file); one whose name does not tell which it is stands first."""
    stem = file.name.removesuffix(".csv")
    if stem.endswith("-dynamo"):
        return file.sibling(stem.removesuffix("-dynamo") + ".csv"), file
    return file, file.sibling(stem + "-dynamo.csv")


def _prefixes(file: InputFile) -> list[str]:
    """Of the columns: `--bench both` writes inference and training side by side."""
    if not (prefixes := column_prefixes(csv_header(file))):
        raise Place(file.shown, 1).error("the header", "has no *_step_time column")
    return prefixes


def _first_rows(file: InputFile, prefix: str, options: ImportOptions) -> Iterator[Fields]:
    keys: set[_Key] = set()
    repeats = 0
    for row in csv_rows(file):
        unprefixed = {name.removeprefix(f"{prefix}_"): cell for name, cell in row.data.items()}
        fields = Fields(row.place, unprefixed)
        if _key(fields) in keys:
            repeats += 1
            continue
        keys.add(_key(fields))
        yield fields
    if repeats:
        options.note(
            f"{file.shown}: {plural(repeats, 'row')} with model, image size and batch of another left out."
        )


def column_prefixes(header: list[str]) -> list[str]:
    """Those of `infer` and `train` of which the file has step times."""
    return [prefix for prefix in _TASKS if f"{prefix}_step_time" in header]


def _key(row: Fields) -> _Key:
    return row.required_text("model"), row.text("img_size"), row.text("batch_size")


def _result(row: Fields, file: InputFile, task: Task) -> ForeignResult:
    image = row.count("img_size")
    batch = row.count("batch_size") or None
    summary = Summary(
        latency_ns=row.duration_ns("step_time", NS_PER_MS),
        throughput_per_s=row.number("samples_per_sec"),
        metrics=row.figures(("param_count", "gmacs", "macts")),
    )
    if summary.latency_ns is None:
        row.fail("step_time", "is missing")
    return ForeignResult(
        place=row.place,
        workload=row.required_text("model"),
        strategy=_strategy(file),
        raw=dict(row.data),
        stated={"batch_size": batch, "task": task},
        named=_file_name_facts(file.name),
        device_word=match["device"] if (match := _NAME.fullmatch(file.name)) else None,
        shape={"image_size": image} if image else {},
        item="image",
        items_per_iteration=batch,
        parts={"summary": summary},
    )


def _strategy(file: InputFile) -> Strategy | None:
    """By the file's name, or that of its partner; None where neither tells it."""
    match = _NAME.fullmatch(file.name)
    stem = file.name.removesuffix(".csv")
    if stem.endswith("-dynamo"):
        strategy = compiled("default", backend="inductor", mode="default")
    elif match or file.sibling(stem + "-dynamo.csv"):
        strategy = EAGER
    else:
        return None
    if not match or match["layout"] != "nhwc":
        return strategy
    return strategy.model_copy(
        update={"name": f"{strategy.name}+channels-last", "options": {"memory_format": "channels_last"}}
    )


def _file_name_facts(name: str) -> dict[str, Any]:
    release = _TORCH.search(name)
    if release is None:
        return {}
    facts: dict[str, Any] = {
        "torch": _version(release["torch"]),
        "torch_variant": release["variant"],
        "device": "cpu" if release["variant"] == "cpu" else "cuda",
        **cuda_facts(release["variant"]),
    }
    if (match := _NAME.fullmatch(name)) is not None:
        card = match["device"].removeprefix("rtx")
        facts |= {"dtype": match["dtype"], "device_name": _GPUS.get(card)}
    return facts


def _version(digits: str) -> str:
    """ "291" is 2.9.1, "2100" is 2.10.0; of torch 1 the names have no patch level: "113" is 1.13."""
    return f"1.{digits[1:]}" if digits[0] == "1" else f"{digits[0]}.{digits[1:-1]}.{digits[-1]}"
