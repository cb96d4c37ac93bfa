"""A job on the disk: its tables, files and directories, and how they are written and read."""
