"""Any bytes at all against the webhook's decoder and decisions: `make fuzz`, and a short seeded run among the tests."""
