"""How a batch lies in memory, and the views of it."""
