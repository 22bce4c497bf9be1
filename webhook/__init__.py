"""The admission webhook: points new pods at their gang, and refuses workloads that can never run."""
