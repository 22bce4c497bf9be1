"""The chart as helm renders it, and the programs that judge the result."""
