"""Metrics: exposition format, exact counts, and agreement with documentation, dashboard and alert rules."""

import json
import os
import random
import re
import socket
import time
from pathlib import Path

import pytest
import requests
import yaml

from harness.certificates import Authority
from harness.damage import find_bytes, flip_bit, read, volumes
from harness.management import bearer
from harness.metrics import (
    SCRAPE_TOKEN, TIMEOUT, Scrape, faults, once, promql_labels, promql_names, scrape, structure_faults,
)
from harness.s3 import object_target
from harness.server import LOOPBACK, REPOSITORY, Cairn
from harness.wait import until
from harness.wire import WireError, encode_head

BLOCK_BYTES = 65_536
PATIENCE_SECONDS = 20.0
OBJECT = "/{bucket}/{key}"
DOCS = REPOSITORY / "docs"


@pytest.fixture
def measured(make_store) -> Cairn:
    """Starts a store for this test alone, with a scrape token."""
    return make_store(SERVICE_METRICS_SCRAPE_TOKEN=SCRAPE_TOKEN).start()


def managed(store: Cairn, method: str, path: str, **options) -> requests.Response:
    """Sends a request with the system token."""
    return requests.request(method, store.management + path, headers=bearer(store.secrets.system_token), timeout=TIMEOUT, **options)


def busy(store: Cairn) -> None:
    """Sends requests of every kind, so that every metric has samples."""
    s3 = store.s3
    s3.create_bucket("busy")
    s3.put("busy", "small", b"1")
    s3.put("busy", "large", bytes(3 * BLOCK_BYTES))
    assert s3.get("busy", "large").status == 200 and s3.get("busy", "none").status == 404
    s3.request("GET", "/busy?acl")
    s3.send_raw("BREW", "/busy", [("Host", s3.authority)])


# Format


def test_exposition_follows_the_promtool_rules(measured: Cairn):
    """The rules of `promtool check metrics` hold for an idle store and after some load."""
    assert faults(scrape(measured)) == []
    busy(measured)
    seen = scrape(measured)
    assert faults(seen) == []
    assert len(seen.families) > 50, "the parser must have found all metrics"


def test_metric_rules_find_known_mistakes():
    """Rules that find nothing would accept every exposition."""
    bad = "# HELP a_total x\n# TYPE a_total gauge\na_total 1\n# HELP b_ms x\n# TYPE b_ms gauge\nb_ms 1\na_total 2\n"
    found = " ".join(faults(Scrape(bad)))
    for part in ("a_total: _total", "b_ms: not a base unit", "a_total: outside", "a_total: twice"):
        assert part in found, found
    broken = (
        '# HELP h_seconds x\n# TYPE h_seconds histogram\nh_seconds_bucket{le="1"} 2\nh_seconds_bucket{le="+Inf"} 1\n'
        "h_seconds_sum 1\nh_seconds_count 1\n"
    )
    assert "not a whole histogram" in " ".join(faults(Scrape(broken)))
    assert structure_faults("# TYPE c gauge\nc 1\n")


def test_metrics_need_the_scrape_token(measured: Cairn):
    """The system token and requests without a token are refused."""
    for headers in ({}, bearer(measured.secrets.system_token)):
        assert requests.get(measured.management + "/metrics", headers=headers, timeout=TIMEOUT).status_code == 401


@pytest.mark.parametrize("token", [None, SCRAPE_TOKEN])
def test_refused_scrape_says_which_token_it_needs(make_store, token: str | None):
    """The message names the setting, and says whether a token is configured. Even the system token is refused."""
    store = make_store(SERVICE_METRICS_SCRAPE_TOKEN=token).start()
    for headers in ({}, bearer(store.secrets.system_token)):
        refused = requests.get(store.management + "/metrics", headers=headers, timeout=TIMEOUT)
        assert refused.status_code == 401 and refused.headers["www-authenticate"].startswith("Bearer")
        error = refused.json()["error"]
        assert error["code"] == "UNAUTHENTICATED" and "observability.metrics_scrape_token" in error["message"]
        assert ("none is configured" in error["message"]) == (token is None), error
        assert ("one is configured" in error["message"]) or token is None


# Names of metrics that change by themselves begin so.
CHANGING = (
    "process_", "service_audit_", "service_executor_", "service_storage_disk_", "service_storage_available_", "service_connections_open",
    "service_requests_open",
)


