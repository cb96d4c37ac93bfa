"""The same windowed joins on several engines, each in a process of its own."""
