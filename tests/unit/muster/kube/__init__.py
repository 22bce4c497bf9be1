"""Tests of muster.kube: pure cores with the time passed in, and the wire against a server that misbehaves on demand."""
