"""What a gang is: rules without I/O, and the command line."""

__version__ = "0.1.0"
