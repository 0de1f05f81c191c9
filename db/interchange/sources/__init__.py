"""Result files of other tools and of jobs: a file each that turns one into trials."""
