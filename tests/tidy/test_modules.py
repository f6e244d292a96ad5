"""The structure within each crate: folders are layers, and files import each other without cycles."""

from functools import cache
from pathlib import Path

import pytest
from tidy.modules import Crate

REPOSITORY = Path(__file__).resolve().parents[2]

# Folders and files at the top of each crate, from the bottom up. An item may import from earlier lines, and from its own.
# `lib.rs` and `main.rs` are apart: they declare the modules and choose the public names.
LAYERS: dict[str, list[set[str]]] = {
    "model": [
        {
            "bucket_name", "calendar", "client_network", "etag", "glob", "highest_time", "integers", "ip_network", "metrics", "named_enum", "object_key", "text_search", "time",
            "time_id", "version_id", "xml_char",
        },
        {"iso8601", "json"},
    ],
    "http1": [
        {"chunked", "date", "percent", "syntax"},
        {"disposition", "head", "query", "range", "response"},
        {"conditional", "forwarded"},
        {"fuzz"},
    ],
    "lmdb": [
        {"error", "flush_failures", "folder", "limits", "log_position", "meta_page", "reader_table", "readers", "reading_threads", "record", "table"},
        {"changed_keys", "data_file", "generation", "iterators", "steady_io", "totals"},
        {"current", "free_pages", "lookups", "page_cache"},
        {"log"},
        {"environment"},
        {"txn"},
        {"compact", "discard_log", "snapshot", "store_identity"},
        {"absent_tables", "compact_open"},
        {"rebuild"},
        {"salvage"},
        {"fuzz"},
    ],
    "tables": [{"schema", "seal"}, {"error"}, {"reader", "store", "writer"}],
    "engine": [
        {"error", "fault_reports", "limits"},
        {"counters"},
        {"fault"},
        {"types"},
        {"format"},
        {"device"},
        {"space"},
        {"slice"},
        {"commit"},
        {"maintenance"},
        {"store"},
        {"executor"},
        {"read", "write"},
        {"list"},
        {"api"},
        {"check"},
        {"lifecycle", "search"},
        {"backup"},
        {"salvage"},
        {"fuzz", "simulation"},
    ],
    "api": [
        {"openapi", "optional", "reading", "text"},
        {"accounts", "audit", "buckets", "errors", "events", "lifecycle", "links", "policies", "public_access", "storage", "system", "tokens", "verification", "visitors"},
        {"objects", "parameters", "refused_requests", "webhooks"},
        {"imports"},
    ],
    "net": [{"drain", "limits", "metrics"}, {"host", "transport"}, {"executor", "service"}, {"connection"}, {"server"}],
    "identity": [
        {"chunk_signatures", "id", "last_use", "policy", "role", "throttle"}, {"credential"}, {"directory", "request"}, {"sigv4"}, {"fuzz"},
    ],
    "observe": [{"refusal_facts", "request_id", "request_record"}, {"metrics"}, {"audit", "log", "refused_requests"}, {"request_log"}],
    "transfer": [{"archive_names", "body_reader", "checksum", "join", "list_token", "plan", "send", "zip"}, {"receive", "small_body"}],
    "cors": [{"origin", "rule"}, {"checks"}, {"rules"}],
    "sharing": [
        {"limits"},
        {"schema", "types"},
        {"error"},
        {"checks", "denied", "downloads", "password", "policy", "recordable"},
        {"store"},
        {"links"},
        {"public"},
        {"fuzz"},
    ],
    "openid": [
        {"limits", "text"}, {"error"}, {"settings"}, {"token"}, {"logouts", "pending", "person", "tasks"}, {"provider"}, {"sign_ins"},
    ],
    "webhooks": [
        {"limits"},
        {"schema"},
        {"error", "event_body", "id", "signature"},
        {"destination"},
        {"client"},
        {"store"},
        {"delivery", "view"},
        {"webhooks"},
        {"fuzz"},
    ],
    "s3": [
        {"errors", "compatibility", "limits"},
        {"request", "xml"},
        {"headers"},
        {"access", "forms"},
        {"call"},
        {"body", "multipart", "reply"},
        {"cors", "lifecycle"},
        {"ops"},
        {"operations"},
        {"misplaced_headers", "routing"},
        {"refusals"},
        {"service"},
        {"unavailable"},
        {"fuzz"},
    ],
    "admin": [
        {"error", "health", "limits", "operation"},
        {"import_rate"},
        {"archives", "import_runs", "import_turns", "metrics", "reply", "request", "verification", "waits"},
        {"access"},
        {"context"},
        {"call"},
        {"handlers"},
        {"checks"},
        {"routes"},
        {"service"},
    ],
    "console": [{"content_type", "hosts"}, {"files"}, {"service"}],
    "server": [
        {"addresses", "memory_sizes", "small_file"},
        {"config"},
        {"certificates", "host"},
        {"dev"},
        {"load"},
        {"error"},
        {"budget"},
        {"check", "serve"},
        {"fuzz"},
    ],
    "md5": [{"steps"}, {"stream"}, {"avx2", "avx512"}, {"avx512vl"}, {"digest", "lanes"}],
    "sync": [{"condvar", "mutex", "rwlock"}],
    "trust": [{"authorities"}, {"tls"}],
    "xml": [{"element"}, {"document"}],
    "cairn": [{"choice", "environment", "quantity", "terminal"}, {"document", "failure", "moment"}, {"output"}, {"client", "s3"}, {"doctor"}, {"commands"}],
    "loadtests": [
        {"failure", "random", "units", "workload"},
        {"measure", "objects"},
        {"http"},
        {"arguments"},
        {"plan"},
        {"report"},
        {"commands", "run"},
    ],
}
CRATES = sorted(LAYERS)


