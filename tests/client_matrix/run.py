"""Runs the clients against four servers: strict and extended, over plain HTTP and over TLS.

    tests/campaign clients [--clients boto3,mc] [--modes strict] [--transports TLS] [--operations copy,tags] [--keep]

Without options it runs everything, writes tests/client_matrix/results.json, and the tables of docs/clients.md from it. With a
choice it prints what it saw and writes nothing, unless --keep is given: then the chosen clients' results replace those before.
It fails if something no longer works that worked in results.json.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from client_matrix.clients import CLIENTS
from client_matrix.document import failures, write_document
from client_matrix.operations import ALL
from client_matrix.workspace import LISTED_OBJECTS, Workspace, Server
from harness.certificates import Authority
from harness.server import Cairn

TESTS = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).with_name("results.json")
MODES, TRANSPORTS, SETTINGS = ("strict", "extended"), ("HTTP", "TLS"), ("defaults", "recommended")
CLIENT_SECONDS = 1200
REASON_CHARACTERS_MAX = 230
# Clients run side by side: most of their time they start up.
SIDE_BY_SIDE = 2
# What differs from run to run.
VARIABLE = (
    (re.compile(r"127\.0\.0\.1:\d+|localhost:\d+"), "HOST"), (re.compile(r"/\S*cairn-clients-\S*?/"), ""),
    (re.compile(r"[bn]\d+-[0-9a-z-]+"), "BUCKET"), (re.compile(r"\b[0-9A-F]{16,32}\b|\b[0-9a-f]{16,64}\b"), "ID"), (re.compile(r"\s+"), " "),
    (re.compile(r"\x1b\[[0-9;]*m"), ""), (re.compile(r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d\S*"), "TIME"),
)

# The server's own words, where a client repeats them: so that the same cause reads the same for all clients.
CAUSES = (
    (re.compile(r"([A-Z]\w+(?: \w+)*(?: \([^()]+\))?) (is|are) not implemented"), r"\1 \2 not implemented"),
    (re.compile(r"The authorization mechanism you have provided is not supported"), "Signature version 2 is refused"),
    (re.compile(r"(This port speaks TLS)"), r"\1"),
)


def servers(folder: Path, modes: list[str], transports: list[str]) -> list[tuple[Cairn, Server]]:
    """Starts one server for each mode and transport, with a bucket of many objects for the lists."""
    authority = Authority(folder / "authority")
    pair = authority.issue("server")
    started = []
    for mode in modes:
        for transport in transports:
            extra = {"SERVICE_S3_COMPATIBILITY": mode}
            if transport == "TLS":
                extra |= pair.environment() | {"SERVICE_TLS_API_ENABLED": "false"}
            cairn = Cairn(folder / f"{mode}-{transport}", extra).start()
            # A name and not an address: some clients find no certificate for an address.
            server = Server(mode, transport, "localhost", cairn.s3_port, cairn.secrets.root_access_key, cairn.secrets.root_secret_key, authority.certificate)
            workspace = Workspace(server, "recommended", folder / f"prepare-{mode}-{transport}")
            workspace.checker.create_bucket(Bucket="many")
            workspace.fill("many", LISTED_OBJECTS)
            started.append((cairn, server))
    return started


def run_client(name: str, server: Server, settings: str, folder: Path, operations: list[str]) -> list[dict]:
    """Runs one client in a process of its own; its outcomes."""
    folder = folder / f"{name}-{server.mode}-{server.transport}-{settings}"
    folder.mkdir()
    given = json.dumps(vars(server) | {"authority": str(server.authority)})
    words = [sys.executable, "-m", "client_matrix.worker", name, settings, str(folder), *operations]
    started = time.monotonic()
    try:
        done = subprocess.run(words, input=given, capture_output=True, text=True, cwd=TESTS, timeout=CLIENT_SECONDS)
    except subprocess.TimeoutExpired:
        raise SystemExit(f"{name} did not end within {CLIENT_SECONDS} s") from None
    if done.returncode != 0:
        raise SystemExit(f"{name} broke down:\n{done.stderr[-4000:]}")
    # Some libraries write to the standard output, too.
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"operation"')]
    failed = [line["operation"] for line in lines if line["failure"]]
    print(f"{name:12} {server.mode:8} {server.transport:4} {settings:11} {time.monotonic() - started:5.1f} s  {len(lines) - len(failed)} of {len(lines)}"
          + (f", not {', '.join(failed)}" if failed else ""), flush=True)
    subprocess.run(["rm", "-rf", folder], check=True)
    place = {"client": name, "mode": server.mode, "transport": server.transport, "settings": settings}
    return [place | {"operation": line["operation"], "failure": reason(line["failure"])} for line in lines]


def reason(failure: str | None) -> str | None:
    """Returns the telling part of a client's message, without what differs from run to run."""
    if failure is None:
        return None
    for pattern, text in VARIABLE:
        failure = pattern.sub(text, failure)
    for pattern, text in CAUSES:
        found = pattern.search(failure)
        if found:
            return found.expand(text)
    failure = failure.strip()
    return failure if len(failure) <= REASON_CHARACTERS_MAX else f"{failure[:REASON_CHARACTERS_MAX]}…"


