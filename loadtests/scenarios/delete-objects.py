#!/usr/bin/env python3
"""Compares DeleteObjects with single deletes, on one connection.

Each round puts objects, deletes some of them one by one, and the rest with DeleteObjects. Prints the keys deleted in a second
for both, and the ratio of each round. Needs boto3, a bucket, and a server with `s3.compatibility = "extended"`.

    AWS_ACCESS_KEY_ID=... AWS_SECRET_ACCESS_KEY=... delete-objects.py http://127.0.0.1:7600 BUCKET
"""

import base64
import http.client
import os
import statistics
import sys
import time
import urllib.parse
import zlib

import botocore.auth
import botocore.awsrequest
import botocore.credentials

ROUNDS, SINGLE, TOGETHER, BYTES = 5, 300, 1000, 1024


def main() -> None:
    endpoint, bucket = sys.argv[1:]
    credentials = botocore.credentials.Credentials(os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"])
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(endpoint).netloc)

    def signed(method: str, path: str, body: bytes = b"") -> tuple[str, str, bytes, dict[str, str]]:
        request = botocore.awsrequest.AWSRequest(method, f"{endpoint}/{bucket}{path}", data=body)
        if method == "POST":
            crc = zlib.crc32(body).to_bytes(4, "big")
            request.headers["x-amz-checksum-crc32"] = base64.b64encode(crc).decode()
        botocore.auth.S3SigV4Auth(credentials, "s3", "us-east-1").add_auth(request)
        return method, f"/{bucket}{path}", body, dict(request.headers)

    def send(request: tuple[str, str, bytes, dict[str, str]]) -> bytes:
        connection.request(*request)
        response = connection.getresponse()
        content = response.read()
        if response.status not in (200, 204):
            sys.exit(f"{request[0]} {request[1]}: {response.status} {content.decode()}")
        return content

    def timed(requests: list[tuple[str, str, bytes, dict[str, str]]]) -> tuple[float, bytes]:
        begun = time.perf_counter()
        contents = [send(request) for request in requests]
        return time.perf_counter() - begun, contents[-1]

    ratios = []
    for number in range(1, ROUNDS + 1):
        keys = [f"round-{number}/object-{index:06}" for index in range(SINGLE + TOGETHER)]
        timed([signed("PUT", f"/{key}", bytes(BYTES)) for key in keys])
        # Requests are signed before the clock starts.
        single, _ = timed([signed("DELETE", f"/{key}") for key in keys[:SINGLE]])
        entries = "".join(f"<Object><Key>{key}</Key></Object>" for key in keys[SINGLE:])
        together, answer = timed([signed("POST", "?delete=", f"<Delete>{entries}</Delete>".encode())])
        if (deleted := answer.count(b"<Deleted>")) != TOGETHER:
            sys.exit(f"DeleteObjects deleted {deleted} of {TOGETHER} keys")
        rates = SINGLE / single, TOGETHER / together
        ratios.append(rates[1] / rates[0])
        print(f"round {number}: single {rates[0]:.0f} keys/s, DeleteObjects {rates[1]:.0f} keys/s, ratio {ratios[-1]:.1f}")
    print(f"median ratio {statistics.median(ratios):.1f}")


if __name__ == "__main__":
    main()
