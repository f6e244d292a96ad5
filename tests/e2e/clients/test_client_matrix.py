"""The compatibility matrix: the page is what the results say, and a few clients still do what the results say."""

from client_matrix.document import BEGIN, DOCUMENT, END, render
from client_matrix.run import place_of, results, run_all

# The whole matrix is `./test clients`.
CLIENTS = ["s5cmd", "sdk-go"]
OPERATIONS = ["buckets", "objects", "stream", "presigned", "batch", "copy", "tags"]


def test_page_has_the_results():
    """docs/clients.md has the tables that results.json gives."""
    assert DOCUMENT.read_text().split(BEGIN)[1].split(END)[0].strip() == render().strip()


def test_some_clients_still_do_what_the_results_say():
    """What worked works, and what failed still fails: else the page has to be written anew."""
    outcomes = run_all(CLIENTS, ["strict", "extended"], ["TLS"], OPERATIONS)
    expected = {place_of(item): item["failure"] is None for item in results()["outcomes"]}
    found = {place_of(item): item["failure"] is None for item in outcomes}
    assert len(found) > len(OPERATIONS), found
    assert found == {place: expected[place] for place in found}, [item for item in outcomes if item["failure"]]