def test_json_metrics_match_the_exposition(measured: Cairn):
    """Names, types and labels are equal, and so are the values that do not change between the two requests."""
    busy(measured)
    seen = once(measured, lambda seen: seen.sum("service_requests_total", plane="data") == 7 and "process_start_time_seconds" in seen.families)
    told = managed(measured, "GET", "/api/v1/system/metrics").json()["metrics"]
    assert {(one["name"], one["type"]) for one in told} == set(seen.families.items())
    for one in told:
        name, labels = one["name"], one["labels"]
        if name.startswith(CHANGING) or "management" in labels.values():
            continue
        if one["type"] == "histogram":
            own = seen.histogram(name, **labels)
            buckets = {float(bucket["le"]): bucket["count"] for bucket in one["buckets"]}
            assert (buckets, one["count"]) == (own.buckets, own.count), name
            assert one["sum"] == pytest.approx(own.sum), name
        else:
            assert one["value"] == pytest.approx(seen.sum(name, **labels)), name


# Counts


def test_requests_are_counted_exactly(measured: Cairn):
    """Requests and latencies are counted by route, operation and status class, and bytes are exact."""
    s3 = measured.s3
    s3.create_bucket("counted")
    begun = time.monotonic()
    for number in range(20):
        assert s3.put("counted", f"k{number % 5}", bytes(1000)).status == 200
    for number in range(30):
        assert s3.get("counted", f"k{number % 5}").status == 200
    missing = sum(len(s3.get("counted", f"none{number}").body) for number in range(7))
    assert s3.head("counted", "k0").status == 200
    data = {"plane": "data"}
    seen = once(measured, lambda seen: seen.sum("service_requests_total", **data) == 1 + 20 + 30 + 7 + 1)
    # The requests came one after the other.
    took = time.monotonic() - begun
    for method, operation, status_class, count in (
        ("PUT", "PutObject", "2xx", 20), ("GET", "GetObject", "2xx", 30), ("GET", "GetObject", "4xx", 7),
        ("HEAD", "HeadObject", "2xx", 1),
    ):
        labels = data | {"method": method, "route": OBJECT, "operation": operation}
        assert seen.sum("service_requests_total", **labels, status_class=status_class) == count
        latency = seen.histogram("service_request_duration_seconds", **labels)
        assert latency.count == seen.sum("service_requests_total", **labels)
        assert 0 < latency.sum < took
    assert seen.sum("service_request_bytes_total", **data) == 20 * 1000
    listed = seen.sum("service_response_bytes_total", **data)
    assert listed == 30 * 1000 + missing, "responses to bucket creation, PUT and HEAD have no body bytes"
    assert seen.sum("service_errors_total") == 0
    assert seen.sum("service_storage_logical_bytes") == 5 * 1000


def test_management_requests_are_counted_by_route_pattern(measured: Cairn):
    """The label is the route pattern, never the path. All unknown paths share one series, and so do unknown methods."""
    for name in ("one", "two", "three"):
        assert managed(measured, "GET", f"/api/v1/buckets/{name}").status_code == 404
        assert managed(measured, "GET", f"/{name}").status_code == 404
        assert managed(measured, name.upper(), "/health").status_code == 405
    management = {"plane": "management"}
    seen = once(measured, lambda seen: seen.sum("service_requests_total", **management, method="other") == 3)
    pattern = {"route": "/api/v1/buckets/{bucket}", "operation": "get_bucket"}
    assert seen.sum("service_requests_total", **management, **pattern, status_class="4xx") == 3
    assert seen.sum("service_requests_total", **management, method="GET", route="none", status_class="4xx") == 3
    assert "three" not in seen.text and "THREE" not in seen.text


def test_clients_cannot_create_metric_series(measured: Cairn):
    """Label sets are bounded: no label value is anything that a client sends, apart from names of buckets."""
    def attack(number: int) -> None:
        for target in (f"/b{number}/k", f"/b?x{number}", f"/?{number}", f"/b/k?acl{number}", "/b?acl", "/b/k?torrent"):
            for method in ("GET", f"M{number}"):
                measured.s3.send_raw(method, target, [("Host", LOOPBACK), ("x-amz-x", str(number))])

    attack(0)
    before = len(scrape(measured).values)
    for number in range(1, 20):
        attack(number)
    after = scrape(measured)
    assert len(after.values) - before <= 30, "only the first scrape on each executor may add series"
    assert not re.search(r'"(M1|b7|/b)', after.text)