@cache
def crate(name: str) -> Crate:
    """The import graph of a crate, read once."""
    return Crate(REPOSITORY / name / "src")


def test_every_crate_is_listed():
    """A new crate states its layers."""
    found = {path.parents[1].name for path in REPOSITORY.glob("*/src/*.rs") if path.name in ("lib.rs", "main.rs")}
    assert found - {"benches", "fuzz"} == set(CRATES)


@pytest.mark.parametrize("name", CRATES)
def test_the_graph_is_read(name: str):
    """A graph without edges would pass every rule below."""
    assert len(crate(name).modules) > 1
    assert name == "model" or any(crate(name).edges.values())


@pytest.mark.parametrize("name", sorted(LAYERS))
def test_every_folder_has_a_layer(name: str):
    """And the table lists no folder that is gone."""
    found = {crate(name).place(path) for path in crate(name).modules} - {"lib"}
    assert found <= set().union(*LAYERS[name]), f"without a layer: {sorted(found - set().union(*LAYERS[name]))}"
    gone = set().union(*LAYERS[name]) - found - {"fuzz", "simulation"}
    assert not gone, f"not there any more: {sorted(gone)}"


@pytest.mark.parametrize("name", sorted(LAYERS))
def test_imports_point_down(name: str):
    """A folder imports from lower layers only."""
    level = {place: number for number, places in enumerate(LAYERS[name]) for place in places}
    graph, wrong = crate(name), []
    for path, targets in graph.edges.items():
        for target, names in targets.items():
            place, other = graph.place(path), graph.place(target)
            if "lib" not in (place, other) and level[other] > level[place]:
                wrong.append(f"{'/'.join(path)} imports {sorted(names)} from {'/'.join(target)}")
    assert wrong == []


@pytest.mark.parametrize("name", sorted(LAYERS))
def test_modules_do_not_import_through_the_root(name: str):
    """A name is imported from the file that defines it, so that the layers are visible."""
    graph = crate(name)
    wrong = [f"{'/'.join(path)}: {sorted(targets[()])}" for path, targets in graph.edges.items() if () in targets and path]
    assert wrong == []


@pytest.mark.parametrize("name", CRATES)
def test_files_have_no_import_cycles(name: str):
    """A module and those inside it count as files of their own."""
    assert crate(name).cycles() == []


@pytest.mark.parametrize("name", CRATES)
def test_folders_have_no_import_cycles(name: str):
    """At every depth: an order of the files is not enough if two folders need each other."""
    assert crate(name).folder_cycles() == []


def test_a_planted_cycle_and_a_planted_re_export_are_found(tmp_path: Path):
    """The reader of the sources sees grouped imports, paths in code, re-exports and `super`, and leaves test code out."""
    sources = {
        "lib.rs": "mod low;\nmod high;\n",
        "low.rs": "use crate::high::{\n    inner::{Deep as Renamed},\n};\n#[cfg(test)]\nmod tests {\n    use crate::nothing::X;\n}\n",
        "high/mod.rs": "pub(crate) mod inner;\npub(crate) use inner::Deep;\n",
        "high/inner.rs": "pub struct Deep;\nfn f() { crate::low::call(\"crate::high::text\") }\n",
    }
    for name, text in sources.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    graph = Crate(tmp_path)
    assert graph.cycles() == [["high/inner.rs", "low.rs"]]
    assert graph.edges[("low",)] == {("high", "inner"): {"Deep"}}
    assert graph.edges[("high", "inner")] == {("low",): {"call"}}


def test_planted_cycles_of_a_parent_and_of_folders_are_found(tmp_path: Path):
    """A module that needs its parent, and two folders that need each other although their files have an order."""
    sources = {
        "lib.rs": "mod a;\nmod b;\nmod top;\n",
        "a/mod.rs": "pub(crate) mod one;\npub(crate) mod two;\n",
        "a/one.rs": "use crate::b::three::Three;\npub struct One;\n",
        "a/two.rs": "pub struct Two;\n",
        "b/mod.rs": "pub(crate) mod three;\n",
        "b/three.rs": "use crate::a::two::Two;\npub struct Three;\n",
        "top/mod.rs": "mod child;\nuse child::Child;\npub const LIMIT: u8 = 1;\n",
        "top/child.rs": "use super::LIMIT;\npub struct Child;\n",
    }
    for name, text in sources.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    graph = Crate(tmp_path)
    assert graph.cycles() == [["top/child.rs", "top/mod.rs"]]
    assert graph.folder_cycles() == [["a", "b"], ["top/child", "top/mod"]]
