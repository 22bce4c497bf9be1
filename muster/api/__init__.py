"""The Python API: plans of manifests, gangs, queues, and waiting for a gang; docs/python.md.

`import muster` gives all of its names, and loads this package only when the first of them is used.
"""
