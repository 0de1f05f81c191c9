"""Records of what services are asked to measure, and who may ask."""
