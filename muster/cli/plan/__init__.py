"""`muster plan` and `muster audit`: manifests, or the objects of a cluster, judged by the rules of the webhook."""