def jobs(names: list[str], found: list[Server]) -> list[tuple[str, Server, str]]:
    """Lists what is run: recommended settings only where there are some."""
    chosen = []
    for name in names:
        for server in found:
            if server.transport in CLIENTS[name].not_over:
                continue
            chosen += [(name, server, settings) for settings in SETTINGS
                       if settings == "defaults" or (server.mode, server.transport) in CLIENTS[name].recommended]
    return chosen


def version_of(name: str) -> str:
    """Returns a client's version."""
    def run(*words: object) -> str:
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=True)
        return done.stdout or done.stderr

    return CLIENTS[name].version(run)


def main(arguments: list[str]) -> int:
    """Runs what the command line chooses."""
    parser = argparse.ArgumentParser(prog="tests/campaign clients", description=__doc__.split("\n")[0])
    parser.add_argument("--clients", default=",".join(CLIENTS), help="comma-separated; default: all")
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--transports", default=",".join(TRANSPORTS))
    parser.add_argument("--operations", default=",".join(ALL))
    parser.add_argument("--keep", action="store_true", help="replaces the chosen clients' results")
    options = parser.parse_args(arguments)
    names, operations = options.clients.split(","), options.operations.split(",")
    whole = (options.modes, options.transports, options.operations) == (",".join(MODES), ",".join(TRANSPORTS), ",".join(ALL))
    versions = {name: version_of(name) for name in names}
    outcomes = run_all(names, options.modes.split(","), options.transports.split(","), operations)
    print(*failures(outcomes), sep="\n")
    lost = regressions(outcomes)
    if whole and (options.keep or options.clients == ",".join(CLIENTS)):
        keep(versions, outcomes)
    print(*(f"worked before: {' '.join(place)}" for place in lost), sep="\n")
    return 1 if lost else 0


def regressions(outcomes: list[dict]) -> list[tuple[str, ...]]:
    """Lists what failed now and works in results.json."""
    kept = {place_of(item) for item in results()["outcomes"] if not item["failure"]}
    return [place_of(item) for item in outcomes if item["failure"] and place_of(item) in kept]


def place_of(outcome: dict) -> tuple[str, ...]:
    """Returns what was run: all but whether it worked."""
    return tuple(outcome[column] for column in ("client", "mode", "transport", "settings", "operation"))


def results() -> dict:
    """Reads results.json."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {"versions": {}, "outcomes": []}


def run_all(names: list[str], modes: list[str], transports: list[str], operations: list[str]) -> list[dict]:
    """Runs the clients, each several times, side by side; all outcomes in the order of the tables."""
    with tempfile.TemporaryDirectory(prefix="cairn-clients-") as made, ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        folder = Path(made)
        started = servers(folder, modes, transports)
        try:
            ordered = jobs(names, [server for _, server in started])
            results = pool.map(lambda job: run_client(*job, folder, operations), ordered)
            return [item for items in results for item in items]
        finally:
            for cairn, _ in started:
                cairn.kill()


def keep(versions: dict[str, str], outcomes: list[dict]) -> None:
    """Writes the results, with those of clients that were not run as they were, and the document."""
    before = results()
    old = [item for item in before["outcomes"] if item["client"] not in versions and item["client"] in CLIENTS]
    versions = {name: versions.get(name) or before["versions"].get(name) for name in CLIENTS}
    order = {name: number for number, name in enumerate(CLIENTS)}
    merged = sorted(old + outcomes, key=lambda item: order[item["client"]])
    lines = ",\n".join(json.dumps(item, ensure_ascii=False) for item in merged)
    RESULTS.write_text(f'{{"versions": {json.dumps(versions)},\n"outcomes": [\n{lines}\n]}}\n')
    write_document()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
