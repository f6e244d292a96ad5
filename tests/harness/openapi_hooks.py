"""schemathesis hooks for values that only the server can issue, such as continuation tokens."""

import schemathesis

# Positions in lists. An invented one is refused with 400, which the tests of these routes cover.
HANDED_OUT = ("continuation_token", "after_id", "after_time", "key_marker", "version_id_marker", "upload_id_marker")


def has_invented(fields: object) -> bool:
    """Returns whether a query or body contains one of them."""
    return isinstance(fields, dict) and any(isinstance(fields.get(name), str) for name in HANDED_OUT)


@schemathesis.hook
def filter_case(_context: object, case: schemathesis.Case) -> bool:
    """Skips such cases."""
    return not has_invented(case.body) and not has_invented(case.query)
