"""What `midstream up` keeps running: the jobs, Airflow's components and the MLflow server.

On this machine only: every port listens on the loopback address, and asks who is there.
"""
