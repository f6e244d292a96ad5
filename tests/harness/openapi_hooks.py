"""schemathesis hooks for values that only the server can issue, such as continuation tokens."""

import re

import schemathesis

# Positions in lists. An invented one is refused with 400, which the tests of these routes cover.
HANDED_OUT = ("continuation_token", "after_id", "after_time", "before_id", "before_time", "key_marker", "version_id_marker", "upload_id_marker")

# An accepted target of a webhook. Its name has no address.
TARGET = "https://receiver.invalid/hook"

# An accepted origin of an embed, for those that are valid by the description: it cannot say which host names exist.
ORIGIN = "https://www.example.com"
DESCRIBED_ORIGIN = re.compile(r"https?://[^/?#@\x00-\x20\x7f-\xa0]{1,272}")

# An accepted network of clients: the description cannot say that no bits are set after the prefix.
NETWORK = "10.0.0.0/8"
DESCRIBED_NETWORK = re.compile(r"[0-9a-fA-F.:]{2,45}(/[0-9]{1,3})?")

# An accepted expiry of a link and end of a retention: the description cannot say that it must be in the future.
END = "2999-01-01T00:00:00.000Z"
TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt].+")


def has_invented(fields: object) -> bool:
    """Returns whether a query or body contains one of them."""
    return isinstance(fields, dict) and any(isinstance(fields.get(name), str) for name in HANDED_OUT)


def waits(query: object) -> bool:
    """Returns whether a query waits for events. A wait that is too long is refused at once, and tested."""
    seconds = query.get("wait_seconds") if isinstance(query, dict) else None
    return str(seconds).isdecimal() and 0 < int(seconds) <= 30


def has_unusable_filter(query: object) -> bool:
    """Returns whether a list has filters that exclude each other, or a text that is short in characters but not in bytes."""
    if not isinstance(query, dict):
        return False
    return {"lost", "status"} <= set(query) or is_long(query.get("contains"))


def is_long(text: object) -> bool:
    """Returns whether a text fits a limit of 256 characters, but not of 256 bytes."""
    return isinstance(text, str) and len(text) <= 256 < len(text.encode(errors="surrogatepass"))


def has_unusable_subject(body: object) -> bool:
    """Returns whether the name of something that is dismissed is too long in bytes, or has control characters."""
    subject = body.get("subject") if isinstance(body, dict) else None
    return isinstance(subject, str) and (is_long(subject) or any(ord(character) < 32 or 127 <= ord(character) < 160 for character in subject))


def has_unusable_target(body: object) -> bool:
    """Returns whether a webhook has another target than `map_body` gives it. The description cannot say which are accepted."""
    return isinstance(body, dict) and isinstance(body.get("target_url"), str) and body["target_url"] != TARGET


def is_described(origin: object) -> bool:
    """Returns whether an origin is valid by the description."""
    return isinstance(origin, str) and bool(DESCRIBED_ORIGIN.fullmatch(origin))


def has_unusable_origin(body: object) -> bool:
    """Returns whether an embed has another such origin than `map_body` gives it."""
    origins = body.get("allowed_origins") if isinstance(body, dict) else None
    return isinstance(origins, list) and any(is_described(origin) and origin != ORIGIN for origin in origins)


def has_long_prefix(body: object) -> bool:
    """Returns whether a webhook has a prefix that is accepted although it is longer than described: limits of texts are in bytes."""
    prefix = body.get("object_prefix_filter") if isinstance(body, dict) else None
    return isinstance(prefix, str) and len(prefix) > 255 and len(prefix.encode(errors="surrogatepass")) <= 1024


def public_rules(body: object) -> list[dict]:
    """Returns the rules of public access that are valid by the description. It cannot say that no prefix occurs twice."""
    rules = body.get("rules") if isinstance(body, dict) else None
    found = [rule for rule in rules if isinstance(rule, dict) and set(rule) <= {"prefix", "read", "list"}] if isinstance(rules, list) else []
    return [rule for rule in found if isinstance(rule.get("prefix"), str) and len(rule["prefix"]) <= 1024]


def repeats_a_prefix(body: object) -> bool:
    """Returns whether rules of public access that are valid by the description have the same prefix."""
    prefixes = [rule["prefix"] for rule in public_rules(body)]
    return len(set(prefixes)) < len(prefixes)


