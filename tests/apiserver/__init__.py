"""What muster promises of single objects, at the real apiserver: no scheduler, no operator."""
