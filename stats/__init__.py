"""Statistics of the streams: collected, stored, validated, and turned into workloads."""
