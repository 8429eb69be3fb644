from importlib.util import find_spec

# A package without its research passes all other tests.
collect_ignore_glob = ["*"] if find_spec("pygsampler.research") is None else []