def networks_of(body: object) -> list[list]:
    """Returns the lists of networks in the statements of a policy."""
    statements = body.get("statements") if isinstance(body, dict) else None
    listed = [statement.get("source_ip") for statement in statements if isinstance(statement, dict)] if isinstance(statements, list) else []
    return [networks for networks in listed if isinstance(networks, list)]


def is_network(text: object) -> bool:
    """Returns whether a network is valid by the description."""
    return isinstance(text, str) and bool(DESCRIBED_NETWORK.fullmatch(text))


def has_unusable_network(body: object) -> bool:
    """Returns whether a statement has another such network than `map_body` gives it."""
    return any(is_network(text) and text != NETWORK for networks in networks_of(body) for text in networks)


def is_time(value: object) -> bool:
    """Returns whether a value looks like a time."""
    return isinstance(value, str) and bool(TIME.fullmatch(value))


def has_unusable_retention(body: object) -> bool:
    """Returns whether a version would be retained until another time than `map_body` gives it."""
    retention = body.get("retention") if isinstance(body, dict) else None
    return isinstance(retention, dict) and is_time(retention.get("retain_until")) and retention["retain_until"] != END


def has_unusable_link(body: object) -> bool:
    """Returns whether a link or a credential has another expiry, or an embed shows an object of any type inline."""
    if not isinstance(body, dict):
        return False
    is_inline = isinstance(body.get("allowed_origins"), list) and body.get("disposition") in (None, "inline")
    return is_inline or has_other_end(body) or has_other_end(body.get("credential"))


def has_other_end(body: object) -> bool:
    """Returns whether a link or a credential expires at another time than `map_body` gives it."""
    return isinstance(body, dict) and is_time(body.get("expires_at")) and body["expires_at"] != END


def is_tag(tag: object) -> bool:
    """Returns whether a tag is valid by the description. It cannot say which letters a tag may have, and that keys differ."""
    if not isinstance(tag, dict) or set(tag) != {"key", "value"} or not all(isinstance(text, str) for text in tag.values()):
        return False
    return 1 <= len(tag["key"]) <= 128 and len(tag["value"]) <= 256


def usable_tags(tags: list) -> list:
    """Replaces such tags by some that the server accepts."""
    return [{"key": f"key {number}", "value": "v"} if is_tag(tag) else tag for number, tag in enumerate(tags)]


def has_unusable_tags(body: object) -> bool:
    """Returns whether a lifecycle rule has other such tags than `map_body` gives it."""
    tags = body.get("tags") if isinstance(body, dict) else None
    return isinstance(tags, list) and tags != usable_tags(tags)


def has_unusable_metadata(case: schemathesis.Case) -> bool:
    """Returns whether metadata have names or texts that no header has, names that differ only in their letters' case, or a condition that fails."""
    body = case.body
    if case.operation.definition.raw.get("operationId") != "set_object_metadata" or not isinstance(body, dict):
        return False
    members = [body.get("headers"), body.get("metadata")]
    names = [name for member in members if isinstance(member, dict) for name in member]
    texts = [text for member in members if isinstance(member, dict) for text in member.values()] + [body.get("content_type")]
    is_text = all(text is None or (isinstance(text, str) and text.isascii() and text.isprintable()) for text in texts)
    is_name = all(re.fullmatch("[A-Za-z0-9-]+", name) for name in names) and len({name.lower() for name in names}) == len(names)
    return not (is_text and is_name) or any(body.get(name) is not None for name in ("if_match", "if_last_modified"))


def names_two_versions(query: object) -> bool:
    """Returns whether a query names a version and a moment, which exclude each other."""
    return isinstance(query, dict) and {"at", "version_id"} <= set(query)


def has_unusable_past(body: object) -> bool:
    """Returns whether a moment may be in the future, or whether not exactly one of keys and prefix is given."""
    if not isinstance(body, dict):
        return False
    if set(body) <= {"at", "prefix", "dry_run"} and is_time(body.get("at")):
        return not body["at"].startswith(("19", "200"))
    if not set(body) <= {"keys", "prefix", "deleted_since"}:
        return False
    given = [name for name in ("keys", "prefix") if body.get(name) is not None]
    return len(given) != 1 or (given == ["keys"] and body.get("deleted_since") is not None)


