"""A third party's check of a proof bundle, by docs/api.md alone: canonical JSON, Ed25519, the derivation of the key."""

import base64
import json

from Crypto.Hash import SHA256
from Crypto.Protocol.KDF import HKDF
from Crypto.PublicKey import ECC
from Crypto.Signature import eddsa

INFO = b"cairn proof key 1"


def canonical(payload: object) -> bytes:
    """The bytes that are signed."""
    return json.dumps(payload, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def is_good(bundle: dict) -> bool:
    """Whether the signature is that of the payload under the public key in the bundle."""
    assert bundle["algorithm"] == "ed25519"
    key = eddsa.import_public_key(base64.b64decode(bundle["public_key"]))
    try:
        eddsa.new(key, "rfc8032").verify(canonical(bundle["payload"]), base64.b64decode(bundle["signature"]))
    except ValueError:
        return False
    return True


def public_key_of(master_key: str, store_id: str) -> bytes:
    """What the store's owner can derive without the store."""
    seed = HKDF(master_key.encode(), 32, bytes.fromhex(store_id), SHA256, context=INFO)
    return ECC.construct(curve="Ed25519", seed=seed).public_key().export_key(format="raw")
