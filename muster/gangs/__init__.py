"""The gang of a workload, what its user asked for, and the patch that its pods get."""
