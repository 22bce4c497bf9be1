"""muster.kube before the real apiserver, with the faults that it has itself or that a proxy adds on the way."""
