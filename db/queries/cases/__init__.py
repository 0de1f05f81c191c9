"""What the cases of builds and runs come to, and why."""
