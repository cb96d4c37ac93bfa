"""A plan that becomes another one: requests, states to fill, the cut-over."""
