"""The command line: commands, a module each, and what they share.

``group`` runs them and turns errors into exit codes, ``output`` is the look of what they print,
``progress`` the bars, ``options`` the arguments that several commands take. A command's module
imports click alone; what it needs is imported when it runs, so that help is at once.
"""
