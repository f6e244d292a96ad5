"""Independent verification of proof bundles, as docs/management-api.md describes it."""

import base64
import json

from Crypto.Hash import SHA256
from Crypto.Protocol.KDF import HKDF
from Crypto.PublicKey import ECC
from Crypto.Signature import eddsa

INFO = b"cairn proof key 1"


def canonical(payload: object) -> bytes:
    """Returns the signed bytes (canonical JSON)."""
    return json.dumps(payload, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def is_good(bundle: dict) -> bool:
    """Returns whether the signature of the payload is valid for the bundle's public key."""
    assert bundle["algorithm"] == "ed25519"
    key = eddsa.import_public_key(base64.b64decode(bundle["public_key"]))
    try:
        eddsa.new(key, "rfc8032").verify(canonical(bundle["payload"]), base64.b64decode(bundle["signature"]))
    except ValueError:
        return False
    return True


def public_key_of(master_key: str, store_id: str) -> bytes:
    """Derives the store's public key from the master key, as its owner can do without the store."""
    seed = HKDF(master_key.encode(), 32, bytes.fromhex(store_id), SHA256, context=INFO)
    return ECC.construct(curve="Ed25519", seed=seed).public_key().export_key(format="raw")
