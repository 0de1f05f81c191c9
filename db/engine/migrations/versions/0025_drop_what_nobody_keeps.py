"""Drop sign-offs, for triage says what somebody expected, and watches: channels are told."""

from __future__ import annotations

from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_table("sign_off")
    op.drop_table("watch")
    # The names of channels begin with a letter or digit, those of watches did so.
    op.execute("DELETE FROM notification WHERE channel LIKE '#%'")
