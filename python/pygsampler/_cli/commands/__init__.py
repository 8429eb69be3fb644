"""The commands, one module each: ``command`` in it is what ``group`` runs."""
