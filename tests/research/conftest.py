from tests.support.research import HAS_RESEARCH

# A package without its research passes all other tests.
collect_ignore_glob = [] if HAS_RESEARCH else ["*"]
