"""Tests of the chart: rendered by the real helm, read as Kubernetes reads it."""
