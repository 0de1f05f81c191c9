"""What of a record is its content: a trial that comes again is known by it."""

import hashlib
import json
import struct

from compilewatch.db.engine.tables import DETAIL_PARTS, SAMPLE_KINDS
from compilewatch.db.records.ids import recorded_build_identity
from compilewatch.db.records.trial import Trial
from compilewatch.db.store.trial_rows import trial_rows
from tests.builders import make_imported, make_trial

TRIALS = [
    make_trial(label='"; DROP TABLE trial; --\t\\N\n\\.', suite=None),
    make_trial(failure="crash"),
    make_imported(ended_at=None),
]


def test_every_field_of_a_record_is_part_of_its_content() -> None:
    """A field that is added to the record and forgotten in the content would let a changed record pass."""
    scalars = {
        "schema_",
        "trial_id",
        "run_id",
        "started_at",
        "ended_at",
        "suite",
        "label",
        "source",
        "status",
    }
    stack = {"workload", "strategy", "machine", "build"}
    assert set(Trial.model_fields) == scalars | stack | set(DETAIL_PARTS) | set(SAMPLE_KINDS)


def test_the_content_tells_any_two_different_records_apart() -> None:
    trial = make_trial(trial_id="one")
    others = [
        trial.model_copy(update=change)
        for change in (
            {"run_id": "another"},
            {"ended_at": None},
            {"suite": None, "label": "standard"},
            {"source": trial.source.model_copy(update={"name": "x"})},
            {"build": trial.build.model_copy(update={"label": "x"})},
            {"machine": trial.machine.model_copy(update={"name": "x"})},
            {"samples_ns": trial.samples_ns[:-1]},
            {"samples_ns": trial.samples_ns[:-1], "control_warmup_ns": trial.samples_ns[-1:]},
            {"memory": None},
            {"memory": trial.memory.model_copy(update={"peak_bytes": None})},
        )
    ]
    contents = [content(each) for each in (trial, trial, *others)]
    assert contents[0] == contents[1]
    assert len(set(contents)) == 1 + len(others)


def content(trial: Trial) -> str:
    stored: str = trial_rows(trial).row["content_hash"]
    return stored


def content_of(trial: Trial) -> str:
    """As releases stored it: written out, from one trial alone."""
    keys = trial_rows(trial).keys
    arrays = [(kind, values) for kind in SAMPLE_KINDS if (values := getattr(trial, kind))]
    began, ended = (at and at.isoformat().replace("+00:00", "Z") for at in (trial.started_at, trial.ended_at))
    told = [
        *(trial.schema_, trial.trial_id, trial.run_id, began, ended, trial.suite, trial.label),
        *(trial.source.kind, trial.source.name, trial.status),
        *(keys.machine, recorded_build_identity(trial.build), keys.workload, keys.strategy),
        *(trial.machine.name, trial.machine.device_uuid, trial.build.label),
        [(kind, 8 * len(values)) for kind, values in arrays],
    ]
    lines = []
    for name in DETAIL_PARTS:
        if (part := getattr(trial, name)) is not None:
            lines += [name, part.model_dump_json(exclude_defaults=True)]
    written = [json.dumps(told, separators=(",", ":"), ensure_ascii=False), "\n".join(lines)]
    raw = [struct.pack(f"<{len(values)}q", *values) for _, values in arrays]
    return hashlib.sha256(b"\n".join([*map(str.encode, written), *raw])).hexdigest()[:32]


def test_the_content_is_the_one_that_earlier_releases_stored() -> None:
    """Otherwise a trial that is sent again would be compared with what is stored field by field."""
    few = [*TRIALS, make_trial(warmup_ns=[]), make_trial(samples_ns=[5], control_samples_ns=[])]
    many = [trial.model_copy(update={"trial_id": f"t{n}"}) for n in range(7) for trial in few]
    assert [*map(content, many)] == [*map(content_of, many)]