# Storage


def test_repeated_reads_are_counted_as_cache_hits(measured: Cairn):
    """Hits, misses, and the bytes and latencies of device reads are exact."""
    s3, blocks = measured.s3, 16
    s3.create_bucket("cached")
    idle = scrape(measured)
    assert s3.put("cached", "k", bytes(blocks * BLOCK_BYTES)).status == 200
    written = once(measured, lambda seen: seen.sum("service_device_written_bytes_total") >= blocks * BLOCK_BYTES)
    assert written.histogram("service_device_write_duration_seconds").count >= 1
    assert written.sum("service_cache_misses_total") == idle.sum("service_cache_misses_total")
    for round_number in (1, 2, 3):
        assert s3.get("cached", "k").status == 200
        seen = scrape(measured)
        assert seen.sum("service_cache_misses_total") == blocks
        assert seen.sum("service_blocks_read_total") == blocks
        assert seen.sum("service_cache_hits_total") == (round_number - 1) * blocks
        assert seen.sum("service_device_read_bytes_total") >= blocks * BLOCK_BYTES
    reads = seen.histogram("service_device_read_duration_seconds")
    assert 1 <= reads.count <= blocks and reads.sum > 0


def test_commits_are_counted_exactly(measured: Cairn):
    """Each change is in one batch, each batch has a duration, and payloads in volumes are flushed before it."""
    s3 = measured.s3
    s3.create_bucket("committed")
    before = scrape(measured)
    changes = 25
    for number in range(changes):
        assert s3.put("committed", f"k{number}", bytes(2 * BLOCK_BYTES if number % 5 == 0 else 10)).status == 200
    seen = scrape(measured)
    name = "service_commit_batch_changes"
    assert seen.histogram(name).sum - before.histogram(name).sum == changes
    commits = seen.histogram(name).count - before.histogram(name).count
    assert commits == changes, "a single client that waits for each answer must get one batch for each change"
    duration = "service_commit_duration_seconds"
    once(measured, lambda seen: seen.histogram(duration).count - before.histogram(duration).count == commits)
    flushes = seen.histogram("service_volume_flush_duration_seconds").count
    assert flushes - before.histogram("service_volume_flush_duration_seconds").count == changes / 5
    assert seen.sum("service_committer_queue_length") == 0


def test_capacity_and_free_space_are_those_of_the_file_system(measured: Cairn):
    """Another process may write to the same file system, so free space is compared roughly."""
    seen, disk = scrape(measured), os.statvfs(measured.data)
    assert seen.sum("service_storage_capacity_bytes") == disk.f_blocks * disk.f_frsize
    assert 0 < seen.sum("service_storage_available_bytes") <= seen.sum("service_storage_capacity_bytes")
    status = managed(measured, "GET", "/api/v1/storage/status").json()
    assert seen.sum("service_storage_available_bytes") == pytest.approx(status["available_bytes"], rel=0.2)


def of_buckets(seen: Scrape, figure: str) -> dict[str, float]:
    """Returns the values of a metric of buckets."""
    name = f"service_bucket_{figure}"
    return {dict(labels)["bucket"]: value for (own, labels), value in seen.values.items() if own == name}


def test_largest_buckets_have_metrics_of_their_own(make_store):
    """Those with the most bytes of all versions, at most as many as configured; a bucket that outgrows others takes their place."""
    store = make_store(SERVICE_METRICS_SCRAPE_TOKEN=SCRAPE_TOKEN, SERVICE_METRICS_BUCKETS_MAX="2").start()
    for name in ("small", "kept", "large"):
        store.s3.create_bucket(name)
    answer = managed(store, "PUT", "/api/v1/buckets/kept/versioning", json={"versioning": "Enabled"})
    assert answer.status_code == 200, answer.text
    for bucket, key, size in (("small", "a", 1000), ("kept", "a", 800), ("kept", "a", 700), ("large", "a", 900), ("large", "b", 2000)):
        assert store.s3.put(bucket, key, bytes(size)).status == 200
    seen = scrape(store)
    assert faults(seen) == []
    assert of_buckets(seen, "logical_bytes") == {"kept": 700, "large": 2900}
    assert of_buckets(seen, "physical_bytes") == {"kept": 1500, "large": 2900}
    assert of_buckets(seen, "objects") == {"kept": 1, "large": 2}
    assert store.s3.put("small", "b", bytes(5000)).status == 200
    assert of_buckets(scrape(store), "physical_bytes") == {"large": 2900, "small": 6000}


