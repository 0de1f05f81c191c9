"""What is judged or computed over many trials: comparisons and break-even. Shapes are the command line's."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pandas as pd

from compilewatch.dashboard.api.queries import Values, filters_in
from compilewatch.dashboard.api.representation import Answer, object_schema
from compilewatch.dashboard.links.values import JsonSchema
from compilewatch.dashboard.read.database import in_force
from compilewatch.db.engine.session import Database
from compilewatch.db.errors import ConfigError, NotFoundError
from compilewatch.db.judge.history.machine import EventGroup
from compilewatch.db.judge.results import ChangeEvent, Comparison, Row, Tally
from compilewatch.db.metrics.case_modes import with_strategies
from compilewatch.db.metrics.cases import summarize_cases
from compilewatch.db.metrics.eligibility import without_canaries
from compilewatch.db.queries.causes import explanation_documents, explanations
from compilewatch.db.queries.run_parts import of_newest_builds
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.units import NEVER
from compilewatch.db.verdicts import gateway
from compilewatch.db.verdicts.case_rows import SCHEMA as BREAK_EVEN_SCHEMA
from compilewatch.db.verdicts.case_rows import break_even_document, break_even_rows
from compilewatch.db.verdicts.sides import resolve_sides
from compilewatch.db.verdicts.steps import SCHEMA as CHANGES_SCHEMA
from compilewatch.db.verdicts.steps import machine_steps

COMPARE_SCHEMA = "compilewatch.compare/1"

# One row of `db.verdicts.case_rows`.
_BREAK_EVEN_ROW: dict[str, JsonSchema] = {
    "workload": {"type": "string"},
    "workload_id": {"type": "string", "description": "Tells workloads of one name apart."},
    "task": {"type": "string"},
    "batch_size": {"type": ["integer", "null"]},
    "shape": {"type": "object", "additionalProperties": {"type": "integer"}},
    "dtype": {"type": "string"},
    "machine": {"type": "string"},
    "machine_id": {"type": "string"},
    "torch": {"type": ["string", "null"]},
    "build_id": {"type": "string", "description": "The machine's newest build, or the requested one."},
    "source_kind": {"type": "string", "description": "measured or imported"},
    "source_name": {"type": "string", "description": "Who measured it, or the format it was imported from."},
    "timing_method": {"type": ["string", "null"], "description": "host, gated, cupti or ungated"},
    "strategy": {"type": "string"},
    "throughput_per_s": {"type": ["number", "null"]},
    "control_throughput_per_s": {"type": ["number", "null"], "description": "Of the eager beside it."},
    "item": {"type": ["string", "null"], "description": "What is counted: image, token, sample, step."},
    "break_even_steps": {"type": ["integer", "string", "null"], "description": f'steps, or "{NEVER}"'},
    "break_even_interval": {"enum": ["bounded", "open", "never", "none", None]},
    "break_even_low_steps": {"type": ["integer", "null"]},
    "break_even_high_steps": {"type": ["integer", "null"]},
    "break_even_time_ns": {"type": ["number", "null"]},
    "break_even_price": {"type": ["number", "null"]},
    "total_ns": {"type": ["number", "null"]},
    "chosen": {"type": "boolean"},
    "fastest_from_steps": {"type": ["integer", "null"]},
    "reason": {"type": ["string", "null"], "description": "Why it never pays off or has no figures."},
}


def _comparison(database: Database, values: Values) -> Comparison:
    """The verdict on `head` against `base`; raises what `resolve_sides` and the judge raise."""
    try:
        sides = resolve_sides(values["base"], values["head"], database, values["machine"])
    except ConfigError as error:
        # A name with "=" in it whose first half is no component: there is no such side.
        raise NotFoundError(error.message, error.next_step) from error
    filters = filters_in({**values, "machine": ()})
    return gateway.compare(
        database,
        sides.base,
        sides.head,
        filters,
        machine_id=sides.machine_id,
        policy=in_force().policy,
        remarks=sides.remarks,
    )


def comparison_document(database: Database, comparison: Comparison) -> dict[str, Any]:
    """A comparison as JSON, with why its cases changed."""
    explained = explanation_documents(comparison, explanations(database, comparison))
    return {"schema": COMPARE_SCHEMA, **comparison.to_json(), "causes": explained}


def compare(database: Database, values: Values) -> Answer:
    """Two builds or runs, every matched case, every metric, as `compilewatch compare --json`."""
    document = comparison_document(database, _comparison(database, values))
    columns = ("workload", "strategy", *(name for name in Row.model_fields if name != "case"))
    return Answer(document, document["rows"], columns)


def compare_schema(_: Database) -> JsonSchema:
    schema = Comparison.model_json_schema(mode="serialization")
    # It has the name of its case beside it, so it is another schema than the row of a recorded regression.
    row = schema["$defs"].pop("Row")
    row["properties"] = {"workload": {"type": "string"}, "strategy": {"type": "string"}, **row["properties"]}
    properties = schema["properties"]
    schema["$defs"]["ComparedRow"] = row
    properties["rows"]["items"] = {"$ref": "#/$defs/ComparedRow"}
    properties["schema"] = {"const": COMPARE_SCHEMA}
    for counts in ("counts", "case_counts"):
        properties[counts] = {"type": "object", "additionalProperties": {"type": "integer"}}
    tally = Tally.model_json_schema(mode="serialization")
    schema["$defs"] |= {**tally.pop("$defs"), "Tally": tally}
    properties["tally"] = {"$ref": "#/$defs/Tally"}
    properties["policy"] = {"type": "object", "description": "Every threshold in force."}
    properties["causes"] = {
        "type": "array",
        "items": {"type": "object"},
        "description": "Why cases changed, as far as profiles show it, and what the compiler did.",
    }
    schema["required"] = sorted({*schema["required"], "schema", "counts", "case_counts", "tally", "causes"})
    return schema


def changes(database: Database, values: Values) -> Answer:
    """What changed on a machine as `compilewatch history --json`; as CSV a row for each series that moved."""
    steps = machine_steps(
        database, filters_in({**values, "machine": ()}), in_force().policy, machine=values["machine"]
    )
    document = steps.document()
    rows = [
        {"group_id": group["group_id"], **event} for group in document["groups"] for event in group["events"]
    ]
    return Answer(document, rows, ("group_id", *ChangeEvent.model_fields))


def changes_schema(_: Database) -> JsonSchema:
    group = EventGroup.model_json_schema(mode="serialization")
    definitions = group.pop("$defs")
    machine = object_schema({"id": {"type": "string"}, "name": {"type": "string"}})
    policy = {"type": "object", "description": "Every threshold in force."}
    schema = object_schema(
        {
            "schema": {"const": CHANGES_SCHEMA},
            "machine": machine,
            "sentence": {"type": "string"},
            "groups": {"type": "array", "items": {"$ref": "#/$defs/EventGroup"}},
            "policy": policy,
        }
    )
    return {**schema, "$defs": {**definitions, "EventGroup": group}}


def break_even(database: Database, values: Values) -> Answer:
    """Break-even and mode choice of every workload with the newest build of each machine, or with those asked
    for, as `compilewatch break-even --json`.
    """
    builds = of_newest_builds(database, filters_in({**values, "strategy": ()}))
    cases = (with_strategies(cases_of(database, each), values["strategy"]) for each in builds)
    hourly = None if values["price"] is None else Decimal(str(values["price"]))
    rows = [
        row for each in cases for row in break_even_rows(each, values["steps"], values["restarts"], hourly)
    ]
    document = break_even_document(rows, values["steps"], values["restarts"])
    return Answer(document, document["rows"], list(_BREAK_EVEN_ROW))


def cases_of(database: Database, filters: Filters) -> pd.DataFrame:
    """As `db.metrics.cases.summarize_cases` returns them, without canaries."""
    return summarize_cases(without_canaries(trials_frame(database, filters)))


def break_even_schema(_: Database) -> JsonSchema:
    return object_schema(
        {
            "schema": {"const": BREAK_EVEN_SCHEMA},
            "trials_of": {"const": "build"},
            "steps": {"type": "integer"},
            "restarts_per_day": {"type": "integer"},
            "rows": {"type": "array", "items": object_schema(_BREAK_EVEN_ROW)},
        }
    )
