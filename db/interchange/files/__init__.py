"""Files and fields that readers and writers share."""