def test_no_bucket_has_metrics_if_none_may(make_store):
    """By default 100 may, and an empty bucket is one of them."""
    for most, count in (("0", 0), (None, 1)):
        store = make_store(SERVICE_METRICS_SCRAPE_TOKEN=SCRAPE_TOKEN, SERVICE_METRICS_BUCKETS_MAX=most).start()
        store.s3.create_bucket("empty")
        assert len(of_buckets(scrape(store), "objects")) == count


def test_put_over_the_quota_is_counted_as_refused(measured: Cairn):
    """Refusals are counted by reason."""
    measured.s3.create_bucket("limited")
    quota = {"bytes": {"mode": "limit", "bytes": 1000}, "objects": {"mode": "unlimited"}}
    answer = managed(measured, "PUT", "/api/v1/buckets/limited/quota", json={"quota": quota})
    assert answer.status_code == 200, answer.text
    assert measured.s3.put("limited", "k", bytes(900)).status == 200
    for _ in range(3):
        assert measured.s3.request("PUT", "/limited/l", None, bytes(200)).status == 403
    seen = scrape(measured)
    assert seen.sum("service_writes_refused_total", reason="quota") == 3
    assert seen.sum("service_writes_refused_total") == 3


def test_response_that_fails_in_its_body_is_counted_as_failed(measured: Cairn):
    """The status 200 was already sent, but the request must not count as a success or as a client disconnect."""
    s3, body = measured.s3, random.Random(5).randbytes(16 * BLOCK_BYTES)
    s3.create_bucket("hurt")
    s3.put("hurt", "k", body)
    assert measured.stop() == 0
    (place,) = find_bytes(volumes(measured.data), body[12 * BLOCK_BYTES :][:64])
    flip_bit(*place, 3)
    measured.start()
    status, got, complete = read(measured.s3, "hurt", "k")
    assert status == 200 and body.startswith(got) and not complete
    cut = {outcome: float(outcome == "body_failed") for outcome in ("client_gone", "body_failed", "deadline_passed")}
    seen = once(measured, lambda seen: seen.sum("service_errors_total") == 1)
    assert {outcome: seen.sum("service_requests_cut_short_total", outcome=outcome) for outcome in cut} == cut


def test_connections_are_counted(measured: Cairn):
    """Open connections go up and down. Accepted connections only increase."""
    before = scrape(measured)
    data = {"plane": "data"}
    opened = [socket.create_connection((LOOPBACK, measured.s3_port)) for _ in range(9)]
    accepted = before.sum("service_connections_accepted_total", **data) + len(opened)
    open_before = before.sum("service_connections_open", **data)
    seen = once(measured, lambda seen: seen.sum("service_connections_accepted_total", **data) == accepted)
    assert seen.sum("service_connections_open", **data) == open_before + len(opened)
    for connection in opened:
        connection.close()
    # An earlier scrape may not have ended on the server's side.
    only_this = lambda seen: seen.sum("service_connections_open", **data) == open_before and seen.sum("service_requests_open", plane="management") == 1
    assert once(measured, only_this).sum("service_connections_accepted_total", **data) == accepted


def test_client_timeouts_are_counted_by_phase(make_store):
    """The clients send nothing, an incomplete head, or an incomplete body."""
    short = {f"SERVICE_SERVER_{name}_TIMEOUT_SECONDS": "1" for name in ("HEAD", "IDLE", "BODY")}
    store = make_store(SERVICE_METRICS_SCRAPE_TOKEN=SCRAPE_TOKEN, **short).start()
    store.s3.create_bucket("slow")
    head = store.s3.signed_head("PUT", "/slow/k", body=bytes(100))
    sent = (b"", b"GET / HT", encode_head("PUT", "/slow/k", head) + b"half")
    opened = []
    for first in sent:
        opened.append(socket.create_connection((LOOPBACK, store.s3_port)))
        opened[-1].sendall(first)
    name, data = "service_client_timeouts_total", {"plane": "data"}
    seen = once(store, lambda seen: all(seen.sum(name, **data, phase=phase) for phase in ("idle", "head", "body")))
    assert seen.sum(name, **data, phase="head") == 1 and seen.sum(name, **data, phase="body") == 1
    for connection in opened:
        connection.close()


