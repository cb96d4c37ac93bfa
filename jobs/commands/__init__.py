"""The subcommands of `midstream`, one file each.

They import what is heavy when they run, so that `midstream --help` does not wait for it.
"""
