"""Attacks the metrics: their form, exact counts of what was done, and that docs, dashboard and alert rules name real ones."""

import json
import random
import re
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import requests
import yaml

from harness.certificates import Authority
from harness.damage import find_bytes, flip_bit, read, volumes
from harness.management import bearer
from harness.metrics import (
    SCRAPE_TOKEN, TIMEOUT, Scrape, faults, promql_labels, promql_names, scrape, structure_faults,
)
from harness.server import LOOPBACK, REPOSITORY, Cairn
from harness.wire import encode_head

BLOCK_BYTES = 65_536
PATIENCE_SECONDS = 20.0
OBJECT = "/{bucket}/{key}"
DOCS = REPOSITORY / "docs"


@pytest.fixture
def measured(make_store) -> Cairn:
    """A store that nobody else uses, with a scrape token."""
    return make_store(SERVICE_METRICS_SCRAPE_TOKEN=SCRAPE_TOKEN).start()


def once(store: Cairn, holds: Callable[[Scrape], bool]) -> Scrape:
    """The first scrape that shows what is expected: a request is counted when its response has been handed to the socket,
    which its client may see a moment earlier."""
    give_up = time.monotonic() + PATIENCE_SECONDS
    while not holds(seen := scrape(store)):
        assert time.monotonic() < give_up, seen.text
    return seen


def managed(store: Cairn, method: str, path: str, **options) -> requests.Response:
    """A request with the system token."""
    return requests.request(method, store.management + path, headers=bearer(store.secrets.system_token), timeout=TIMEOUT, **options)


def busy(store: Cairn) -> None:
    """A little of everything, so that every metric has samples."""
    s3 = store.s3
    s3.create_bucket("busy")
    s3.put("busy", "small", b"1")
    s3.put("busy", "large", bytes(3 * BLOCK_BYTES))
    assert s3.get("busy", "large").status == 200 and s3.get("busy", "none").status == 404
    s3.request("GET", "/busy?acl")
    s3.send_raw("BREW", "/busy", [("Host", s3.authority)])


# Form


def test_the_exposition_is_what_scrapers_demand(measured: Cairn):
    """The rules of `promtool check metrics`, on an idle store and on one that has worked."""
    assert faults(scrape(measured)) == []
    busy(measured)
    seen = scrape(measured)
    assert faults(seen) == []
    assert len(seen.families) > 50, "the parser saw them all"


def test_the_rules_themselves_find_faults():
    """A judge that finds nothing would pass everything."""
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


def test_metrics_are_for_scrapers(measured: Cairn):
    """Neither for managers nor for nobody."""
    for headers in ({}, bearer(measured.secrets.system_token)):
        assert requests.get(measured.management + "/metrics", headers=headers, timeout=TIMEOUT).status_code == 401


def test_json_shows_the_same_values(measured: Cairn):
    """Names, types, labels; and values, of what does not move between the two."""
    busy(measured)
    seen = once(measured, lambda seen: seen.sum("service_requests_total", plane="data") == 7)
    told = managed(measured, "GET", "/api/v1/system/metrics").json()["metrics"]
    assert {(one["name"], one["type"]) for one in told} == set(seen.families.items())
    for one in told:
        name, labels = one["name"], one["labels"]
        if name.startswith(("process_", "service_audit_", "service_executor_")) or "management" in labels.values():
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
    """By route, operation and class of status, with as many latencies, and every byte."""
    s3 = measured.s3
    s3.create_bucket("counted")
    for number in range(20):
        assert s3.put("counted", f"k{number % 5}", bytes(1000)).status == 200
    for number in range(30):
        assert s3.get("counted", f"k{number % 5}").status == 200
    missing = sum(len(s3.get("counted", f"none{number}").body) for number in range(7))
    assert s3.head("counted", "k0").status == 200
    data = {"plane": "data"}
    seen = once(measured, lambda seen: seen.sum("service_requests_total", **data) == 1 + 20 + 30 + 7 + 1)
    for method, operation, status_class, count in (
        ("PUT", "PutObject", "2xx", 20), ("GET", "GetObject", "2xx", 30), ("GET", "GetObject", "4xx", 7),
        ("HEAD", "HeadObject", "2xx", 1),
    ):
        labels = data | {"method": method, "route": OBJECT, "operation": operation}
        assert seen.sum("service_requests_total", **labels, status_class=status_class) == count
        latency = seen.histogram("service_request_duration_seconds", **labels)
        assert latency.count == seen.sum("service_requests_total", **labels)
        assert 0 < latency.sum < PATIENCE_SECONDS * latency.count
    assert seen.sum("service_request_bytes_total", **data) == 20 * 1000
    listed = seen.sum("service_response_bytes_total", **data)
    assert listed == 30 * 1000 + missing, "a bucket's creation, puts and a HEAD have no bytes in their answers"
    assert seen.sum("service_errors_total") == 0
    assert seen.sum("service_storage_logical_bytes") == 5 * 1000


