"""Tools that build, run and measure muster; never installed."""
