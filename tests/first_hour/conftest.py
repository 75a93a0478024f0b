"""Scripts of tests/test_first_hour_tasks.py, which runs each in a folder of its own: nothing to collect here."""

collect_ignore_glob = ["*.py"]
