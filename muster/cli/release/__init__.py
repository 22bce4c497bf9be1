"""`muster release` and `muster withdraw`: open muster's gates; they need only the apiserver."""
