"""Makes small real videos: WebM files whose frames are key frames of VP8, taken from a WebP picture.

A lossy WebP file contains exactly one key frame of VP8 (RFC 9649, section 2.5), and a browser makes one with a canvas. Format:
RFC 8794 (EBML) and RFC 9559 (Matroska).
"""

import base64
import struct

from .browser import Browser

# Draws a picture and returns it as WebP, in Base64.
DRAW = """async (width, height) => {
    const canvas = Object.assign(document.createElement("canvas"), {width, height}), pen = canvas.getContext("2d", {alpha: false});
    pen.fillStyle = "teal"; pen.fillRect(0, 0, width, height);
    pen.fillStyle = "orange"; pen.fillRect(width / 4, height / 4, width / 2, height / 2);
    return canvas.toDataURL("image/webp", 0.8).split(",")[1];
}"""
WIDTH, HEIGHT = 64, 48
TRACK = 1
SECOND_MILLIS = 1000


def vp8_frame(browser: Browser) -> bytes:
    """Returns a key frame. The browser must show a page."""
    webp = base64.b64decode(browser.run(DRAW, WIDTH, HEIGHT))
    assert webp[:4] == b"RIFF" and webp[8:12] == b"WEBP", webp[:12]
    at = 12
    while at < len(webp):
        name, length = struct.unpack_from("<4sI", webp, at)
        if name == b"VP8 ":
            return webp[at + 8 : at + 8 + length]
        at += 8 + length + length % 2
    raise ValueError("the picture is not lossy")


def element(identifier: int, body: bytes) -> bytes:
    """Encodes an element with an eight-byte length, so that lengths do not change places."""
    name = identifier.to_bytes((identifier.bit_length() + 7) // 8, "big")
    return name + (0x01 << 56 | len(body)).to_bytes(8, "big") + body


def number(identifier: int, value: int) -> bytes:
    """Encodes an element with an unsigned number."""
    return element(identifier, value.to_bytes(8, "big"))


def text(identifier: int, value: str) -> bytes:
    """Encodes an element with a text."""
    return element(identifier, value.encode())


def webm(frame: bytes, seconds: int, padding_bytes: int = 0) -> bytes:
    """Returns a video with one frame a second. Each second carries so many bytes of padding, so that seeking needs ranges."""
    head = element(
        0x1A45DFA3,
        number(0x4286, 1) + number(0x42F7, 1) + number(0x42F2, 4) + number(0x42F3, 8)
        + text(0x4282, "webm") + number(0x4287, 4) + number(0x4285, 2),
    )  # fmt: skip
    duration = element(0x4489, struct.pack(">d", float(seconds * SECOND_MILLIS)))
    info = element(0x1549A966, number(0x2AD7B1, 1_000_000) + duration + text(0x4D80, "test") + text(0x5741, "test"))
    size = element(0xE0, number(0xB0, WIDTH) + number(0xBA, HEIGHT))
    entry = number(0xD7, TRACK) + number(0x73C5, TRACK) + number(0x83, 1) + text(0x86, "V_VP8") + size
    tracks = element(0x1654AE6B, element(0xAE, entry))

    clusters = []
    for second in range(seconds):
        block = element(0xA3, bytes([0x80 | TRACK]) + struct.pack(">h", 0) + b"\x80" + frame)
        clusters.append(element(0x1F43B675, number(0xE7, second * SECOND_MILLIS) + block + element(0xEC, bytes(padding_bytes))))

    def cues(first: int) -> bytes:
        points, place = b"", first
        for second, cluster in enumerate(clusters):
            position = element(0xB7, number(0xF7, TRACK) + number(0xF1, place))
            points += element(0xBB, number(0xB3, second * SECOND_MILLIS) + position)
            place += len(cluster)
        return element(0x1C53BB6B, points)

    before = info + tracks
    index = cues(len(before) + len(cues(0)))
    return head + element(0x18538067, before + index + b"".join(clusters))
