"""Drop sign-offs, for triage says what somebody expected; watches, for channels are told; and former ids.

Former ids are those that builds and regressions had before 0018 told builds from conditions. What people
said of a regression stands with the one that it was merged into since then.
"""

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
    op.drop_table("build_alias")
    for table in ("notification", "triage_event"):
        op.execute(
            f"DELETE FROM {table} WHERE regression_id IN "  # noqa: S608 - both are written above
            "(SELECT regression_id FROM regression WHERE merged_into IS NOT NULL)"
        )
    op.execute("DELETE FROM regression WHERE merged_into IS NOT NULL")
    op.drop_column("regression", "merged_into")
