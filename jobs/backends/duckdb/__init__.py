"""DuckDB in the process of the job."""
