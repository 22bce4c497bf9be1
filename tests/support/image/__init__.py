"""What tests of the image share."""
