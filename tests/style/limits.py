"""Upper bounds of the figures that `layout` measures: lower them as the code comes nearer."""

# Today's figures.
LIMITS = {
    "entries at the top of the package": 28,
    "floors of the import graph": 17,
    "arrows between entries": 171,
    "import circles of entries": 0,
    "Python files below 70 lines": 54,
    "class names in two modules or more": 5,
    "modules with a bad name": 0,
    "docstrings that open without a subject": 0,
    "public names": 180,
    "public names at the root": 21,
    "folders side by side in the Go core": 19,
    "files of the Go root package": 33,
    "functions of the bridge": 113,
    "functions that begin a batch": 2,
    "kernel sources in the largest folder": 15,
}
GOALS = {
    "entries at the top of the package": 28,
    "floors of the import graph": 17,
    "arrows between entries": 166,
    "import circles of entries": 0,
    "Python files below 70 lines": 50,
    "class names in two modules or more": 5,
    "modules with a bad name": 0,
    "docstrings that open without a subject": 0,
    "public names": 152,
    "public names at the root": 21,
    "folders side by side in the Go core": 19,
    "files of the Go root package": 33,
    "functions of the bridge": 111,
    "functions that begin a batch": 2,
    "kernel folders": 10,
    "kernel sources in the largest folder": 15,
}
