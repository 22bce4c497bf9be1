"""muster's numbers, compared with the operators' own gang flags."""
