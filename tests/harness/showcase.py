"""A store as people have it, for pictures of the console: photos, documents, versions, locks, links, accounts, events.

Everything comes from a seed, so that two runs show the same names and sizes.
"""

import json
import random
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from .accounts import client
from .management import expect, segment
from .png import png
from .receiver import Receiver
from .server import Cairn

SEED = 7
PHOTOS = "photos"
DOCUMENTS = "documents"
CONTRACT = "contracts/2026/lease, signed.pdf"
PICTURE = "2026/harbour at night/IMG_2041.png"
LONG_KEY = "inbox/" + "a scan whose name somebody has written in full and without a thought for the width of a column " * 2 + ".pdf"
EMPTY = "empty"


def picture(width: int, height: int, seed: int) -> bytes:
    """Returns a PNG that looks like an evening by the sea."""
    rng = random.Random(seed)
    top, low, sea = ([rng.randrange(20, 120), rng.randrange(40, 120), rng.randrange(110, 200)], [rng.randrange(200, 255), rng.randrange(120, 190), rng.randrange(80, 130)],
                     [rng.randrange(10, 50), rng.randrange(50, 90), rng.randrange(80, 120)])
    horizon, sun_x, sun = height * 6 // 10, rng.randrange(width // 4, width * 3 // 4), height // 12
    rows = []
    for y in range(height):
        part = min(y / horizon, 1)
        colour = [round(a + (b - a) * part) for a, b in zip(top, low, strict=True)] if y < horizon else [c + (y % 7) for c in sea]
        row = bytearray(bytes(colour) * width)
        across = max(sun * sun - (y - horizon + sun) ** 2, 0) ** 0.5 if y < horizon else rng.random() * sun * 0.8
        begin, end = int(sun_x - across), int(sun_x + across)
        row[begin * 3:end * 3] = bytes([255, 226, 170]) * (end - begin)
        rows.append(row)
    return png(width, rows)


def fill_store(store: Cairn, receiver: Receiver) -> dict[str, str]:
    """Creates everything and returns the ids that views need: `account`, `webhook`."""
    rng = random.Random(SEED)
    admin = store.admin
    for name in (PHOTOS, DOCUMENTS, "backups", "website", "logs", "scans-of-the-year-before-last", EMPTY):
        store.s3.create_bucket(name)
    expect(admin.post("/buckets", {"name": "archive", "object_lock": True}), 201)
    for name in (PHOTOS, DOCUMENTS):
        expect(admin.put(f"/buckets/{name}/versioning", {"versioning": "Enabled"}), 200)
    quota = {"bytes": {"mode": "limit", "bytes": 2_000_000_000}, "objects": {"mode": "limit", "objects": 100_000}}
    expect(admin.put(f"/buckets/{PHOTOS}/quota", {"quota": quota}), 200)
    # What has happened is sent to the receiver, so the webhooks come first.
    hook = expect(admin.post("/webhooks", {"target_url": receiver.url, "event_types": ["object.created", "object.deleted"], "bucket_filter": PHOTOS}), 201)
    expect(admin.post("/webhooks", {"target_url": "http://127.0.0.1:9/thumbnails", "event_types": ["object.created"]}), 201)
    _photos(store, rng)
    _documents(store, rng)
    for month in range(1, 13):
        for day in range(1, 28, 3):
            store.s3.put("logs", f"2026/{month:02}/{day:02}/access.log", b"GET / 200\n" * rng.randrange(50, 2000), headers=[("Content-Type", "text/plain")])
    for host in ("atlas", "juniper", "pebble"):
        store.s3.put("backups", f"{host}/config", b"repository", headers=[("Content-Type", "application/octet-stream")])
        for _ in range(6):
            store.s3.put("backups", f"{host}/data/{rng.randbytes(16).hex()}", rng.randbytes(rng.randrange(100_000, 900_000)))
    for name, body, kind in (("index.html", b"<h1>Hello</h1>", "text/html"), ("style.css", b"body { margin: 0 }", "text/css"), ("app.js", b"addEventListener('load', () => {});", "text/javascript")):
        store.s3.put("website", name, body, headers=[("Content-Type", kind)])
    return _links_and_accounts(store, rng) | {"webhook": hook["subscription"]["id"]}


def _photos(store: Cairn, rng: random.Random) -> None:
    """Albums; some pictures have older versions, one was deleted."""
    image = [("Content-Type", "image/png"), ("x-amz-meta-camera", "X100V"), ("x-amz-meta-place", "Trieste")]
    for album, count in (("2025/alps", 6), ("2025/garden", 4), ("2026/harbour at night", 5), ("2026/wedding", 8)):
        for number in range(count):
            store.s3.put(PHOTOS, f"{album}/IMG_{2041 + number}.png", picture(96 + 8 * number, 64, rng.randrange(1 << 30)), headers=image)
    for seed in (3, 4, 5):
        store.s3.put(PHOTOS, PICTURE, picture(960, 540, seed), headers=image)
    for number in range(2041, 2051):
        store.s3.put(PHOTOS, f"2026/IMG_{number}.png", picture(320 + number % 7 * 40, 240, number), headers=image)
    store.s3.put(PHOTOS, "2026/party.mp4", rng.randbytes(9_400_000), headers=[("Content-Type", "video/mp4")])
    store.s3.put(PHOTOS, "2026/schöne Grüße & №7 #draft.png", picture(200, 150, 9), headers=image)
    store.s3.put(PHOTOS, "2026/captions.csv", b"file,caption\n" * 90, headers=[("Content-Type", "text/csv")])
    store.s3.put(PHOTOS, "2026/blurred.png", picture(80, 60, 1), headers=image)
    store.s3.delete(PHOTOS, "2026/blurred.png")


