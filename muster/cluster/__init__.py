"""The objects of the cluster, as the watches show them, and a gang read from them."""
