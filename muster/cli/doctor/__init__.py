"""`muster doctor`: whether muster, and what it stands on, is in order in a cluster, and what to do where it is not.

`reading` looks at the cluster, once and with the rights of whoever asks; what it saw is a `Sight`. The checks are
functions from that to diagnoses, each with its cure. What could not be seen is a diagnosis, too, and no all-clear.
"""