def test_management_requests_are_counted_by_pattern(measured: Cairn):
    """The pattern and never the path; what is no route is one series, and so is a method that nobody knows."""
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


def test_no_client_makes_series(measured: Cairn):
    """Bounded label sets: nothing that a client sends can become a label."""
    def attack(number: int) -> None:
        for target in (f"/b{number}/k", f"/b?x{number}", f"/?{number}", f"/b/k?acl{number}", "/b?acl", "/b/k?torrent"):
            for method in ("GET", f"M{number}"):
                measured.s3.send_raw(method, target, [("Host", LOOPBACK), ("x-amz-x", str(number))])

    attack(0)
    before = len(scrape(measured).values)
    for number in range(1, 20):
        attack(number)
    after = scrape(measured)
    assert len(after.values) - before <= 30, "the scrapes' own series, on every executor's first"
    assert not re.search(r'"(M1|b7|/b)', after.text)


# What the store does


def test_blocks_come_from_the_device_once_and_then_from_the_cache(measured: Cairn):
    """Hits and misses are exact; bytes and latencies of the device go with them."""
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


def test_commits_are_counted(measured: Cairn):
    """Every change is in one batch; every batch has a duration; payloads in volumes were flushed first."""
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
    assert commits == changes, "one client that waits for each makes a batch of each"
    duration = "service_commit_duration_seconds"
    once(measured, lambda seen: seen.histogram(duration).count - before.histogram(duration).count == commits)
    flushes = seen.histogram("service_volume_flush_duration_seconds").count
    assert flushes - before.histogram("service_volume_flush_duration_seconds").count == changes / 5
    assert seen.sum("service_committer_queue_length") == 0


def test_a_put_beyond_the_quota_is_counted_as_refused(measured: Cairn):
    """By reason."""
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


def test_a_body_that_fails_in_its_middle_is_a_failure(measured: Cairn):
    """Its status was sent already: it counted as a success, and was cut short like one whose client had gone."""
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
    """Open ones go up and down; accepted ones only up."""
    before = scrape(measured)
    data = {"plane": "data"}
    opened = [socket.create_connection((LOOPBACK, measured.s3_port)) for _ in range(9)]
    accepted = before.sum("service_connections_accepted_total", **data) + len(opened)
    open_before = before.sum("service_connections_open", **data)
    seen = once(measured, lambda seen: seen.sum("service_connections_accepted_total", **data) == accepted)
    assert seen.sum("service_connections_open", **data) == open_before + len(opened)
    for connection in opened:
        connection.close()
    seen = once(measured, lambda seen: seen.sum("service_connections_open", **data) == open_before)
    assert seen.sum("service_connections_accepted_total", **data) == accepted
    assert seen.sum("service_requests_open", plane="management") == 1, "the scrape itself"


def test_clients_out_of_time_are_counted_by_phase(make_store):
    """One that says nothing, one that stops within its head, one within its body."""
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


