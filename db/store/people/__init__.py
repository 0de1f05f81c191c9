"""What people write: triage, reports, sign-offs, notes, views, and what is sent to them."""
