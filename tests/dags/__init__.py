"""The DAGs, under the real scheduler and beside the real MLflow server where that matters."""
