"""The page of an object: tags, metadata, previews of old versions and of PDF, comparison of two versions."""

import pytest

from harness.management import expect, segment
from harness.page import Page
from harness.server import Cairn
from harness.wait import until

HOSTILE = 'in/<img src=x onerror=alert(1)>"\'\u202egnp.&.txt'
PDF = b"%PDF-1.1\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj 3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF"


def record(store: Cairn, bucket: str, key: str) -> dict:
    """Returns what the server knows of an object."""
    return expect(store.admin.get(f"/buckets/{bucket}/object/{segment(key)}"), 200)


def test_metadata_are_saved_as_a_new_version(page: Page, console_store: Cairn, versioned: str):
    """The page says so before. What was not touched stays, and nothing of a hostile name becomes markup."""
    console_store.s3.put(versioned, HOSTILE, b"content", headers=[("Content-Type", "text/plain"), ("x-amz-meta-note", "<b>bold</b>"), ("Cache-Control", "no-cache")])
    page.go("object", versioned, HOSTILE)
    page.click("Edit")
    page.see("Saving writes version 2 with the same content. Version 1 stays.")
    assert page.violations() == []
    page.fill("Content type", "text/markdown")
    page.click("Add metadata")
    page.run("""async () => {
        const [name, value] = [...document.querySelectorAll(".entry:last-child input")];
        name.value = "Photographer"; value.value = "Ann Lind";
    }""")
    page.click("Save as version 2")
    page.see("Saved as version 2.")
    until(lambda: record(console_store, versioned, HOSTILE)["content_type"] == "text/markdown", "the new type")
    found = record(console_store, versioned, HOSTILE)
    assert (found["metadata"], found["headers"]) == ({"note": "<b>bold</b>", "photographer": "Ann Lind"}, {"cache-control": "no-cache"})
    assert console_store.s3.get(versioned, HOSTILE).body == b"content"
    page.see("Version 2 of 2")
    assert not page.run("async () => Boolean(document.querySelector('main img, main b b'))")


def test_metadata_of_an_object_that_was_written_meanwhile(page: Page, console_store: Cairn, bucket: str):
    """Nothing is lost, and what was typed stays on the page. In a bucket without versions, saving replaces."""
    console_store.s3.put(bucket, "k", b"old")
    page.go("object", bucket, "k")
    page.click("Edit")
    page.see("Saving replaces the object with the same content: this bucket keeps no versions.")
    page.fill("Content type", "text/plain")
    console_store.s3.put(bucket, "k", b"new")
    page.click("Save and replace")
    page.see("Somebody has written this object since this page was loaded.")
    assert record(console_store, bucket, "k")["content_type"] == "binary/octet-stream"
    page.click("Load again")
    page.settled()
    page.click("Edit")
    page.fill("Content type", "text/plain")
    page.click("Save and replace")
    page.see("Saved.")
    assert (record(console_store, bucket, "k")["content_type"], console_store.s3.get(bucket, "k").body) == ("text/plain", b"new")
    page.refusals_are_expected()


def test_tags_are_changed_in_place(page: Page, console_store: Cairn, versioned: str):
    """Added, refused with the reason, removed, and brought back."""
    console_store.s3.put(versioned, "k", b"x")
    page.go("object", versioned, "k")
    page.click("Add tag")
    page.fill("Name", "project")
    page.fill("Value", "a<b>")
    page.run("async () => document.querySelector('.inline-form').requestSubmit()")
    page.see("must have at most 256")
    page.fill("Value", "regatta")
    page.run("async () => document.querySelector('.inline-form').requestSubmit()")
    page.see("project = regatta")
    assert record(console_store, versioned, "k")["tags"] == [{"key": "project", "value": "regatta"}]
    page.click("Remove tag project")
    page.see("No tags.")
    page.click("Undo")
    page.see("project = regatta")
    assert len(expect(console_store.admin.get(f"/buckets/{versioned}/object-versions"), 200)["versions"]) == 1
    assert page.violations() == []
    page.refusals_are_expected()


