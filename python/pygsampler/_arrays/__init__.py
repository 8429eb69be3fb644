"""Arrays of any library, on any device, as the engine reads and writes them."""
