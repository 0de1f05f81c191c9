"""Commands that judge what is stored."""
