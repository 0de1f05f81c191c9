"""The list of PyTorch's expected accuracy, written from results that came in."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import CompilewatchError
from compilewatch.db.interchange.exporting import export
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.interchange.importing import import_paths
from compilewatch.db.queries.selection import Filters
from tests.db.interchange.reading import TOLD

ROWS = ("name,accuracy,graph_breaks", "BERT,pass,0", "T5,fail_to_run,5", "XLNet,eager_1st_run_OOM,0")
LIST = "".join(f"{row}\n\n\n\n" for row in ROWS)


def exported(database: Database, filters: Filters = Filters()) -> tuple[str, list[str]]:  # noqa: B008
    output, notes = io.BytesIO(), list[str]()
    export(database, filters, format="dynamo-expected", output=output, notes=notes)
    return output.getvalue().decode(), notes


def bring(database: Database, path: Path, text: str) -> None:
    path.write_text(text)
    assert import_paths(database, [path], options=ImportOptions(**TOLD)).errors == ()


def test_a_list_comes_back_as_it_was(database: Database, tmp_path: Path) -> None:
    bring(database, tmp_path / "inductor_huggingface_training.csv", LIST)
    assert exported(database) == (LIST, [])


def test_a_model_of_which_nothing_was_compiled_is_said(sqlite_database: Database, tmp_path: Path) -> None:
    name = "inductor_huggingface_amp_training_cuda_accuracy.csv"
    bring(
        sqlite_database,
        tmp_path / name,
        "dev,name,batch_size,accuracy,unique_graphs,graph_breaks\ncuda,BERT,4,pass,0,0\ncuda,T5,4,pass,2,1\n",
    )
    text, (note,) = exported(sqlite_database)
    assert "T5,pass,1" in text
    assert note.startswith("0 graphs were compiled of BERT:")


def test_several_strategies_are_no_list(sqlite_database: Database, tmp_path: Path) -> None:
    for name in ("inductor_huggingface_training.csv", "aot_eager_huggingface_training.csv"):
        bring(sqlite_database, tmp_path / name, LIST)
    with pytest.raises(CompilewatchError, match="of aot_eager, inductor"):
        exported(sqlite_database)
    assert exported(sqlite_database, Filters(strategies=("aot_eager",)))[0] == LIST
