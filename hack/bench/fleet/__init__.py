"""Thousands of gangs of 1 to 20 pods through queues of three levels, with real Volcano and kwok's nodes."""
