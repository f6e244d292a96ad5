"""The Lighthouse scores of the console: accessibility and best practices 100, performance at least 95.

Installs Lighthouse from npm into the cache of the tests, and runs it with Debian's Chromium against the login and against the
overview of somebody who is signed in. On a busy machine the performance is not reliable.
"""

import argparse
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from harness import showcase
from harness.browser import program
from harness.console import signed_in
from harness.page import start_with_console
from harness.receiver import Receiver
from harness.server import RUNS, Cairn
from runner import cache

VERSION = "13.5.0"
LEAST = {"accessibility": 100, "best-practices": 100, "performance": 95}
# Chromium sometimes records no beginning of a page load. Lighthouse then asks to be run again.
LOST_TRACE = "NO_NAVSTART"
ATTEMPTS = 5
FLAGS = "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage"


def installed() -> Path:
    """Returns the program; npm installs it the first time."""
    def build(folder: Path) -> None:
        command = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error", "--prefix", str(folder), f"lighthouse@{VERSION}"]
        subprocess.run(command, check=True)

    return cache.entry("lighthouse", cache.key_of(VERSION), build) / "node_modules/.bin/lighthouse"


def scores(lighthouse: Path, url: str, folder: Path, form: str, cookie: str = "") -> dict:
    """Runs it for a URL and returns its report."""
    out = folder / "report.json"
    command = [str(lighthouse), url, "--quiet", "--output=json", f"--output-path={out}", f"--only-categories={','.join(LEAST)}", f"--chrome-flags={FLAGS}"]
    command += ["--preset=desktop"] if form == "desktop" else []
    if cookie:
        headers = folder / "headers.json"
        headers.write_text(json.dumps({"Cookie": cookie}))
        command.append(f"--extra-headers={headers}")
    environment = os.environ | {"CHROME_PATH": program("chromium"), "HOME": str(folder)}
    for _ in range(ATTEMPTS):
        done = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True)
        if done.returncode == 0:
            return json.loads(out.read_text())
        if LOST_TRACE not in done.stderr:
            break
    raise RuntimeError(f"Lighthouse ended with {done.returncode}:\n{done.stderr}")


def main(arguments: list[str]) -> int:
    """Prints the scores with what they lack, and fails if one is too low."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--form", choices=("desktop", "mobile"), action="append", help="this form alone (default both)")
    given = parser.parse_args(arguments)
    lighthouse = installed()
    RUNS.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="lighthouse-", dir=RUNS))
    store = Cairn(folder / "store", {"SERVICE_WEBHOOKS_ALLOW_HTTP": "true", "SERVICE_WEBHOOKS_ALLOW_PRIVATE_NETWORKS": "true"})
    is_good = True
    receiver = Receiver()
    try:
        start_with_console(store)
        showcase.fill_store(store, receiver)
        console = signed_in(store)
        cookie = "; ".join(f"{name}={value}" for name, value in console.cookies.cookies.items())
        for form in given.form or ("desktop", "mobile"):
            for name, place, sent in (("login", "/", ""), ("overview", "/#/overview", cookie)):
                report = scores(lighthouse, console.address + place, folder, form, sent)
                found = {category: round(report["categories"][category]["score"] * 100) for category in LEAST}
                good = all(found[category] >= least for category, least in LEAST.items())
                is_good &= good
                print(f"{form:8} {name:9} " + "  ".join(f"{category} {score}" for category, score in found.items()), "" if good else "  TOO LOW", flush=True)
                for category in LEAST:
                    for reference in report["categories"][category]["auditRefs"]:
                        audit = report["audits"][reference["id"]]
                        if audit["score"] is not None and audit["score"] < 0.9 and reference["weight"] > 0:
                            print(f"  {category}: {audit['title']} {audit.get('displayValue', '')}")
    finally:
        receiver.close()
        store.kill()
    shutil.rmtree(folder)
    return 0 if is_good else 1
