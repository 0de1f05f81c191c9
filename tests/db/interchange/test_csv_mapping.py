"""Which column is which field: options before the configuration before names, and what is left over."""

from pathlib import Path

import pytest

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import RecordError
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.interchange.importing import import_paths
from compilewatch.db.records.trial import StrategyKind
from tests.db.interchange.reading import TOLD, read, read_told

OURS = "workload,strategy,dtype,batch_size,latency_ms\nm,eager,bfloat16,8,1.5\n"
USUAL = {"workload": "model", "strategy": "mode", "latency_ms": "compiled (ms)", "peak_gb": "memory"}


def write(folder: Path, text: str) -> Path:
    path = folder / "table.csv"
    path.write_text(text)
    return path


def test_a_mapped_column_leaves_the_others_their_names(tmp_path: Path) -> None:
    path = write(tmp_path, OURS.replace("latency_ms", "time"))
    (trial,) = read_told(path, columns={"latency_ms": "time"}, strategy="default")
    assert trial.strategy.name == "eager"
    assert (trial.workload.dtype, trial.workload.batch_size) == ("bfloat16", 8)


def test_an_option_outranks_the_configuration_and_that_a_name(tmp_path: Path) -> None:
    path = write(tmp_path, "workload,model,net,suite,latency_ms,peak_gb,memory\na,b,c,s,1,2,3\n")
    (named,) = read_told(path)
    assert named.workload.name == "a"
    (usual,) = read_told(path, usual_columns={"workload": "model", "peak_gb": "memory"})
    assert (usual.workload.name, usual.memory.peak_bytes, usual.suite) == ("b", 3_000_000_000, "s")
    (told,) = read_told(
        path, columns={"workload": "net"}, usual_columns={"workload": "model", "peak_gb": "memory"}
    )
    assert (told.workload.name, told.memory.peak_bytes) == ("c", 3_000_000_000)


def test_a_mapping_outranks_the_same_quantity_in_another_unit(tmp_path: Path) -> None:
    path = write(tmp_path, "workload,latency_ms,total\na,4,5\n")
    (trial,) = read_told(path, columns={"latency_us": "total"})
    assert trial.summary.latency_ns == 5_000


def test_a_column_that_is_said_to_mean_something_loses_its_own_name(tmp_path: Path) -> None:
    path = write(tmp_path, "workload,latency_ms,time\na,4,2\n")
    (trial,) = read_told(
        path, columns={"eager_latency_ms": "latency_ms", "latency_ms": "time"}, strategy=None
    )
    assert (trial.summary.latency_ns, trial.summary.control_latency_ns) == (2_000_000, 4_000_000)
    (eager,) = read_told(path, columns={"eager_latency_ms": "latency_ms"}, strategy=None)
    assert eager.strategy.name == "eager"


def test_the_configuration_leaves_a_file_with_our_names_readable(tmp_path: Path) -> None:
    (trial,) = read_told(write(tmp_path, OURS), usual_columns=USUAL)
    assert (trial.workload.name, trial.strategy.name) == ("m", "eager")
    (told,) = read_told(
        write(tmp_path, "net,t\nm,1\n"), usual_columns=USUAL, columns={"workload": "net", "latency_ms": "t"}
    )
    assert told.workload.name == "m"


def test_a_column_of_the_configuration_that_the_file_needs_and_lacks_is_said(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="line 1: model: is no column of this file, and workload is mapped"):
        read_told(write(tmp_path, "name,compiled (ms)\nm,1\n"), usual_columns=USUAL)


def test_an_option_for_a_column_that_the_file_lacks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        RecordError, match="line 1: precision: is no column of this file, and dtype is mapped"
    ):
        read_told(write(tmp_path, OURS), columns={"dtype": "precision"})


def test_meanings_are_of_the_files_that_have_the_column(tmp_path: Path) -> None:
    meanings = {"note": "suite", "other": "task", "dtype": "", "batch_size": "metric.batch_size"}
    (trial,) = read_told(write(tmp_path, OURS.replace("strategy", "note")), meanings=meanings)
    assert (trial.suite, trial.workload.dtype, trial.workload.batch_size) == ("eager", TOLD["dtype"], None)
    assert trial.summary.metrics == {"batch_size": 8}


def test_a_report_names_the_columns_that_are_no_field(tmp_path: Path, sqlite_database: Database) -> None:
    path = write(tmp_path, "workload,latency_ms,mode,,batch\nm,1,eager,0,8\n")
    for told in (TOLD, TOLD | {"strategy": None}):
        (file,) = import_paths(sqlite_database, [path], options=ImportOptions(**told), dry_run=True).files
        assert (file.unused, file.error is None) == (
            {"mode": "eager", "": "0", "batch": "8"},
            told["strategy"] is not None,
        )
    options = ImportOptions(**TOLD, columns={"strategy": "mode"})
    (stored,) = import_paths(sqlite_database, [path], options=options).files
    assert list(stored.unused) == ["", "batch"]
    assert stored.as_json()["unused_columns"] == ["", "batch"]


UNSAID = {name: value for name, value in TOLD.items() if name != "strategy"}


