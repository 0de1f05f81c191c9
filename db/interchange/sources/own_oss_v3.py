"""Our own OSS v3 export read back: equal in all that the format holds.

`extra_info` has the whole setting of a trial and its ids. Samples, phases of the cold start, reasons of graph
breaks and evidence of the machine do not go out in that format and so do not come back.
"""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from compilewatch.db.interchange.files.fields import BYTES_PER_GB, Fields, Place, load_json, moment
from compilewatch.db.interchange.sources.dynamo_metrics import outcome
from compilewatch.db.records.fields import Record
from compilewatch.db.records.trial import (
    Build,
    Failure,
    FailureKind,
    Machine,
    Memory,
    Numerics,
    NumericsStatus,
    Source,
    SourceKind,
    Status,
    Strategy,
    Summary,
    Trial,
    Workload,
)
from compilewatch.db.records.validation import problem

SETTING = "compilewatch_setting"
"""Workload, strategy, machine and build of a trial, as JSON in `benchmark.extra_info`."""
FIELD = "compilewatch_field"
"""Of a metric: which field of ours it is, where its name does not tell."""
_PARTS: dict[str, type[Record]] = {
    "workload": Workload,
    "strategy": Strategy,
    "machine": Machine,
    "build": Build,
}
_PEAKS = ("peak_bytes", "peak_with_compile_bytes", "peak_rss_bytes")


def is_own(fields: Fields) -> bool:
    """Whether a record holds the setting of a trial of ours."""
    return SETTING in fields.part("benchmark").part("extra_info").data


def read_trial(fields: Fields, metrics: dict[str, Fields], values: dict[str, float], source: str) -> Trial:
    """The trial whose records have `fields` in common: `metrics` by name, `values` of those with a number.

    Its version says by which format it came, so that it continues no measured series. Raises RecordError.
    """
    info = fields.part("benchmark").part("extra_info")
    name = info.name_of(SETTING)
    setting = load_json(info.required_text(SETTING, 100_000).encode(), Place(f"{fields.place}: {name}"))
    if not isinstance(setting, dict) or setting.keys() != _PARTS.keys():
        fields.fail(name, f"must hold {', '.join(_PARTS)}")
    try:
        parts: dict[str, Any] = {key: kind.model_validate(setting[key]) for key, kind in _PARTS.items()}
        workload: Workload = parts["workload"]
        prefix = f"imported-{source}"
        if not workload.version.startswith(prefix):
            version = f"{prefix}-{workload.version}"[:200]
            parts["workload"] = workload.model_copy(update={"version": version})
        started_at = moment(info, "started_at")
        if started_at is None:
            info.fail("started_at", "is missing")
        outcome_, failure = _outcome(fields, metrics, values, parts["machine"].device)
        return Trial(
            trial_id=info.required_text("trial_id"),
            run_id=info.required_text("run_id"),
            started_at=started_at,
            suite=info.text("suite"),
            label=info.text("label"),
            source=Source(kind=SourceKind.IMPORTED, name=source),
            status=Status.FAILED if failure else Status.OK,
            failure=failure,
            **parts,
            **outcome_,
        )
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise fields.place.error(".".join(map(str, (name, *first["loc"]))), problem(first)) from error


def _outcome(
    fields: Fields, metrics: dict[str, Fields], values: dict[str, float], device: str
) -> tuple[dict[str, Any], Failure | None]:
    told = {key: metric.part("extra_info") for key, metric in metrics.items()}
    own = {key: value for key, value in values.items() if told[key].data.get(FIELD) == "metrics"}
    figures = {key: value for key, value in values.items() if key not in own and key != "compression_ratio"}
    row = Fields(fields.place, figures, f"{fields.path}.metric")
    parts, _ = outcome(row, None, device=device, peak_unit=BYTES_PER_GB)
    summary: Summary | None = parts.get("summary")
    if summary is not None:
        parts["summary"] = summary.model_copy(update={"metrics": own})
    control = row.scaled("eager_peak_mem", BYTES_PER_GB)
    peak = row.scaled("dynamo_peak_mem", BYTES_PER_GB)
    which = told["dynamo_peak_mem"].text(FIELD) if "dynamo_peak_mem" in told else None
    sizes = {which: peak} if which in _PEAKS and which else {}
    known = sizes or control is not None
    parts["memory"] = Memory.model_validate(sizes | {"control_peak_bytes": control}) if known else None
    accuracy = told.get("accuracy", Fields(fields.place, {}))
    status, kind = accuracy.text("numerics_status"), accuracy.text("failure_kind")
    parts["numerics"] = Numerics(status=NumericsStatus(status)) if status in set(NumericsStatus) else None
    if kind is None:
        return parts, None
    if kind not in set(FailureKind):
        accuracy.fail("failure_kind", "is no kind of failure")
    message = accuracy.text("failure", 10_000) or "The export does not say why."
    return {"numerics": parts["numerics"]}, Failure(kind=FailureKind(kind), message=message)
