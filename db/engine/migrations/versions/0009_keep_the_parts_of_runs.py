"""Keep what each run measured, by machine and build; name builds in the index of a series."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    moment = sa.DateTime(timezone=True)
    op.create_table(
        "run_part",
        sa.Column("run_id", sa.String(), sa.ForeignKey("run.run_id"), primary_key=True),
        sa.Column("machine_id", sa.String(), sa.ForeignKey("machine.machine_id"), primary_key=True),
        sa.Column("build_id", sa.String(), sa.ForeignKey("build.build_id"), primary_key=True),
        sa.Column("trials", sa.BigInteger(), nullable=False),
        sa.Column("first_seen_at", moment, nullable=False),
        sa.Column("last_seen_at", moment, nullable=False),
    )
    op.create_index(
        op.f("ix_run_part_machine_id_last_seen_at"), "run_part", ["machine_id", "last_seen_at"], unique=False
    )
    # The columns alone: what these tables are today is no business of a migration.
    op.execute(
        "INSERT INTO run_part (run_id, machine_id, build_id, trials, first_seen_at, last_seen_at) "
        "SELECT trial.run_id, series.machine_id, trial.build_id, count(*), "
        "min(trial.started_at), max(trial.started_at) "
        "FROM trial JOIN series ON series.series_id = trial.series_id "
        "GROUP BY trial.run_id, series.machine_id, trial.build_id"
    )
    op.drop_index(op.f("ix_trial_series_id_started_at"), table_name="trial")
    columns = ["series_id", "started_at", "build_id"]
    op.create_index(op.f("ix_trial_series_id_started_at_build_id"), "trial", columns, unique=False)
