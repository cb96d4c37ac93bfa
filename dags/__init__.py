"""Which command runs when, with which parameters: thin Airflow DAGs, no logic."""
