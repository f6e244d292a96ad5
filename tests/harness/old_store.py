"""Small stores of earlier formats, which are kept in `tests/data/stores`, and how they were made.

A store of a format is made by the last program that wrote it: check out the commit before the one that raised `FORMAT_VERSION`,
build `cairn`, and run `cd tests && python -m harness.old_store <that binary> data/stores/format-<version>.tar.xz`. The archive has
the data folder of a server that was killed, so that its commit logs have something to apply, and `store.json` with the secrets and
with what clients saw.
"""

import json
import os
import subprocess
import sys
import tarfile
import tempfile
from hashlib import sha256
from pathlib import Path

from .accounts import create_account, statement
from .management import expect, segment
from .s3 import object_target, xml
from .server import REPOSITORY, Cairn, Secrets, clean_environment
from .shares import share_object

STORES = REPOSITORY / "tests/data/stores"
DESCRIPTION = "store.json"
# Deliveries to this address fail, so they stay in the queue.
TARGET = "http://127.0.0.1:9/hook"
EXTRA = {"SERVICE_WEBHOOKS_ALLOW_HTTP": "true", "SERVICE_WEBHOOKS_ALLOW_PRIVATE_NETWORKS": "true", "SERVICE_LOG": "service=warn"}
ENCRYPTED = {"SERVICE_STORAGE_ENCRYPTION_ENABLED": "true"}
BUCKETS = ("locked", "plain", "versioned")
PART = 5 << 20


