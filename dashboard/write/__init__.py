"""What readers of the dashboard may change."""
