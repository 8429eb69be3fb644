"""The language of programs: its values, and how a function over them is traced."""
