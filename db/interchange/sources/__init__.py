"""Result files of other tools: a file each that turns one into trials."""
