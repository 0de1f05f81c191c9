"""What people write: triage, reports, notes, views, and what is sent to them."""
