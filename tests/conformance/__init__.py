"""muster's numbers beside those of the operators' own gang flags."""
