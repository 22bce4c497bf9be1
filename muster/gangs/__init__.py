"""The gang of a workload, the intent of its user, and the patch of its pods."""
