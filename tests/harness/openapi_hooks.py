"""schemathesis hooks for values that only the server can issue, such as continuation tokens."""

import schemathesis

# Positions in lists. An invented one is refused with 400, which the tests of these routes cover.
HANDED_OUT = ("continuation_token", "after_id", "after_time", "key_marker", "version_id_marker", "upload_id_marker")


def has_invented(fields: object) -> bool:
    """Returns whether a query or body contains one of them."""
    return isinstance(fields, dict) and any(isinstance(fields.get(name), str) for name in HANDED_OUT)


def waits(query: object) -> bool:
    """Returns whether a query waits for events. A wait that is too long is refused at once, and tested."""
    seconds = query.get("wait_seconds") if isinstance(query, dict) else None
    return str(seconds).isdecimal() and 0 < int(seconds) <= 30


@schemathesis.hook
def filter_case(_context: object, case: schemathesis.Case) -> bool:
    """Skips such cases."""
    return not has_invented(case.body) and not has_invented(case.query) and not waits(case.query)


@schemathesis.hook
def map_body(_context: object, body: object) -> object:
    """Gives webhooks a target that the server accepts. Its name has no address."""
    if isinstance(body, dict) and isinstance(body.get("target_url"), str):
        body["target_url"] = "https://receiver.invalid/hook"
    return body
