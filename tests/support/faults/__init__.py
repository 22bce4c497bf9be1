"""What goes wrong on the way to the apiserver, and the clock of the event loop."""
