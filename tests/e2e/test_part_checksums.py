"""Attacks checksums of multipart uploads: each part's, the composite of all, the one over the whole object, and wrong ones.

The expected values are computed here, from the bytes; boto3 checks its own in addition.
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
# What an upload may be created with; the first type of an algorithm is its default.
TYPES = [
    ("CRC32", "COMPOSITE"), ("CRC32", "FULL_OBJECT"), ("CRC32C", "COMPOSITE"), ("CRC32C", "FULL_OBJECT"),
    ("CRC64NVME", "FULL_OBJECT"), ("SHA1", "COMPOSITE"), ("SHA256", "COMPOSITE"),
]


def checksum(algorithm: str, body: bytes) -> str:
    """As the header carries it."""
    return base64.b64encode(DIGESTS[algorithm](body)).decode()


def expected(algorithm: str, kind: str) -> str:
    """Of the object: over all its bytes, or over the parts' digests with their count behind."""
    if kind == "FULL_OBJECT":
        return checksum(algorithm, WHOLE)
    return checksum(algorithm, b"".join(DIGESTS[algorithm](body) for body in BODIES)) + f"-{len(BODIES)}"


@pytest.mark.parametrize(("algorithm", "kind"), TYPES)
def test_checksums_of_parts_and_of_the_whole(boto: BaseClient, bucket: str, algorithm: str, kind: str):
    """From create to GET: every answer names the algorithm, the type and the right value."""
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
def test_the_default_type_of_an_algorithm(boto: BaseClient, bucket: str, algorithm: str):
    """Composite, but for CRC-64, which has no composite."""
    upload = Upload(boto, bucket, "k", ChecksumAlgorithm=algorithm)
    assert upload.created["ChecksumType"] == ("FULL_OBJECT" if algorithm == "CRC64NVME" else "COMPOSITE")


@pytest.mark.parametrize(("algorithm", "kind"), [("CRC64NVME", "COMPOSITE"), ("SHA1", "FULL_OBJECT"), ("SHA256", "FULL_OBJECT")])
def test_types_that_an_algorithm_does_not_have(boto: BaseClient, bucket: str, algorithm: str, kind: str):
    """No upload is made."""
    with refused(400, "InvalidRequest"):
        boto.create_multipart_upload(Bucket=bucket, Key="k", ChecksumAlgorithm=algorithm, ChecksumType=kind)
    assert "Uploads" not in boto.list_multipart_uploads(Bucket=bucket)


def test_a_part_with_a_wrong_checksum_is_not_stored(boto: BaseClient, bucket: str):
    """BadDigest, and the list of parts stays empty."""
    upload = Upload(boto, bucket, "k", ChecksumAlgorithm="SHA256")
    with refused(400, "BadDigest"):
        upload.send(1, BODIES[2], ChecksumSHA256=checksum("SHA256", b"other"))
    assert "Parts" not in upload.listed()


def test_a_part_with_another_algorithm_is_refused(boto: BaseClient, bucket: str):
    """The upload was created for one algorithm; the composite could not be made otherwise."""
    upload = Upload(boto, bucket, "k", ChecksumAlgorithm="SHA256")
    with refused(400, "InvalidRequest"):
        upload.send(1, BODIES[2], ChecksumSHA1=checksum("SHA1", BODIES[2]))
    assert "Parts" not in upload.listed()


def test_complete_checks_what_the_list_says(boto: BaseClient, bucket: str):
    """A part's checksum of other bytes; the upload stays and completes with the right ones."""
    upload = Upload(boto, bucket, "k", ChecksumAlgorithm="SHA256")
    for number, body in enumerate(BODIES, 1):
        upload.send(number, body, ChecksumAlgorithm="SHA256")
    wrong = upload.parts[2] | {"ChecksumSHA256": checksum("SHA256", b"other")}
    with refused(400, "InvalidPart"):
        upload.complete([upload.parts[1], wrong, upload.parts[3]])
    with refused(400, "BadDigest"):
        upload.complete(ChecksumSHA256=checksum("SHA256", b"other") + "-3")
    assert upload.complete()["ChecksumSHA256"] == expected("SHA256", "COMPOSITE")


def test_complete_checks_the_whole(boto: BaseClient, bucket: str):
    """A checksum over the whole object that the client kept while it read its file."""
    upload = Upload(boto, bucket, "k", ChecksumAlgorithm="CRC64NVME")
    for number, body in enumerate(BODIES, 1):
        upload.send(number, body, ChecksumAlgorithm="CRC64NVME")
    with refused(400, "BadDigest"):
        upload.complete(ChecksumCRC64NVME=checksum("CRC64NVME", b"other"), ChecksumType="FULL_OBJECT")
    answer = upload.complete(ChecksumCRC64NVME=checksum("CRC64NVME", WHOLE), ChecksumType="FULL_OBJECT")
    assert answer["ChecksumCRC64NVME"] == checksum("CRC64NVME", WHOLE)


def test_a_part_by_number_carries_no_checksum(boto: BaseClient, bucket: str):
    """The composite would not match the bytes that came, and the parts' own are not returned."""
    upload = Upload(boto, bucket, "k", ChecksumAlgorithm="SHA256")
    for number, body in enumerate(BODIES, 1):
        upload.send(number, body, ChecksumAlgorithm="SHA256")
    upload.complete()
    found = boto.get_object(Bucket=bucket, Key="k", PartNumber=2, ChecksumMode="ENABLED")
    assert found["Body"].read() == BODIES[1]
    assert not [name for name in found if name.startswith("Checksum")]