# All of them may be the test's own.
SIXTEEN = {
    "SERVICE_METRICS_SCRAPE_TOKEN": SCRAPE_TOKEN, "SERVICE_SERVER_CONNECTIONS_MAX": "16",
    "SERVICE_SERVER_CONNECTIONS_PER_CLIENT_MAX": "0",
}


def test_connections_over_the_limit_are_counted_as_refused(make_store):
    """The limit is sixteen connections, and a request is in progress on each."""
    store = make_store(**SIXTEEN).start()
    store.s3.create_bucket("busy")
    head = encode_head("PUT", "/busy/k", store.s3.signed_head("PUT", "/busy/k", body=bytes(100)))
    once(store, lambda seen: seen.sum("service_connections_open", plane="data") == 0)
    opened = [socket.create_connection((LOOPBACK, store.s3_port)) for _ in range(16)]
    for connection in opened:
        connection.sendall(head)
    full = once(store, lambda seen: seen.sum("service_requests_open", plane="data") == 16)
    # Each executor publishes four times a second whether one of its connections is idle, on each plane.
    checks = full.histogram("service_executor_delay_seconds").count
    once(store, lambda seen: seen.histogram("service_executor_delay_seconds").count >= checks + 16)
    opened += [socket.create_connection((LOOPBACK, store.s3_port)) for _ in range(3)]
    seen = once(store, lambda seen: seen.sum("service_connections_refused_total", plane="data") >= 3)
    assert seen.sum("service_connections_refused_total", plane="data") == 3
    assert seen.sum("service_connections_evicted_total", plane="data") == 0
    seen = once(store, lambda seen: seen.sum("service_requests_total", plane="data", method="none") == 3)
    unread = '{plane="data",method="none"'
    assert "service_requests_total" + unread in seen.text
    assert "service_request_duration_seconds_count" + unread not in seen.text, "a refused connection must not add a latency"
    for connection in opened:
        connection.close()


def is_put(store) -> bool:
    """Puts an object on a new connection. Returns whether the server served it."""
    try:
        return store.s3.request("PUT", object_target("kept", "key")).status == 200
    except WireError:
        return False


def test_silent_connections_make_room_for_others(make_store):
    """Regression: silent connections up to the limit locked everybody out, and nothing limited how long."""
    patient = {f"SERVICE_SERVER_{name}_TIMEOUT_SECONDS": "300" for name in ("FIRST_REQUEST", "IDLE")}
    store = make_store(**SIXTEEN, **patient).start()
    store.s3.create_bucket("kept")
    opened = [socket.create_connection((LOOPBACK, store.s3_port)) for _ in range(40)]
    # In the first quarter of a second of such a flood, an executor may not know yet that connections are idle.
    until(lambda: is_put(store), "locked out by silent connections")
    seen = once(store, lambda seen: seen.sum("service_connections_evicted_total", plane="data") > 0)
    checks = seen.histogram("service_executor_delay_seconds").count
    seen = once(store, lambda seen: seen.histogram("service_executor_delay_seconds").count >= checks + 16)
    refused = seen.sum("service_connections_refused_total", plane="data")
    for number in range(20):
        store.s3.put("kept", str(number))
    seen = scrape(store)
    assert seen.sum("service_connections_refused_total", plane="data") == refused
    for connection in opened:
        connection.close()


def test_process_and_build_metrics_are_exported(measured: Cairn):
    """Covers start time, descriptors, memory, CPU time, and the version that the system information reports."""
    # What the kernel does not tell in time is left out.
    seen = once(measured, lambda seen: "process_start_time_seconds" in seen.families)
    assert abs(seen.sum("process_start_time_seconds") - time.time()) < 120
    assert seen.sum("process_max_fds") >= seen.sum("process_open_fds") > 10
    assert seen.sum("process_virtual_memory_bytes") > seen.sum("process_resident_memory_bytes") > 1 << 20
    assert seen.sum("process_cpu_seconds_total") > 0
    info = managed(measured, "GET", "/api/v1/system/info").json()
    assert seen.sum("service_build_info", version=info["version"]) == 1
    delay = once(measured, lambda seen: seen.histogram("service_executor_delay_seconds").count > 4)
    assert delay.histogram("service_executor_delay_seconds").sum >= 0


