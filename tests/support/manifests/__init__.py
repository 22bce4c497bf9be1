"""Objects that tests apply, decode or generate."""
