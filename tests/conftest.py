"""Settings of the whole suite."""

import os

from hypothesis import settings

# Where a run decides whether a change lands it must not depend on luck: the same examples every time. Elsewhere they
# are drawn anew.
settings.register_profile("fixed", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("fixed")
