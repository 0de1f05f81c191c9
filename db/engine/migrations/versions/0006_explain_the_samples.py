"""Keep how samples were taken, the profile and the place of the trace."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

_PARTS = ("sampling", "profile", "trace")


def upgrade() -> None:
    for part in _PARTS:
        op.add_column("trial_detail", sa.Column(part, sa.JSON(none_as_null=True), nullable=True))
