"""What people read: words and marks that every page and command shares."""
