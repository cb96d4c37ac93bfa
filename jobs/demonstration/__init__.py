"""What `midstream demo` shows: the whole loop, from statistics to a migration, on real services."""