@pytest.mark.parametrize(
    "table",
    [
        "workload,latency_ms\nm,1\n",
        "workload,strategy,latency_ms\nm,,1\n",
        "workload,latency_ms,failure\nm,,out of memory\n",
    ],
)
def test_whether_it_was_compiled_is_asked_where_no_column_tells(tmp_path: Path, table: str) -> None:
    with pytest.raises(RecordError, match=r"table\.csv: does not say whether it was compiled\.") as raised:
        read(write(tmp_path, table), **UNSAID)
    assert raised.value.next_step == "Name it with --strategy eager."
    (trial,) = read(write(tmp_path, table), **UNSAID, strategy="reduce-overhead")
    assert trial.strategy.mode == "reduce-overhead"


@pytest.mark.parametrize(
    ("table", "strategies"),
    [
        ("workload,latency_ms,eager_latency_ms\nm,1,2\nn,1,\no,,2\n", ["compiled", "compiled", "eager"]),
        ("workload,latency_ms,speedup\nm,1,2\n", ["compiled"]),
    ],
)
def test_beside_eager_a_latency_is_that_of_a_compiled_result(
    tmp_path: Path, table: str, strategies: list[str]
) -> None:
    assert [trial.strategy.name for trial in read(write(tmp_path, table), **UNSAID)] == strategies


@pytest.mark.parametrize(
    ("word", "strategy"),
    [
        *((word, "eager") for word in ("eager", "Eager", "EAGER", "No", "False", "none", "0", "off")),
        *((word, "compiled") for word in ("True", "compiled", "1")),
        ("default", "default"),
        *((word, "eager") for word in ("Eager Mode", "PyTorch", "pytorch_eager", "baseline", "no-compile")),
        *(
            (word, "eager")
            for word in ("Torch-Eager", "PyTorch Eager Mode", "vanilla PyTorch", "w/o torch.compile")
        ),
        *((word, "eager") for word in ("non-compiled", "enforce-eager", "disabled", "compile=False")),
        *((word, "compiled") for word in ("torch.compile", "TorchCompile", "PyTorch compiled", "enabled")),
        *((word, "default") for word in ("torch.compile (default)", "torch_compile_default")),
        *((word, "reduce-overhead") for word in ("reduce_overhead", "compile-reduce-overhead")),
        ("max_autotune", "max-autotune"),
        *(
            (word, "reduce-overhead")
            for word in ('torch.compile(mode="reduce-overhead")', "Compiled (reduce overhead)")
        ),
        *((word, "inductor") for word in ("Inductor", "TorchInductor", "torch.compile (inductor)")),
        *((word, "eager") for word in ("Baseline (eager)", "eager_baseline", "PyTorch 2 eager")),
        *((word, "compiled") for word in ("with torch.compile", "w/ compile", "PT2")),
        *((word, "inductor") for word in ("dynamo+inductor", "pt2_inductor")),
        *((word, "onnxruntime") for word in ("ONNX Runtime", "onnxruntime-gpu")),
        *((word, "cudagraphs") for word in ("CUDA graphs", "CUDA Graph", "cudagraphs backend")),
    ],
)
def test_words_for_the_ways_of_executing(tmp_path: Path, word: str, strategy: str) -> None:
    (trial,) = read(write(tmp_path, f"workload,strategy,latency_ms\nm,{word},1\n"), **UNSAID)
    assert trial.strategy.name == strategy


def test_an_engine_of_its_own_is_not_what_torch_compiled(tmp_path: Path) -> None:
    table = "workload,strategy,latency_ms\nm,ORT,1\nm,TensorRT,1\nm,AOTI,1\n"
    kinds = {trial.strategy.name: trial.strategy.kind for trial in read(write(tmp_path, table), **UNSAID)}
    assert kinds == dict.fromkeys(("onnxruntime", "tensorrt", "aotinductor"), StrategyKind.EXPORT)


@pytest.mark.parametrize(
    "word",
    ["Torch-TensorRT", "PyTorch default", "pytorch cudagraphs", "torch.jit", "base", "eager + CUDA graphs"],
)
def test_what_may_be_eager_as_well_is_asked_for(tmp_path: Path, word: str) -> None:
    with pytest.raises(RecordError, match="is no word that is known"):
        read(write(tmp_path, f"workload,strategy,latency_ms\nm,{word},1\n"), **UNSAID)


def test_an_unknown_word_is_asked_for_and_a_known_one_outranks_what_is_said(tmp_path: Path) -> None:
    path = write(tmp_path, "workload,strategy,latency_ms\nm,fast path,1\nm,baseline,2\n")
    with pytest.raises(RecordError, match=r"table\.csv, line 2: strategy: fast path") as raised:
        read(path, **UNSAID)
    assert raised.value.next_step is not None
    assert '--map "fast path=eager"' in raised.value.next_step
    for meant, kind in (("fast", StrategyKind.COMPILE), ("eager", StrategyKind.EAGER)):
        notes: list[str] = []
        words = {"Fast_Path": meant, "baseline": "compiled"}
        fast, eager = read(path, **UNSAID, words=words, notes=notes)
        assert (fast.strategy.name, fast.strategy.kind, eager.strategy.name) == (meant, kind, "eager")
        assert len(notes) == 1
        assert "--map baseline=compiled is not used" in notes[0]
