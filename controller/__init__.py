"""The controller: makes PodGroups, decides which gangs may start, opens the gates, and reports why a gang waits."""
