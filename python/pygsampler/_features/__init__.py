"""Private: rows of features on their way, and new values for some."""