def content(name: str, size: int) -> bytes:
    """Returns bytes that are different for each name, and small when they are compressed."""
    line = sha256(name.encode()).hexdigest().encode() + b"\n"
    return (line * (size // len(line) + 1))[:size]


def fill(store: Cairn) -> None:
    """Stores objects of all forms, versions, markers, uploads, locks, accounts, links and webhooks."""
    s3, admin = store.s3, store.admin
    expect(admin.post("/webhooks", {"target_url": TARGET, "event_types": ["object.created"], "bucket_filter": None}), 201)
    for bucket in BUCKETS:
        expect(admin.post("/buckets", {"name": bucket, "object_lock": bucket == "locked"}), 201)
    expect(admin.put("/buckets/versioned/versioning", {"versioning": "Enabled"}), 200)
    expect(admin.post("/buckets/versioned/lifecycle", {"prefix": "old/", "expiration": 3650}), 201)
    headers = [("content-type", "text/plain"), ("x-amz-meta-colour", "blue")]
    for key, size in (("empty", 0), ("inline", 900), ("in blocks", 300_000), ("a/ü", 17_000), ("table", 17 << 20)):
        s3.put("plain", key, content(key, size), headers)
    for number in range(4):
        s3.put("versioned", "k", content(f"k{number}", 100 + 20_000 * number))
    s3.delete("versioned", "k")
    s3.put("versioned", "old/k", content("old", 5))
    locked = [("x-amz-object-lock-mode", "GOVERNANCE"), ("x-amz-object-lock-retain-until-date", "2090-01-01T00:00:00Z")]
    s3.put("locked", "k", content("locked", 100), locked)
    for key, completes in (("of parts", True), ("unfinished", False)):
        upload = xml(s3.request("POST", object_target("plain", key, "uploads"))).findtext("UploadId")
        parts = ""
        for number, size in ((1, PART), (2, 1000)):
            query = f"partNumber={number}&uploadId={upload}"
            tag = s3.request("PUT", object_target("plain", key, query), body=content(f"{key}{number}", size)).get("etag")
            parts += f"<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>"
        if completes:
            body = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()
            assert s3.request("POST", object_target("plain", key, f"uploadId={upload}"), body=body).status == 200
    account = create_account(store, statement("allow", "GetObject", "bucket:plain/*"), name="reader")
    assert account.s3.get("plain", "inline").status == 200
    share_object(store, "plain", "inline", label="a share")
    embed = {"label": "an embed", "allowed_origins": ["https://example.com"]}
    s3.put("plain", "picture.png", b"\x89PNG", [("content-type", "image/png")])
    expect(admin.post(f"/buckets/plain/object-embeds/{segment('picture.png')}", embed), 201)


def seal(store: Cairn) -> None:
    """Stores encrypted objects."""
    for key, size in (("sealed inline", 300), ("sealed blocks", 17_000)):
        store.s3.put("plain", key, content(key, size))


def facts(store: Cairn) -> dict:
    """Returns what clients see of a store: every version with its content, uploads, accounts, links, webhooks."""
    s3, admin = store.s3, store.admin
    versions = []
    for bucket in BUCKETS:
        for entry in xml(s3.request("GET", f"/{bucket}?versions")):
            if entry.tag not in ("Version", "DeleteMarker"):
                continue
            fields = {name: entry.findtext(name) for name in ("Key", "VersionId", "IsLatest", "LastModified", "ETag", "Size")}
            digest = None
            if entry.tag == "Version":
                got = s3.request("GET", object_target(bucket, fields["Key"], f"versionId={fields['VersionId']}"))
                assert got.status == 200, (bucket, fields)
                digest = sha256(got.body).hexdigest()
            versions.append([bucket, entry.tag, fields, digest])
    uploads = [entry.findtext("Key") for entry in xml(s3.request("GET", "/plain?uploads")).iter("Upload")]
    names = {
        "accounts": [one["name"] for one in expect(admin.get("/service-accounts"), 200)["service_accounts"]],
        "policies": [one["name"] for one in expect(admin.get("/policies"), 200)["policies"]],
        "shares": [one["id"] for one in expect(admin.get("/shares"), 200)["shares"]],
        "embeds": [one["id"] for one in expect(admin.get("/embeds"), 200)["embeds"]],
        "webhooks": [one["target_url"] for one in expect(admin.get("/webhooks"), 200)["webhooks"]],
        "rules": [one["prefix"] for one in expect(admin.get("/buckets/versioned/lifecycle"), 200)["rules"]],
    }
    return {"versions": versions, "uploads": uploads} | names


def unpack(archive: str, folder: Path) -> tuple[Cairn, dict]:
    """Makes the stopped store of an archive in a folder. Returns it with what clients saw."""
    folder.mkdir(parents=True)
    with tarfile.open(STORES / archive) as packed:
        packed.extractall(folder, filter="data")
    description = json.loads((folder / DESCRIPTION).read_text())
    store = Cairn(folder, EXTRA)
    store.secrets = Secrets(**description["secrets"])
    return store, description["facts"]


def upgrade(store: Cairn, *options: str) -> subprocess.CompletedProcess:
    """Upgrades a stopped store, without any secret."""
    command = [store.binary, "storage", "upgrade", "--data-dir", str(store.data), *options]
    return subprocess.run(command, env=clean_environment(), capture_output=True, text=True, check=False)


def pack(store: Cairn, seen: dict, archive: Path) -> None:
    """Writes the archive. Holes of files stay holes."""
    description = {"secrets": vars(store.secrets), "facts": seen}
    (store.folder / DESCRIPTION).write_text(json.dumps(description, indent=1))
    plain = ["--sparse", "--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0"]
    command = ["tar", *plain, "-cJf", str(archive.absolute()), "-C", str(store.folder), DESCRIPTION, "data"]
    subprocess.run(command, env=os.environ | {"XZ_OPT": "-9e"}, check=True)


def main(binary: str, archive: str) -> None:
    """Makes a store with a program, and packs it."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        store = Cairn(Path(folder), EXTRA, Path(binary).absolute()).start()
        fill(store)
        assert store.stop() == 0
        store.extra |= ENCRYPTED
        store.start()
        seal(store)
        seen = facts(store)
        store.kill()
        pack(store, seen, Path(archive))


if __name__ == "__main__":
    main(*sys.argv[1:])