def test_two_versions_are_compared(page: Page, console_store: Cairn, versioned: str):
    """Lines of texts, and what else differs. The comparison is in the URL."""
    lines = [b"line %d\n" % number for number in range(40)]
    console_store.s3.put(versioned, HOSTILE, b"".join(lines), headers=[("Content-Type", "text/plain"), ("x-amz-meta-a", "1")])
    lines[20] = b"<script>changed</script>\n"
    console_store.s3.put(versioned, HOSTILE, b"".join(lines), headers=[("Content-Type", "text/plain"), ("x-amz-meta-a", "2")])
    page.go("object", versioned, HOSTILE)
    page.click("Compare two versions")
    page.click("Compare")
    page.see("Version 1 and Version 2")
    found = page.run("async () => [...document.querySelectorAll('.differences :is(ins, del)')].map((line) => line.textContent.trim())")
    assert found == ["- line 20", "+ <script>changed</script>"]
    page.see("17 equal lines")
    differing = page.run("async () => [...document.querySelectorAll('.compared .differs th')].map((head) => head.firstChild.textContent)")
    assert "ETag" in differing and "x-amz-meta-a" in differing and "Type" not in differing
    assert page.violations() == []
    page.load(page.run("async () => location.hash"))
    page.settled()
    page.see("+ <script>changed</script>")


def test_comparison_finds_the_fewest_lines(page: Page):
    """Against random texts: what was left out of both, in order, is the same; too much is not compared."""
    assert page.run("""async () => {
        const { differences } = await import(document.querySelector("script[type=module]").src.replace("main.js", "lib/compare.js"));
        const random = (seed) => () => (seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648;
        const next = random(7);
        for (let round = 0; round < 200; round += 1) {
            const text = () => Array.from({ length: Math.floor(next() * 12) }, () => "abc"[Math.floor(next() * 3)]).join("\\n");
            const [before, after] = [text(), text()];
            const made = differences(before, after);
            const side = (sign) => made.filter(([of]) => of === " " || of === sign).map(([, line]) => line).join("\\n");
            if (side("-") !== before || side("+") !== after) return [before, after, made];
        }
        const many = (word) => Array.from({ length: 3000 }, (_, index) => `${word}${index}`).join("\\n");
        return differences(many("a"), many("b")) === null;
    }""") is True


def test_old_versions_and_pdf_are_shown(page: Page, console_store: Cairn, versioned: str):
    """An old version has a banner and a way back. PDF is drawn by the browser's viewer, in a frame."""
    old = console_store.s3.put(versioned, "k.txt", b"old text", headers=[("Content-Type", "text/plain")]).get("x-amz-version-id")
    console_store.s3.put(versioned, "k.txt", b"new text", headers=[("Content-Type", "text/plain")])
    page.go("object", versioned, "k.txt")
    page.see("new text")
    page.click("View Version 1")
    page.settled()
    page.see("old text")
    page.see("Version 1 of k.txt, from")
    assert old in page.run("async () => location.hash") and not page.has("Share") and not page.has("Edit")
    page.click("Restore this version")
    page.see("The version is current again.")
    until(lambda: console_store.s3.get(versioned, "k.txt").body == b"old text", "the old text")
    console_store.s3.put(versioned, "a.pdf", PDF, headers=[("Content-Type", "application/pdf")])
    page.go("object", versioned, "a.pdf")
    page.wait("async () => document.querySelector('.preview iframe')?.src.includes('object-preview')", what="the frame")


@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_object_page_fits(page: Page, console_store: Cairn, versioned: str, width: int):
    """Also with the longest key and long metadata, in German."""
    key = "folder/" + "ein sehr langer Name ohne Ende " * 20
    console_store.s3.put(versioned, key, b"x", headers=[("x-amz-meta-" + "n" * 60, "v" * 600)])
    with page.in_language("de"):
        page.resize(width)
        page.go("object", versioned, key)
        page.run("async () => [...document.querySelectorAll('button')].find((one) => one.textContent === 'Bearbeiten').click()")
        assert page.run("async () => document.documentElement.scrollWidth") <= width
