"""The HTTPS server: connections, intake, deadlines, and the thread for long reviews."""
