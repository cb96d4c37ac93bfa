"""Tests of the plan searches."""
