"""What every error answer of the data plane must look like, checked in one place, and how a suite says what is broken."""

import xml.etree.ElementTree as ElementTree

from .s3 import xml
from .wire import Response


class Broken(AssertionError):
    """A promise that was not kept."""


def assert_error(response: Response, status: int, *codes: str) -> ElementTree.Element:
    """The status, one of the codes, and the shape that all errors share; returns the parsed body."""
    assert response.status == status, (response.status, response.body[:600])
    assert (response.get("content-type") or "").split(";")[0] == "application/xml", response.headers
    root = xml(response)
    assert root.tag == "Error", root.tag
    assert root.findtext("Code") in codes, (root.findtext("Code"), root.findtext("Message"))
    assert root.findtext("Message"), "an error without a message helps nobody"
    assert root.findtext("RequestId") == response.get("x-amz-request-id"), "the ids of header and body differ"
    assert root.find("Resource") is not None, response.body
    return root


def assert_status(response: Response, status: int) -> Response:
    """The status, with the body shown when it is another."""
    assert response.status == status, (response.status, response.body[:600])
    return response
