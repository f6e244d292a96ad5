"""Runs `cairn import` between two stores, and compares them as S3 clients see them."""

import itertools
import json
import subprocess
from pathlib import Path
from typing import IO

from botocore.client import BaseClient

from .minio import Minio
from .odd_store import OddStore
from .server import BINARY, Cairn, clean_environment

TIMEOUT = 120
# What a HEAD says of the stored object.
STORED = ("cache-control", "content-disposition", "content-encoding", "content-language", "content-type", "content-length", "etag", "expires", "last-modified")
STORED_PREFIXES = ("x-amz-meta-", "x-amz-object-lock-", "x-amz-checksum-")
# Only versions with tags have it.
TAGS = "x-amz-tagging-count"


class Importer:
    """The command, from one store into another."""

    def __init__(self, source: "Minio | Cairn | OddStore", target: Cairn, journal: Path):
        self.source, self.target, self.journal = source, target, journal
        # A relay that a test puts before the source.
        self.relay: str | None = None

    def command(self, verb: str, *arguments: str) -> list[str]:
        """Returns the arguments of a command."""
        command = [str(BINARY), "import", verb, "--from", self.relay or self.source.endpoint, "--endpoint", self.target.management, *arguments]
        return command + (["--journal", str(self.journal)] if verb == "objects" else [])

    def environment(self) -> dict[str, str]:
        """Returns the environment, with both credentials."""
        return clean_environment() | {
            "SERVICE_MANAGEMENT_TOKEN": self.target.secrets.system_token,
            "SOURCE_ACCESS_KEY": self.source.credential.access_key, "SOURCE_SECRET_KEY": self.source.credential.secret_key,
        }

    def run(self, verb: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess:
        """Runs a command to its end."""
        environment = self.environment() | variables
        done = subprocess.run(self.command(verb, *arguments), env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT)
        assert "panicked" not in done.stderr
        assert self.source.credential.secret_key not in done.stdout + done.stderr
        return done

    def begin(self, verb: str, *arguments: str, errors: int | IO = subprocess.PIPE) -> subprocess.Popen:
        """Starts a command."""
        return subprocess.Popen(self.command(verb, *arguments), env=self.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True)

    def json(self, verb: str, *arguments: str, code: int = 0) -> dict:
        """Runs a command that must end with this code. Returns what it prints as JSON."""
        done = self.run(verb, *arguments, "--json")
        assert done.returncode == code, done
        return json.loads(done.stdout)

    def objects(self, *arguments: str, code: int = 0) -> dict:
        """Imports once. Returns the counts that are not 0."""
        total = self.json("objects", *arguments, code=code)["total"]
        return {name: count for name, count in total.items() if count}


def versions(client: BaseClient, bucket: str) -> list[tuple]:
    """Returns all versions, then all delete markers, each in the order of the list. Dates are in seconds."""
    pages = list(client.get_paginator("list_object_versions").paginate(Bucket=bucket))
    entries = [(one, one["ETag"], one["Size"]) for page in pages for one in page.get("Versions", [])]
    entries += [(one, None, 0) for page in pages for one in page.get("DeleteMarkers", [])]
    return [(one["Key"], one["VersionId"], etag, size, int(one["LastModified"].timestamp()), one["IsLatest"]) for one, etag, size in entries]


def order(client: BaseClient, bucket: str, key: str) -> list[str]:
    """Returns the ids of a key's versions, newest first; those of delete markers are left out."""
    return [one["VersionId"] for one in client.list_object_versions(Bucket=bucket, Prefix=key).get("Versions", []) if one["Key"] == key]


def stored(client: BaseClient, bucket: str, key: str, version: str, parts: int = 0) -> dict:
    """Returns everything that is stored with a version: headers, content, tags, and the sizes of its parts."""
    response = client.get_object(Bucket=bucket, Key=key, VersionId=version, ChecksumMode="ENABLED")
    headers = response["ResponseMetadata"]["HTTPHeaders"]
    kept = {name: value for name, value in headers.items() if name in STORED or name.startswith(STORED_PREFIXES)}
    tags = client.get_object_tagging(Bucket=bucket, Key=key, VersionId=version)["TagSet"] if TAGS in headers else []
    sizes = [client.head_object(Bucket=bucket, Key=key, VersionId=version, PartNumber=part)["ContentLength"] for part in range(1, parts + 1)]
    return {"headers": kept, "content": response["Body"].read(), "tags": sorted((tag["Key"], tag["Value"]) for tag in tags), "parts": sizes}


def assert_equal(source: BaseClient, target: BaseClient, bucket: str) -> int:
    """Compares a bucket on both sides, independently of `cairn import verify`. Returns the number of versions and markers."""
    there = versions(source, bucket)
    assert there == versions(target, bucket)
    for key, version, etag, *_ in there:
        if etag is not None:
            parts = int(etag.strip('"').split("-")[1]) if "-" in etag else 0
            assert stored(source, bucket, key, version, parts) == stored(target, bucket, key, version, parts), (key, version)
    return len(there)


def losses(report: dict) -> dict[tuple[str, str], str]:
    """Returns what an import left out: the reasons by kind and name."""
    return {
        key: "; ".join(loss["reason"] for loss in group)
        for key, group in itertools.groupby(report["losses"], lambda loss: (loss["kind"], loss["name"]))
    }
