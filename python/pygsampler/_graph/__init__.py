"""The parts of a ``Graph``: its arrays on the host or a device, and its file."""
