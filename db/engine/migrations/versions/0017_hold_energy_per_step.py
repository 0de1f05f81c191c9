"""Hold the energy of a step."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    op.add_column("trial", sa.Column("energy_per_step_j", sa.Float(), nullable=True))