# Docs, dashboard, rules


def documented() -> dict[str, tuple[str, set[str], str]]:
    """Returns type, labels and help of each metric from the table in docs/metrics.md."""
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| ([^|]*) \| (.*) \|$", (DOCS / "metrics.md").read_text(), re.MULTILINE)
    return {name: (kind, set(re.findall(r"`(\w+)`", labels)), told) for name, kind, labels, told in rows}


def shown(seen: Scrape) -> dict[str, tuple[str, set[str], str]]:
    """Returns type, labels and help of each metric from a scrape."""
    told = dict(re.findall(r"^# HELP (\w+) (.*)$", seen.text, re.MULTILINE))
    return {name: (kind, seen.labels_of(name), told[name]) for name, kind in seen.families.items()}


def test_documentation_lists_exactly_the_exported_metrics(measured: Cairn, make_store, tmp_path: Path):
    """Name, type, labels and help are equal. TLS metrics are exported only if TLS is enabled."""
    busy(measured)
    authority = Authority(tmp_path)
    secure = make_store(**authority.issue("metrics").environment(), SERVICE_METRICS_SCRAPE_TOKEN=SCRAPE_TOKEN).start()
    of_tls = {name: row for name, row in shown(scrape(secure, authority.certificate)).items() if name.startswith("service_tls_")}
    assert len(of_tls) == 4
    assert documented() == shown(scrape(measured)) | of_tls


def assert_known(expression: str) -> None:
    """Asserts that every metric and label of an expression is in the table."""
    table = documented()
    samples = {name for name, (kind, _, _) in table.items() if kind != "histogram"}
    histograms = {name for name, (kind, _, _) in table.items() if kind == "histogram"}
    samples |= {name + suffix for name in histograms for suffix in ("_bucket", "_sum", "_count")}
    used = promql_names(expression)
    assert used and used <= samples, (expression, used - samples)
    own = [table[name if name in table else name.rpartition("_")[0]][1] for name in used]
    assert promql_labels(expression) <= set().union(*own) | {"le", "job", "instance"}, expression


def assert_own(expression: str) -> None:
    """Asserts that queries of process metrics select this service's job: every exporter has the same names."""
    selectors = re.findall(r"\bprocess_\w+(\{[^}]*\})?", expression)
    assert all('job="cairn"' in selector for selector in selectors), expression


def test_promql_tokenizer_finds_names_and_labels():
    """The next two tests depend on the tokenizer."""
    found = promql_names('sum by (plane) (rate(a_total{route="b"}[5m])) / on (x) group_left () c > 1.5e3 and time() - d offset 5m')
    assert found == {"a_total", "c", "d"}
    assert promql_labels('sum by (plane, le) (a{x="1",y!~"2"})') == {"plane", "le", "x", "y"}


def test_dashboard_queries_only_existing_metrics():
    """The dashboard can be imported; each panel has a position, a title, and queries of known metrics and labels."""
    board = json.loads((DOCS / "grafana-dashboard.json").read_text())
    assert board["uid"] and board["title"] and board["schemaVersion"] >= 36
    panels = [panel for panel in board["panels"] if panel["type"] != "row"]
    assert len(panels) >= 20 and len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    taken = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        assert not cells & taken and place["x"] + place["w"] <= 24, panel["title"]
        taken |= cells
    for panel in panels:
        assert panel["title"] and panel["targets"] and panel["datasource"]["uid"] == "${datasource}"
        for target in panel["targets"]:
            assert_known(target["expr"].replace("$__rate_interval", "5m"))
            assert_own(target["expr"])
    assert not any("allValue" in variable for variable in board["templating"]["list"]), "a custom value for All would include other jobs"


def test_alert_rules_use_only_existing_metrics():
    """Each rule has a severity, a summary and a description of what to do."""
    groups = yaml.safe_load((DOCS / "alerts.yml").read_text())["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert len(rules) >= 12 and len({rule["alert"] for rule in rules}) == len(rules)
    for rule in rules:
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations", "keep_firing_for"}
        assert re.fullmatch(r"[A-Z]\w+", rule["alert"]) and rule["labels"]["severity"] in ("critical", "warning")
        assert rule["annotations"]["summary"] and rule["annotations"]["description"]
        if rule["expr"].strip() != "up{job=\"cairn\"} == 0":
            assert_known(rule["expr"])
        assert_own(rule["expr"])
