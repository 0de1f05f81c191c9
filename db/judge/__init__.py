"""The one judge: what it reads, and which verdict follows."""
