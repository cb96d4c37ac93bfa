"""Carries out one micro-batch of a job: operators as SQL, states and results as Delta tables."""
