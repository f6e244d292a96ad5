"""What an OpenAPI description cannot say, for schemathesis: texts that the server hands out are not invented by a client."""

import schemathesis

# Places in lists. An invented one is refused (400), and that is tested with the routes that take it.
HANDED_OUT = ("continuation_token", "after_id", "after_time", "key_marker", "version_id_marker")


def has_invented(fields: object) -> bool:
    """Whether a query or body has one of them."""
    return isinstance(fields, dict) and any(isinstance(fields.get(name), str) for name in HANDED_OUT)


@schemathesis.hook
def filter_case(_context: object, case: schemathesis.Case) -> bool:
    """Leave such cases out."""
    return not has_invented(case.body) and not has_invented(case.query)
