"""The controller: makes PodGroups, decides who may start, opens the gates, and says why a gang waits."""
