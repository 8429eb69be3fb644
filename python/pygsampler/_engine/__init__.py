"""The ground: checks of values, the engine and what it gives to Python."""
