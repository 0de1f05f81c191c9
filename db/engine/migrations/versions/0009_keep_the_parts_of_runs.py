"""Keep what each run measured, by machine and build; name builds in the index of a series."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    moment = sa.DateTime(timezone=True)
    op.create_table(
        "run_part",
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("machine_id", sa.String(), nullable=False),
        sa.Column("build_id", sa.String(), nullable=False),
        sa.Column("trials", sa.BigInteger(), nullable=False),
        sa.Column("first_seen_at", moment, nullable=False),
        sa.Column("last_seen_at", moment, nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["run.run_id"], name=op.f("fk_run_part_run_id_run")),
        sa.ForeignKeyConstraint(
            ["machine_id"], ["machine.machine_id"], name=op.f("fk_run_part_machine_id_machine")
        ),
        sa.ForeignKeyConstraint(["build_id"], ["build.build_id"], name=op.f("fk_run_part_build_id_build")),
        sa.PrimaryKeyConstraint("run_id", "machine_id", "build_id", name=op.f("pk_run_part")),
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


def downgrade() -> None:
    op.drop_index(op.f("ix_trial_series_id_started_at_build_id"), table_name="trial")
    op.create_index(op.f("ix_trial_series_id_started_at"), "trial", ["series_id", "started_at"], unique=False)
    op.drop_index(op.f("ix_run_part_machine_id_last_seen_at"), table_name="run_part")
    op.drop_table("run_part")
