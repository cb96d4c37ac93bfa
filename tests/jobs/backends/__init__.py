"""The engine, held to what DuckDB says of the whole input."""
