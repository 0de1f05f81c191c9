"""Sign upgrades off, keep views under short ids, know measuring hosts and what their schedules plan."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "sign_off",
        sa.Column("sign_off_id", sa.String(), primary_key=True),
        sa.Column("machine_id", sa.String(), sa.ForeignKey("machine.machine_id"), nullable=False),
        sa.Column("base_build_id", sa.String(), sa.ForeignKey("build.build_id"), nullable=False),
        sa.Column("head_build_id", sa.String(), sa.ForeignKey("build.build_id"), nullable=False),
        sa.Column("decision", sa.String(length=32), nullable=False),
        sa.Column("author", sa.String(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("note", sa.String(), nullable=True),
        sa.Column("verdict", sa.String(), nullable=False),
        sa.Column("data_version", sa.BigInteger(), nullable=False),
        sa.Column("withdrawn_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("withdrawn_by", sa.String(), nullable=True),
    )
    op.create_index(
        op.f("ix_sign_off_machine_id_base_build_id_head_build_id"),
        "sign_off",
        ["machine_id", "base_build_id", "head_build_id"],
    )
    op.create_table(
        "stored_view",
        sa.Column("view_id", sa.String(), primary_key=True),
        sa.Column("link", sa.String(), nullable=False),
        sa.Column("stored_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("stored_by", sa.String(), nullable=True),
    )
    op.create_table(
        "host",
        sa.Column("name", sa.String(), primary_key=True),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("stopped_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("program_version", sa.String(), nullable=False),
        sa.Column("free_bytes", sa.BigInteger(), nullable=True),
        sa.Column("total_bytes", sa.BigInteger(), nullable=True),
        sa.Column("devices", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("devices_read_at", sa.DateTime(timezone=True), nullable=True),
    )
    op.add_column("schedule", sa.Column("upcoming", sa.JSON(none_as_null=True), nullable=True))
    op.add_column("schedule", sa.Column("changed_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("schedule", sa.Column("changed_by", sa.String(), nullable=True))
