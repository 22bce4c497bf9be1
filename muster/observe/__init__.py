"""The cluster as stores, and a gang as it stands in it: shared by the controller and the command line."""
