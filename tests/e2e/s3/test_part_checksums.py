"""Checksums of multipart uploads: of parts, composite, of the full object, and wrong ones.

The expected values are computed here from the bytes. boto3 verifies checksums too.
"""

import base64
import hashlib
import zlib
from collections.abc import Callable

import pytest
from awscrt.checksums import crc32c, crc64nvme
from botocore.client import BaseClient

from harness.boto import PART_BYTES, Upload, random_bytes, refused

BODIES = [random_bytes("checked 1", PART_BYTES), random_bytes("checked 2", PART_BYTES), random_bytes("checked 3", 4321)]
WHOLE = b"".join(BODIES)
DIGESTS: dict[str, Callable[[bytes], bytes]] = {
    "CRC32": lambda body: zlib.crc32(body).to_bytes(4, "big"),
    "CRC32C": lambda body: crc32c(body).to_bytes(4, "big"),
    "CRC64NVME": lambda body: crc64nvme(body).to_bytes(8, "big"),
    "SHA1": lambda body: hashlib.sha1(body).digest(),
    "SHA256": lambda body: hashlib.sha256(body).digest(),
}
# The checksum types that each algorithm allows; the first one is its default.
TYPES = [
    ("CRC32", "COMPOSITE"), ("CRC32", "FULL_OBJECT"), ("CRC32C", "COMPOSITE"), ("CRC32C", "FULL_OBJECT"),
    ("CRC64NVME", "FULL_OBJECT"), ("SHA1", "COMPOSITE"), ("SHA256", "COMPOSITE"),
]


def checksum(algorithm: str, body: bytes) -> str:
    """Returns a checksum as a header value."""
    return base64.b64encode(DIGESTS[algorithm](body)).decode()


def expected(algorithm: str, kind: str) -> str:
    """Returns the object's checksum: over all bytes, or over the parts' checksums followed by the number of parts."""
    if kind == "FULL_OBJECT":
        return checksum(algorithm, WHOLE)
    return checksum(algorithm, b"".join(DIGESTS[algorithm](body) for body in BODIES)) + f"-{len(BODIES)}"


@pytest.mark.parametrize(("algorithm", "kind"), TYPES)
def test_part_and_object_checksums_are_returned(boto: BaseClient, bucket: str, algorithm: str, kind: str):
    """Every response from create to GET has the right algorithm, type and value."""
    name = f"Checksum{algorithm}"
    upload = Upload(boto, bucket, "k", ChecksumAlgorithm=algorithm, ChecksumType=kind)
    assert (upload.created["ChecksumAlgorithm"], upload.created["ChecksumType"]) == (algorithm, kind)
    for number, body in enumerate(BODIES, 1):
        assert upload.send(number, body, ChecksumAlgorithm=algorithm)[name] == checksum(algorithm, body)
    listed = upload.listed()
    assert (listed["ChecksumAlgorithm"], listed["ChecksumType"]) == (algorithm, kind)
    assert [part[name] for part in listed["Parts"]] == [checksum(algorithm, body) for body in BODIES]
    (item,) = boto.list_multipart_uploads(Bucket=bucket)["Uploads"]
    assert (item["ChecksumAlgorithm"], item["ChecksumType"]) == (algorithm, kind)
    answer = upload.complete()
    assert (answer[name], answer["ChecksumType"]) == (expected(algorithm, kind), kind)
    for found in (
        boto.head_object(Bucket=bucket, Key="k", ChecksumMode="ENABLED"),
        boto.get_object(Bucket=bucket, Key="k", ChecksumMode="ENABLED"),
    ):
        assert (found[name], found["ChecksumType"]) == (expected(algorithm, kind), kind)
    assert boto.get_object(Bucket=bucket, Key="k")["Body"].read() == WHOLE


@pytest.mark.parametrize("algorithm", ["CRC64NVME", "SHA256"])
def test_default_checksum_type_is_composite_except_for_crc64(boto: BaseClient, bucket: str, algorithm: str):
    """CRC-64/NVME has no composite type."""
    upload = Upload(boto, bucket, "k", ChecksumAlgorithm=algorithm)
    assert upload.created["ChecksumType"] == ("FULL_OBJECT" if algorithm == "CRC64NVME" else "COMPOSITE")


