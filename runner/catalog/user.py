"""Workloads of the configuration and of the command line -> definitions, sweeps expanded."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
from pathlib import Path
from typing import TYPE_CHECKING

from compilewatch.db.errors import ConfigError, NotFoundError, did_you_mean
from compilewatch.runner.catalog.builtin import WORKLOADS
from compilewatch.runner.catalog.definition import WorkloadDefinition, sequence_tokens
from compilewatch.runner.catalog.libraries import is_library_name, library_workload
from compilewatch.runner.catalog.targets import is_target, locate_module, returned_task, split_target

if TYPE_CHECKING:
    from compilewatch.db.records.trial import Task
    from compilewatch.runner.config.settings import Settings, WorkloadSettings


def user_workloads(settings: Settings) -> dict[str, WorkloadDefinition]:
    """Every [[workload]] of the configuration by name, one for each value of a sweep.

    Raises ConfigError when a target is neither "module:function" nor a built-in workload, or two
    workloads end up with one name.
    """
    definitions: dict[str, WorkloadDefinition] = {}
    for entry in settings.workload:
        for definition in _sweep(entry, settings):
            if definition.name in definitions:
                _require_each_once(entry)
                raise ConfigError(f"Two workloads are named {definition.name!r}.", "Rename one of them.")
            definitions[definition.name] = definition
    return definitions


def _require_each_once(entry: WorkloadSettings) -> None:
    """Raises ConfigError for a list of `entry` that has a value twice: it would make two workloads of it."""
    lists = {name: getattr(entry, name) for name in ("batch_size", "ranks", "dtype", "variants")}
    for name, values in {**lists, **entry.shape}.items():
        listed = values if isinstance(values, tuple) else ()
        twice = next((each for each in listed if listed.count(each) > 1), None)
        if twice is not None:
            problem = f"{name} of [[workload]] {entry.name!r} has {twice} more than once."
            raise ConfigError(problem, "List each value once.")


def sweep_names(settings: Settings) -> dict[str, tuple[str, ...]]:
    """What each [[workload]] entry that lists sizes makes: its name -> those of its workloads."""
    names_of = {
        entry.name: tuple(each.name for each in _sweep(entry, settings)) for entry in settings.workload
    }
    return {name: names for name, names in names_of.items() if names != (name,)}


def user_target(target: str, settings: Settings) -> WorkloadDefinition:
    """The workload of `--workload module:function`: in float32 at the function's own size, of the task of
    `[run]` or else of what the function returns.
    """
    path = (str(settings.project_root),)
    definition = WorkloadDefinition(name=target, target=target, summary="from the command line", path=path)
    return _with_task(definition, settings.run.task)


def _with_task(definition: WorkloadDefinition, task: Task | None) -> WorkloadDefinition:
    """Of `task`, else as the source of the builder shows it, and else open until it is called."""
    if task is None and is_target(definition.target):
        shown = None
        # A file that is missing or cannot be read is named where its workload is measured.
        with contextlib.suppress(ConfigError):
            file = locate_module(split_target(definition.target)[0], definition.path)
            shown = returned_task(definition.target, file)
        return dataclasses.replace(definition, task=shown or definition.task, task_is_open=True)
    return dataclasses.replace(definition, task=task or definition.task)


def _base(entry: WorkloadSettings, root: Path) -> WorkloadDefinition:
    """`entry` with its target resolved and everything but batch size and shape filled in."""
    path = (str(root), *(str((root / extra).resolve()) for extra in entry.path))
    if is_library_name(entry.target):
        base = dataclasses.replace(library_workload(entry.target, root), name=entry.name)
    elif is_target(entry.target):
        named = WorkloadDefinition(
            name=entry.name, target=entry.target, summary="from the configuration", path=path
        )
        base = _with_task(named, entry.task)
    elif entry.target in WORKLOADS:
        base = dataclasses.replace(WORKLOADS[entry.target], name=entry.name, items_per_iteration=None)
    else:
        raise NotFoundError(
            f"Workload {entry.name!r} has target {entry.target!r}, neither module:function nor built in.",
            did_you_mean(entry.target, WORKLOADS, "`compilewatch list workloads` shows the built-in ones."),
        )
    return dataclasses.replace(
        base,
        task=entry.task or base.task,
        item=entry.item or base.item,
        kwargs={**base.kwargs, **entry.kwargs},
        regions=entry.regions,
        reason=entry.reason,
        has_regions=base.has_regions or bool(entry.regions),
    )


def _sweep(entry: WorkloadSettings, settings: Settings) -> list[WorkloadDefinition]:
    """One definition for each combination of the listed sizes; the name says the values that vary."""
    base = _base(entry, settings.project_root)
    batch_sizes = entry.batch_size if isinstance(entry.batch_size, tuple) else (entry.batch_size,)
    dtypes = entry.dtype if isinstance(entry.dtype, tuple) else (entry.dtype,)
    sizes: dict[str, int | tuple[int, ...]] = {**base.shape, **entry.shape}
    listed = {key: value for key, value in sizes.items() if isinstance(value, tuple)}
    ranks = entry.ranks if isinstance(entry.ranks, tuple) else (entry.ranks,)
    variants = entry.variants or (None,)
    number = math.prod(map(len, (batch_sizes, ranks, dtypes, variants, *listed.values())))
    settings.limits.require("sweeps", number)
    definitions = []
    points = [dict(zip(listed, values, strict=True)) for values in itertools.product(*listed.values())]
    combinations = itertools.product(batch_sizes, points, ranks, dtypes, variants)
    for batch_size, point, world_size, dtype, variant in combinations:
        name = entry.name + (f"-b{batch_size}" if len(batch_sizes) > 1 else "")
        name += "".join(f"-{_SHORT.get(key, key)}{value}" for key, value in point.items())
        name += f"-r{world_size}" if len(ranks) > 1 else ""
        name += f"-{dtype}" if len(dtypes) > 1 else ""
        name += f"-{variant}" if variant else ""
        shape = {key: value for key, value in sizes.items() if not isinstance(value, tuple)} | point
        sized = dataclasses.replace(
            base, name=name, batch_size=batch_size or base.batch_size, shape=shape, ranks=world_size
        )
        is_swept = len(batch_sizes) > 1 or len(ranks) > 1 or bool(listed)
        items = _items(entry, sized, is_swept=is_swept)
        of_variant = _DTYPES.get(variant or "", dtype or base.dtype)
        definitions.append(
            dataclasses.replace(sized, dtype=of_variant, variant=variant, items_per_iteration=items)
        )
    return definitions


def _items(entry: WorkloadSettings, sized: WorkloadDefinition, *, is_swept: bool) -> float | None:
    """What one iteration works off; None for what its definition counts, or the batch size."""
    given, sizes = entry.items_per_iteration, {"batch_size": sized.batch_size, **sized.shape}
    if given is None:
        if sized.count_items is not None or sized.item.removesuffix("s") != "token":
            return None
        if "sequence_length" in sized.shape:
            return sequence_tokens(sized) * (sized.ranks or 1)
        raise ConfigError(
            f"How many tokens one iteration of [[workload]] {entry.name!r} works off is not known.",
            'Name sizes that multiply to it, such as items_per_iteration = ["batch_size"], or give a number.',
        )
    if isinstance(given, tuple):
        factors = [sizes.get(name) for name in given]
        if None in factors or not factors:
            known = ", ".join(name for name, size in sizes.items() if size is not None)
            unknown = ", ".join(name for name in given if sizes.get(name) is None)
            raise ConfigError(
                f"items_per_iteration of [[workload]] {entry.name!r} names {unknown or 'nothing'}.",
                f"Its sizes are {known}." if known else "Give a number.",
            )
        return math.prod(filter(None, factors)) * (sized.ranks or 1)
    if is_swept:
        raise ConfigError(
            f"items_per_iteration of [[workload]] {entry.name!r} is one number, and its sizes are lists.",
            'Name the sizes that multiply to it, such as ["batch_size", "sequence_length"].',
        )
    return given


# What a variant computes in besides what is quantised.
_DTYPES = {"float32": "float32", "bf16": "bfloat16", "int8": "float32", "fp8": "bfloat16"}
_SHORT = {"sequence_length": "s"}
