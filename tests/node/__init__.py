"""Tests on a real node: muster's image, run by a kubelet, behind a Service."""
