"""What others have measured and published: figures with their source, to stand beside the user's own."""
