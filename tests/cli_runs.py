"""What the tests of the program share, beyond test_cli: files made beforehand, and records read back."""
import json
import sys

import test_cli
from test_cli import DONE, run

UNMET = 1


def must(*arguments):
    """Makes something that all tests need."""
    result = run(*arguments)
    if result.code != DONE:
        sys.exit(f"cannot make the common files: safer {' '.join(map(str, arguments))}: {result}")


def read_run(name):
    """The configuration and the records of a run."""
    lines = [json.loads(line) for line in (test_cli.temporary / name).read_text().splitlines()]
    return lines[0], lines[1:]


def without_times(name):
    """A run's configuration and records, less what differs from one time to the next. (The seal is that
    of the rest.)"""
    config, records = read_run(name)
    return [config, *({key: value for key, value in record.items() if key != "seconds"} for record in records)]
