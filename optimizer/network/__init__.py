"""Many queries over many sites: join order and placement together (Seshadri et al.)."""
