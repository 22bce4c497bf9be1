"""`muster doctor`: checks muster and its dependencies in a cluster, and suggests a fix for each problem.

`reading` reads the cluster once, with the permissions of the caller; the result is a `Sight`. The checks are functions
from a `Sight` to diagnoses, each with a fix. A check that could not run is a diagnosis too, never a pass.
"""
