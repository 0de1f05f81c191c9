"""The form in which an editor brings in result files: looked at first, then stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from compilewatch.dashboard.login.access import Role, person_here, require
from compilewatch.dashboard.parts.parts import Table, TableColumn, texts
from compilewatch.dashboard.read.database import database_url
from compilewatch.dashboard.render import elements, streamlit_parts
from compilewatch.dashboard.render import forms as telling
from compilewatch.dashboard.text.foreign_text import escaped
from compilewatch.dashboard.write import uploading
from compilewatch.dashboard.write.uploading import QUESTIONS, WRITINGS, Preview, Upload
from compilewatch.db.errors import CompilewatchError
from compilewatch.db.interchange.formats import Format
from compilewatch.db.interchange.importing import AUTO, Writing
from compilewatch.db.interchange.sources.csv_mapping import FIELDS, GROUPS, is_field

PAGE = "import"
_PREVIEW, _QUESTIONS, _ROUND = "import-looked", "import-asked", "import-round"
_COLUMNS = "import-columns"
_UNUSED = ""
_ROWS = {
    **texts({"workload": "Workload", "strategy": "Strategy", "status": "Status"}),
    "latency_ms": TableColumn("Latency (ms)", kind="number", form="%.4g"),
    **texts({"device_name": "Device", "torch": "torch"}),
    "batch_size": TableColumn("Batch", kind="number"),
    **texts({"dtype": "Dtype", "source": "Source"}),
    "started_at": TableColumn("Measured (UTC)", kind="moment"),
    "file": TableColumn("File"),
}


def draw() -> None:
    """The form, what the chosen files would bring, and the question whether to bring it in."""
    if not person_here().may(Role.EDITOR):
        return
    with st.popover("Import results", icon=":material/upload:", key="import"):
        _form()


def _form() -> None:
    state = st.session_state
    preview: Preview | None = state.get(_PREVIEW)
    with st.form(f"import-{state.get(_ROUND, 0)}", border=False):
        uploaded = st.file_uploader(
            f"Result files of compilewatch or other tools, {uploading.LARGEST_MB} MiB together",
            accept_multiple_files=True,
            max_upload_size=uploading.LARGEST_MB,
            key=f"import-files-{state.get(_ROUND, 0)}",
            help="Both halves of a pair belong together: performance and accuracy, report and config.",
        )
        chosen = st.selectbox("Format", [AUTO, *(str(name) for name in Format)], key="import-format")
        writing = st.selectbox(
            "What to do", list(WRITINGS), format_func=WRITINGS.__getitem__, key="import-do"
        )
        asked = dict.fromkeys((*state.get(_QUESTIONS, ()), *uploading.ALWAYS))
        answers = {name: _question(name) for name in asked}
        with st.expander("What else the files may not say"):
            answers |= {name: _question(name) for name in uploading.MORE if name not in asked}
        meanings = _meanings(state.get(_COLUMNS, {}))
        if st.form_submit_button("Preview", icon=":material/preview:"):
            files = [(file.name, file.getvalue()) for file in uploaded]
            _look(files, chosen, answers, meanings, writing)
            preview = state.get(_PREVIEW)
    if preview is not None:
        _show(preview)


def _question(name: str) -> str:
    label, example = QUESTIONS[name]
    return st.text_input(label, placeholder=example, max_chars=uploading.LONGEST_ANSWER, key=f"import-{name}")


def _meanings(columns: Mapping[str, str]) -> dict[str, str]:
    """Ask of every column of a CSV which field it is."""
    if not columns:
        return {}
    st.markdown("**What the columns mean**")
    elements.note(
        "A workload and a latency are needed, all else may stay unused. A metric keeps the column's name and "
        "unit."
    )
    places = st.columns(3)
    meanings = {}
    for number, (column, cell) in enumerate(columns.items()):
        names = _names(column)
        with places[number % len(places)]:
            meanings[column] = st.selectbox(
                escaped(column) or "(no name)",
                names,
                index=names.index(column) if column in names else 0,
                format_func=lambda name: name or "not used",
                help=escaped(f"First cell: {cell[:80]}") if cell else None,
                key=f"import-column-{st.session_state.get(_ROUND, 0)}-{number}",
            )
    return meanings


def _names(column: str) -> list[str]:
    """What a column can mean, by the names of fields; one that has such a name can mean that."""
    own = [column] if is_field(column) and column not in FIELDS else []
    return [_UNUSED, *FIELDS, *own, *(f"{group}.{column}" for group in GROUPS if column)]


def _look(
    files: Sequence[tuple[str, bytes]],
    chosen: str,
    answers: Mapping[str, str],
    meanings: Mapping[str, str],
    writing: Writing,
) -> None:
    """Find out what the files would bring; what they do not say is asked from now on."""
    state = st.session_state
    state.pop(_PREVIEW, None)
    if not files:
        st.warning("Choose at least one file.", icon=":material/report:")
        return
    try:
        require(Role.EDITOR)
        upload = Upload(uploading.files_of(files), chosen, answers, meanings, writing)
        preview = uploading.preview(database_url(), upload)
    except CompilewatchError as error:
        st.warning(escaped(str(error)), icon=":material/report:")
        return
    state[_PREVIEW] = preview
    questions = state.get(_QUESTIONS, ())
    more = tuple(name for name in preview.missing if name not in questions)
    offered = preview.unused if preview.asks_of_unused else {}
    columns = {**state.get(_COLUMNS, {}), **preview.unmapped, **offered}
    if more or columns != state.get(_COLUMNS, {}):
        state[_QUESTIONS] = (*questions, *more)
        state[_COLUMNS] = columns
        st.rerun()


def _show(preview: Preview) -> None:
    with st.container(border=True):
        for problem in preview.problems:
            st.warning(escaped(problem), icon=":material/report:")
        elements.notes(preview.notes)
        if preview.left_out:
            elements.note(preview.left_out)
        if preview.rows.empty:
            elements.note("Nothing would come in.")
            return
        rows = Table(
            "import-rows",
            "The first trials of every uploaded file, as they would be stored",
            preview.rows,
            _ROWS,
            preview.sentence,
            "The first rows of each file:",
        )
        streamlit_parts.draw((rows,))
        with st.container(horizontal=True):
            st.button(
                "Take out" if preview.upload.writing is Writing.REMOVE else "Import",
                icon=":material/check:",
                on_click=_bring_in,
                args=(preview.upload,),
                disabled=preview.changes_nothing,
                key="import-yes",
            )
            st.button("Cancel", icon=":material/close:", on_click=_forget, key="import-no")


def _bring_in(upload: Upload) -> None:
    sentence, whole = uploading.bring_in(database_url(), upload)
    telling.say(PAGE, sentence, done=whole)
    _forget()


def _forget() -> None:
    """Begin anew: an uploader lets its files go under another key only."""
    state = st.session_state
    state.pop(_PREVIEW, None)
    state.pop(_QUESTIONS, None)
    state.pop(_COLUMNS, None)
    state[_ROUND] = state.get(_ROUND, 0) + 1