def test_connections_past_the_limit_are_counted_as_refused(make_store):
    """With room for sixteen."""
    store = make_store(SERVICE_METRICS_SCRAPE_TOKEN=SCRAPE_TOKEN, SERVICE_SERVER_CONNECTIONS_MAX="16").start()
    opened = [socket.create_connection((LOOPBACK, store.s3_port)) for _ in range(19)]
    seen = once(store, lambda seen: seen.sum("service_connections_refused_total", plane="data") >= 3)
    assert seen.sum("service_connections_refused_total", plane="data") == 3
    seen = once(store, lambda seen: seen.sum("service_requests_total", plane="data", method="none") == 3)
    unread = '{plane="data",method="none"'
    assert "service_requests_total" + unread in seen.text
    assert "service_request_duration_seconds_count" + unread not in seen.text, "nobody waited 0 s"
    for connection in opened:
        connection.close()


def test_the_process_and_the_build_are_told(measured: Cairn):
    """Start, descriptors, memory, processor time; the version of the system information."""
    seen = scrape(measured)
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
    """Type, labels and help by name, from the table in docs/metrics.md."""
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| ([^|]*) \| (.*) \|$", (DOCS / "metrics.md").read_text(), re.MULTILINE)
    return {name: (kind, set(re.findall(r"`(\w+)`", labels)), told) for name, kind, labels, told in rows}


def shown(seen: Scrape) -> dict[str, tuple[str, set[str], str]]:
    """Type, labels and help by name, as a scrape has them."""
    told = dict(re.findall(r"^# HELP (\w+) (.*)$", seen.text, re.MULTILINE))
    return {name: (kind, seen.labels_of(name), told[name]) for name, kind in seen.families.items()}


def test_the_docs_list_every_metric_as_it_is(measured: Cairn, make_store, tmp_path: Path):
    """Name, type, labels and help of each; nothing more and nothing less. Those of TLS are there where it is on."""
    busy(measured)
    authority = Authority(tmp_path)
    secure = make_store(**authority.issue("metrics").environment(), SERVICE_METRICS_SCRAPE_TOKEN=SCRAPE_TOKEN).start()
    of_tls = {name: row for name, row in shown(scrape(secure, authority.certificate)).items() if name.startswith("service_tls_")}
    assert len(of_tls) == 4
    assert documented() == shown(scrape(measured)) | of_tls


def assert_known(expression: str) -> None:
    """Every metric and label of an expression is in the table."""
    table = documented()
    samples = {name for name, (kind, _, _) in table.items() if kind != "histogram"}
    histograms = {name for name, (kind, _, _) in table.items() if kind == "histogram"}
    samples |= {name + suffix for name in histograms for suffix in ("_bucket", "_sum", "_count")}
    used = promql_names(expression)
    assert used and used <= samples, (expression, used - samples)
    own = [table[name if name in table else name.rpartition("_")[0]][1] for name in used]
    assert promql_labels(expression) <= set().union(*own) | {"le", "job", "instance"}, expression


def assert_own(expression: str) -> None:
    """Metrics of processes are asked of this service's job: everybody's have the same names."""
    selectors = re.findall(r"\bprocess_\w+(\{[^}]*\})?", expression)
    assert all('job="cairn"' in selector for selector in selectors), expression


def test_promql_names_are_found():
    """The tokenizer that the next two tests rest on."""
    found = promql_names('sum by (plane) (rate(a_total{route="b"}[5m])) / on (x) group_left () c > 1.5e3 and time() - d offset 5m')
    assert found == {"a_total", "c", "d"}
    assert promql_labels('sum by (plane, le) (a{x="1",y!~"2"})') == {"plane", "le", "x", "y"}


def test_the_dashboard_shows_metrics_that_exist():
    """Importable JSON; each panel has its place, a title and queries of known metrics and labels."""
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
    assert not any("allValue" in variable for variable in board["templating"]["list"]), "all means all of ours"


def test_the_alert_rules_watch_metrics_that_exist():
    """Each says how bad it is, what it means and what to do."""
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
