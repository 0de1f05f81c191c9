"""Records of what people say and ask to be told."""
