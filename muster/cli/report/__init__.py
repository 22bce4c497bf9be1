"""`muster report`: what was used, by whom, and how long gangs waited, from the records that the leader keeps."""
