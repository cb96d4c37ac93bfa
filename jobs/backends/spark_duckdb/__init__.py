"""DuckDB in the tasks of a Spark job."""