def _documents(store: Cairn, rng: random.Random) -> None:
    """Documents with versions, and contracts that object lock protects."""
    pdf = [("Content-Type", "application/pdf")]
    later = (datetime.now(UTC) + timedelta(days=2500)).strftime("%Y-%m-%dT00:00:00Z")
    for year in (2024, 2025, 2026):
        for name in ("lease, signed.pdf", "insurance.pdf", "employment.pdf"):
            lock = [("x-amz-object-lock-mode", "GOVERNANCE"), ("x-amz-object-lock-retain-until-date", later)]
            store.s3.put("archive", f"contracts/{year}/{name}", rng.randbytes(rng.randrange(80_000, 400_000)), headers=pdf + lock)
    store.s3.put("archive", CONTRACT, rng.randbytes(212_000), headers=[*pdf, ("x-amz-object-lock-legal-hold", "ON")])
    for number in range(1, 15):
        store.s3.put(DOCUMENTS, f"invoices/2026-{number:03}.pdf", rng.randbytes(rng.randrange(20_000, 90_000)), headers=pdf)
    for text in ("draft", "draft, longer", "final"):
        body = json.dumps({"title": "Quarterly report", "state": text, "authors": ["Ada", "Grace"], "pages": 14}).encode()
        store.s3.put(DOCUMENTS, "report.json", body, headers=[("Content-Type", "application/json")])
    store.s3.put(DOCUMENTS, LONG_KEY, rng.randbytes(40_000), headers=pdf)


def _links_and_accounts(store: Cairn, rng: random.Random) -> dict[str, str]:
    """Shares, embeds, rules, accounts with credentials and policies, tokens, requests of an account."""
    admin = store.admin
    in_a_month = (datetime.now(UTC) + timedelta(days=30)).isoformat().replace("+00:00", "Z")
    for key, body in (
        (PICTURE, {"label": "for the family", "password": "sea-and-sun", "expires_at": in_a_month}),
        ("2026/party.mp4", {"label": "guests", "maximum_downloads": 40, "expires_at": in_a_month}),
        ("2026/IMG_2044.png", {"label": "print shop"}),
        ("2026/IMG_2045.png", {}),
    ):
        made = expect(admin.post(f"/buckets/{PHOTOS}/object-shares/{segment(key)}", body), 201)
        if key.endswith("2045.png"):
            expect(admin.post(f"/shares/{made['share']['id']}/revoke"), 200)
    expect(admin.post(f"/buckets/{PHOTOS}/object-embeds/{segment(PICTURE)}", {"label": "blog", "allowed_origins": ["https://www.example.com", "https://example.org"]}), 201)
    for bucket, body in (("logs", {"prefix": "2026/", "expiration": 30}), (DOCUMENTS, {"prefix": "", "noncurrent_version_expiration": 90, "newer_noncurrent_versions": 3}),
                         (PHOTOS, {"prefix": "tmp/", "expiration": 7}), (PHOTOS, {"prefix": "", "noncurrent_version_expiration": 365, "expired_delete_markers": True})):
        expect(admin.post(f"/buckets/{bucket}/lifecycle", body), 201)
    policies = {}
    for name, description, statements in (
        ("backup-writers", "restic on the three hosts", [{"effect": "allow", "actions": ["s3:PutObject", "s3:GetObject", "s3:DeleteObject", "s3:ListBucket"], "resources": ["bucket:backups", "bucket:backups/*"]}]),
        ("readers-of-photos", "", [{"effect": "allow", "actions": ["s3:GetObject", "s3:ListBucket"], "resources": [f"bucket:{PHOTOS}", f"bucket:{PHOTOS}/*"]}, {"effect": "deny", "actions": ["s3:GetObject"], "resources": [f"bucket:{PHOTOS}/2026/wedding/*"]}]),
    ):
        policies[name] = expect(admin.post("/policies", {"name": name, "description": description, "statements": statements}), 201)["id"]
    accounts = {}
    for name, description in (("restic", "nightly backups"), ("photo-frame", "the frame in the hall"), ("ci", "artefacts of builds"), ("old-laptop", "")):
        made = expect(admin.post("/service-accounts", {"name": name, "description": description}), 201)
        accounts[name] = made.get("service_account", made)["id"], made.get("credential")
    expect(admin.put(f"/policies/{policies['backup-writers']}/bindings/{accounts['restic'][0]}"), 204)
    expect(admin.put(f"/policies/{policies['readers-of-photos']}/bindings/{accounts['photo-frame'][0]}"), 204)
    if accounts["photo-frame"][1]:
        frame = client(store, accounts["photo-frame"][1])
        for key in (PICTURE, "2026/wedding/IMG_2041.png"):
            frame.get(PHOTOS, key)
        frame.delete(PHOTOS, PICTURE)
    for name, role in (("grafana", "auditor"), ("deploy", "storage_admin")):
        expect(admin.post("/management-tokens", {"name": name, "role": role, "expires_in_seconds": 86_400 * 90}), 201)
    return {"account": accounts["restic"][0]}


def write_folder(folder: Path, files: int, size: int, seed: int = SEED) -> Path:
    """Writes a folder of small files with folders in it, and returns it."""
    rng = random.Random(seed)
    for number in range(files):
        file = folder / f"day {number // 500 + 1}" / f"IMG_{number:04}.jpg"
        with suppress(FileExistsError):
            file.parent.mkdir(parents=True)
        file.write_bytes(rng.randbytes(size))
    return folder
