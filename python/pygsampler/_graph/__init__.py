"""What a ``Graph`` is made of: its arrays on the host or a device, and its file."""
