"""Networks of sites: their files, distances, clusters, deployments and pictures."""
