"""Hold what `compilewatch advise` found with its run."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"


def upgrade() -> None:
    op.add_column("run", sa.Column("advice", sa.JSON(none_as_null=True), nullable=True))
