"""Assertions on statuses and errors of the data plane.

Our own server must answer exactly as expected. Where the S3 documentation leaves a choice, other servers, tried with
S3_TEST_ENDPOINT, may answer differently.
"""

import os
import xml.etree.ElementTree as ElementTree

from .s3 import xml
from .wire import Response


IS_FOREIGN = "S3_TEST_ENDPOINT" in os.environ


class Broken(AssertionError):
    """A guarantee of the store was violated."""


def choice(ours: int, *others: int) -> tuple[int, ...]:
    """Returns the accepted statuses: our server's, and for another server also the alternatives."""
    return (ours, *others) if IS_FOREIGN else (ours,)


def assert_error(response: Response, status: int, *codes: str) -> ElementTree.Element:
    """Asserts the status, the code and the common format of errors, and returns the parsed body.

    The first code is that of our server. The others are accepted from another server only.
    """
    assert response.status == status, (response.status, response.body[:600])
    assert (response.get("content-type") or "").split(";")[0] == "application/xml", response.headers
    root = xml(response)
    assert root.tag == "Error", root.tag
    assert root.findtext("Code") in (codes if IS_FOREIGN else codes[:1]), (root.findtext("Code"), root.findtext("Message"))
    assert root.findtext("Message"), "the error has no message"
    assert root.findtext("RequestId") == response.get("x-amz-request-id"), "the request ids of header and body differ"
    assert root.find("Resource") is not None, response.body
    return root


def assert_status(response: Response, status: int) -> Response:
    """Asserts the status and shows the body if it differs."""
    assert response.status == status, (response.status, response.body[:600])
    return response
