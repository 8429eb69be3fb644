"""Private: rows of features that a GPU keeps in its own memory."""
