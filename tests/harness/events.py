"""Reads storage events through the management plane, and checks their form."""

import re
from collections.abc import Iterator

from .management import Management, expect

UUID7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
SEQUENCER = re.compile(r"[0-9a-f]{16}")
OF_OBJECT = {"object", "version_id", "size"}
EVERY = {"id", "type", "time", "bucket", "metadata"}


def page(admin: Management, **parameters) -> dict:
    """Returns one page of events, whose form has been checked."""
    found = expect(admin.get("/events", params=parameters), 200)
    assert set(found) == {"events", "next_time", "next_id"}
    assert (found["next_time"] is None) == (found["next_id"] is None)
    for event in found["events"]:
        check_form(event)
    return found


def check_form(event: dict) -> None:
    """Asserts that an event has the members of its type, in their forms."""
    assert UUID7.fullmatch(event["id"]) and TIME.fullmatch(event["time"]) and SEQUENCER.fullmatch(event["metadata"]["sequencer"])
    expected = EVERY if event["type"].startswith("bucket.") else EVERY | OF_OBJECT
    assert set(event) == expected, event


def walk(admin: Management, **parameters) -> Iterator[dict]:
    """Yields all events, following the cursor through the pages, with `order="desc"` backwards."""
    side = "before" if parameters.get("order") == "desc" else "after"
    cursor: dict[str, str] = {}
    while True:
        found = page(admin, **parameters, **cursor)
        yield from found["events"]
        if found["next_id"] is None:
            return
        cursor = {f"{side}_time": found["next_time"], f"{side}_id": found["next_id"]}


def after(event: dict) -> dict[str, str]:
    """Returns the parameters that continue after an event."""
    return {"after_time": event["time"], "after_id": event["id"]}


def without_identity(event: dict) -> dict:
    """Returns an event without the members that nobody can foresee."""
    metadata = {name: value for name, value in event["metadata"].items() if name not in ("sequencer", "request_id")}
    return {name: value for name, value in event.items() if name not in ("id", "time")} | {"metadata": metadata}
