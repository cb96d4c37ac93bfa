"""Every decision as an MLflow run, so that plans and strategies compare in its pages.

The only package that knows MLflow.
"""
