"""The serving certificate and the trust in it: from the Secret, or from mounted files."""