@pytest.mark.parametrize(("algorithm", "kind"), [("CRC64NVME", "COMPOSITE"), ("SHA1", "FULL_OBJECT"), ("SHA256", "FULL_OBJECT")])
def test_unsupported_checksum_types_are_refused(boto: BaseClient, bucket: str, algorithm: str, kind: str):
    """No upload is created."""
    with refused(400, "InvalidRequest"):
        boto.create_multipart_upload(Bucket=bucket, Key="k", ChecksumAlgorithm=algorithm, ChecksumType=kind)
    assert "Uploads" not in boto.list_multipart_uploads(Bucket=bucket)


def test_part_with_a_wrong_checksum_is_not_stored(boto: BaseClient, bucket: str):
    """The answer is BadDigest and the list of parts stays empty."""
    upload = Upload(boto, bucket, "k", ChecksumAlgorithm="SHA256")
    with refused(400, "BadDigest"):
        upload.send(1, BODIES[2], ChecksumSHA256=checksum("SHA256", b"other"))
    assert "Parts" not in upload.listed()


def test_part_with_another_checksum_algorithm_is_refused(boto: BaseClient, bucket: str):
    """All parts need the upload's algorithm, because the composite is computed from their checksums."""
    upload = Upload(boto, bucket, "k", ChecksumAlgorithm="SHA256")
    with refused(400, "InvalidRequest"):
        upload.send(1, BODIES[2], ChecksumSHA1=checksum("SHA1", BODIES[2]))
    assert "Parts" not in upload.listed()


def test_complete_verifies_the_listed_part_checksums(boto: BaseClient, bucket: str):
    """After a wrong checksum the upload remains and completes with the right one."""
    upload = Upload(boto, bucket, "k", ChecksumAlgorithm="SHA256")
    for number, body in enumerate(BODIES, 1):
        upload.send(number, body, ChecksumAlgorithm="SHA256")
    wrong = upload.parts[2] | {"ChecksumSHA256": checksum("SHA256", b"other")}
    with refused(400, "InvalidPart"):
        upload.complete([upload.parts[1], wrong, upload.parts[3]])
    with refused(400, "BadDigest"):
        upload.complete(ChecksumSHA256=checksum("SHA256", b"other") + "-3")
    assert upload.complete()["ChecksumSHA256"] == expected("SHA256", "COMPOSITE")


def test_complete_verifies_the_object_checksum(boto: BaseClient, bucket: str):
    """A client may compute the checksum of the whole object while it reads its file."""
    upload = Upload(boto, bucket, "k", ChecksumAlgorithm="CRC64NVME")
    for number, body in enumerate(BODIES, 1):
        upload.send(number, body, ChecksumAlgorithm="CRC64NVME")
    with refused(400, "BadDigest"):
        upload.complete(ChecksumCRC64NVME=checksum("CRC64NVME", b"other"), ChecksumType="FULL_OBJECT")
    answer = upload.complete(ChecksumCRC64NVME=checksum("CRC64NVME", WHOLE), ChecksumType="FULL_OBJECT")
    assert answer["ChecksumCRC64NVME"] == checksum("CRC64NVME", WHOLE)


def test_read_of_a_single_part_returns_no_checksum(boto: BaseClient, bucket: str):
    """The composite checksum would not match the part's bytes, and checksums of parts are not returned."""
    upload = Upload(boto, bucket, "k", ChecksumAlgorithm="SHA256")
    for number, body in enumerate(BODIES, 1):
        upload.send(number, body, ChecksumAlgorithm="SHA256")
    upload.complete()
    found = boto.get_object(Bucket=bucket, Key="k", PartNumber=2, ChecksumMode="ENABLED")
    assert found["Body"].read() == BODIES[1]
    assert not [name for name in found if name.startswith("Checksum")]
