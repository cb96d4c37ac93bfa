"""Streams of a job: where their rows come from, and what each batch takes of them."""
