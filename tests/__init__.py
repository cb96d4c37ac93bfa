"""Tests; the directories mirror the source."""
