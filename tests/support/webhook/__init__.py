"""AdmissionReviews and certificates for tests of the webhook's parts."""
