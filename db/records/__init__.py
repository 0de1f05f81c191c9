"""The words: the trial record and everything else that is stored, as frozen, validated types."""