def has_unusable_conditions(query: object) -> bool:
    """Returns whether a search has conditions that exclude each other, or a pattern that is none."""
    if not isinstance(query, dict):
        return False
    bounds = [("min_bytes", "max_bytes"), ("modified_since", "modified_until")]
    return {"contains", "glob"} <= set(query) or any(set(pair) <= set(query) for pair in bounds) or bool({"[", "\\"} & set(str(query.get("glob", ""))))


def has_unusable_period(case: schemathesis.Case) -> bool:
    """Returns whether a count of changes would end before it begins, or have less than a millisecond for each step."""
    query = case.query
    if case.operation.definition.raw.get("operationId") not in ("count_changes", "count_all_changes") or not isinstance(query, dict) or not is_time(query.get("since")):
        return False
    return not query["since"].startswith(("19", "200")) or "until" in query


def moves_onto_itself(case: schemathesis.Case) -> bool:
    """Returns whether an object is moved to where it is."""
    path, body = case.path_parameters, case.body
    if case.operation.definition.raw.get("operationId") != "move_object" or not isinstance(path, dict) or not isinstance(body, dict):
        return False
    return (path.get("bucket"), path.get("key")) == (body.get("destination_bucket"), body.get("destination_key"))


def has_fraction(value: object) -> bool:
    """Returns whether a report has a number that is not whole."""
    if isinstance(value, dict):
        return any(has_fraction(member) for member in value.values())
    if isinstance(value, list):
        return any(has_fraction(entry) for entry in value)
    return isinstance(value, float) or (isinstance(value, int) and abs(value) >= 2**63)


@schemathesis.hook
def filter_case(_context: object, case: schemathesis.Case) -> bool:
    """Skips such cases."""
    if has_unusable_metadata(case) or has_unusable_filter(case.query) or has_unusable_subject(case.body):
        return False
    if has_unusable_tags(case.body) or has_unusable_network(case.body) or has_long_prefix(case.body) or repeats_a_prefix(case.body):
        return False
    if isinstance(case.body, dict) and has_fraction(case.body.get("report")):
        return False
    if isinstance(case.body, dict) and has_fraction(case.body.get("manifest")):
        return False
    if has_unusable_period(case) or moves_onto_itself(case) or names_two_versions(case.query) or has_unusable_past(case.body) or has_unusable_conditions(case.query):
        return False
    unusable = has_invented(case.body) or has_invented(case.query) or waits(case.query) or has_unusable_target(case.body)
    return not unusable and not has_unusable_origin(case.body) and not has_unusable_link(case.body) and not has_unusable_retention(case.body)


@schemathesis.hook
def map_body(_context: object, body: object) -> object:
    """Gives webhooks, embeds, links, retentions, rules and policies values that the server accepts, where the description cannot say which."""
    for number, rule in enumerate(public_rules(body)):
        rule["prefix"] = f"prefix {number}"
    for networks in networks_of(body):
        networks[:] = [NETWORK if is_network(text) else text for text in networks]
    if isinstance(body, dict) and isinstance(body.get("target_url"), str):
        body["target_url"] = TARGET
    if isinstance(body, dict) and isinstance(body.get("allowed_origins"), list):
        body["allowed_origins"] = [ORIGIN if is_described(origin) else origin for origin in body["allowed_origins"]]
        if body.get("disposition") in (None, "inline"):
            body["disposition"] = "attachment"
    for member in (body, body.get("credential") if isinstance(body, dict) else None):
        if isinstance(member, dict) and is_time(member.get("expires_at")):
            member["expires_at"] = END
    retention = body.get("retention") if isinstance(body, dict) else None
    if isinstance(retention, dict) and is_time(retention.get("retain_until")):
        retention["retain_until"] = END
    if isinstance(body, dict) and isinstance(body.get("tags"), list):
        body["tags"] = usable_tags(body["tags"])
    return body


@schemathesis.hook
def before_call(_context: object, case: schemathesis.Case, _options: object) -> None:
    """Uploads arbitrary bytes as such: a download has the type of the upload, and JSON or text would be parsed."""
    if case.operation.definition.raw.get("operationId") == "upload_object":
        case.headers = {**(case.headers or {}), "Content-Type": "application/octet-stream"}
