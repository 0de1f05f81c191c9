"""TensorRT's `trtexec --exportTimes`: the times of every inference, in ms.

Shape: NVIDIA/TensorRT samples/common/sampleReporting.cpp (`exportJSONTrace`), of which
tools/tracer.py reads the older keys. The latency is that of the tool: input, compute and output.

Every inference is a sample; the median of the compute time alone is kept beside. Not taken: the moments of
each inference. To name: torch, GPU, dtype and moment; `--workload`.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from compilewatch.db.interchange.files.fields import NS_PER_MS, Place, json_documents
from compilewatch.db.interchange.files.foreign_trials import ForeignResult, engine
from compilewatch.db.interchange.files.opening import InputFile
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.interchange.sources.serving import named
from compilewatch.db.records.trial import Summary, Task


def read(file: InputFile, options: ImportOptions) -> Iterator[ForeignResult]:
    """One trial of all inferences. Raises RecordError naming file and field."""
    place, times = Place(file.shown), list(json_documents(file))
    samples = [each.duration_ns("latencyMs", NS_PER_MS) for each in times]
    compute = [figure for each in times if (figure := each.number("computeMs")) is not None]
    known = [sample for sample in samples if sample is not None]
    if len(known) < len(samples):
        times[samples.index(None)].fail("latencyMs", "is missing")
    if not known:
        raise place.error("the document", "has no inference")
    yield ForeignResult(
        place=place,
        workload=named(None, file, options),
        strategy=engine("tensorrt"),
        raw={"latencyMs": known},
        stated={"device": "cuda"},
        assumed={"task": Task.INFERENCE},
        parts={
            "samples_ns": known,
            "summary": Summary(
                latency_ns=round(median(known)),
                n=len(known),
                metrics={"GPU compute time (ms)": median(compute)} if compute else {},
            ),
        },
    )
