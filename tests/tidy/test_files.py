"""Rules for every source file: a header that states its purpose, and a size limit."""

import re
import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
LINES_MAX = 600
# The structs that everything of the engine passes through: further state belongs into a part of them.
CENTRAL_STRUCTS = {"Store": "engine/src/store/mod.rs", "Slice": "engine/src/slice/mod.rs", "Batch": "engine/src/commit/batch/mod.rs"}
CENTRAL_FIELDS_MAX = 12


def tracked(*patterns: str) -> list[Path]:
    """Returns tracked files and new files that are not ignored."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    listed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    return [path for line in listed.splitlines() if (path := REPOSITORY / line).is_file()]


def test_file_patterns_match_files():
    """With a wrong pattern every rule below would pass."""
    assert len(tracked("*.rs")) > 40 and len(tracked("*.py")) > 15


def test_every_rust_file_has_a_header():
    """The first line is a `//!` comment."""
    assert [str(path) for path in tracked("*.rs") if not path.read_text().startswith("//!")] == []


def test_every_python_file_has_a_docstring():
    """The docstring comes first."""
    assert [str(path) for path in tracked("*.py") if not path.read_text().startswith(('"""', "#!"))] == []


def test_no_file_is_too_long():
    """A file of more than 600 lines has more than one subject."""
    long = {str(path): lines for path in tracked("*.rs", "*.py") if (lines := path.read_text().count("\n")) > LINES_MAX}
    assert long == {}


def test_central_structs_have_few_fields():
    """Related fields are a struct of their own."""
    for name, path in CENTRAL_STRUCTS.items():
        body = re.search(rf"struct {name}\b[^{{]*{{\n(.*?)^}}", (REPOSITORY / path).read_text(), re.DOTALL | re.MULTILINE)[1]
        fields = re.findall(r"^    (?:pub(?:\(.*?\))? )?(\w+):", body, re.MULTILINE)
        assert 0 < len(fields) <= CENTRAL_FIELDS_MAX, f"{name} has {len(fields)} fields: {fields}"


def test_no_to_do_marks_or_ignored_tests():
    """Open work belongs in an issue, not in a comment."""
    marks = re.compile(r"\b(TODO|FIXME|XXX)\b|todo!\(|unimplemented!\(|#\[ignore|pytest\.mark\.(skip|xfail)")
    here = Path(__file__).resolve()
    found = [
        f"{path}:{number}" for path in tracked("*.rs", "*.py") if path.resolve() != here
        for number, line in enumerate(path.read_text().splitlines(), 1) if marks.search(line)
    ]
    assert found == []


def test_unsafe_code_is_limited_to_allowed_crates():
    """Only lmdb, md5, net and engine may disable the lint. All other crates use `deny` or `forbid`."""
    allowed = {"lmdb", "md5", "net", "engine"}
    mark = re.compile(r"#!?\[(allow|expect)\(.*unsafe_code")
    found = {path.relative_to(REPOSITORY).parts[0] for path in tracked("*.rs") if mark.search(path.read_text())}
    assert found <= allowed, found - allowed


def headline(path: Path) -> str:
    """Returns the first sentence of a Rust file's header."""
    lines = []
    for line in path.read_text().splitlines():
        text = line.removeprefix("//!").strip() if line.startswith("//!") else ""
        if not text:
            break
        lines.append(text)
    return re.split(r"(?<=[.!?:;])\s", " ".join(lines))[0]


def test_headlines_are_short():
    """The headline of a Rust file has at most twelve words."""
    long = {str(path): headline(path) for path in tracked("*.rs") if len(headline(path).split()) > 12}
    assert long == {}


# The doc comment of an item, up to the line that declares it.
ITEM = re.compile(
    r"^[ \t]*/// (.*)\n(?:[ \t]*(?:///|#\[).*\n)*[ \t]*(?:pub(?:\(.*?\))? )?(?:(?:const|unsafe|async|extern \"C\") )*(?:struct|enum|trait|type|fn|const|static) ",
    re.MULTILINE,
)
QUESTION = re.compile(r"(?:What|Whether|Which|Who|Where|When|Why|How)\b")


def questions(text: str) -> list[str]:
    """Returns the headlines of a Rust file and its items that begin as a question does."""
    return [line for line in (text.partition("\n")[0].removeprefix("//! "), *ITEM.findall(text)) if QUESTION.match(line)]


def test_headlines_name_a_concept():
    """A headline that begins as a question does hides whether the item is a state, an error, a time or a function."""
    assert {str(path): found for path in tracked("*.rs") if (found := questions(path.read_text()))} == {}
    assert questions("//! What is here.\n\n/// Whether it is.\n///\n/// More.\n#[must_use]\npub const fn is(self) -> bool {\n") == ["What is here.", "Whether it is."]
    assert questions("//! Times.\n\n/// Returns when it ends.\npub fn end() {\n    /// Whether it runs.\n    let x;\n") == []


# A verb in third person without its subject: "Also ...", "Does not ...", "Creates it ...", "Builds and removes it ...".
STUMP = re.compile(r"(?:Also|Does|Is|Has|[A-Z][a-z]+s(?: and [a-z]+s)? (?:an?|the|its?|them|how|what))\b")


def stump(text: str) -> str:
    """Returns what follows the headline of a Rust file, if it is one sentence without a subject."""
    header = re.match(r"(?://!.*\n)*", text)[0]
    paragraphs = [" ".join(part.split()) for part in re.sub(r"^//! ?", "", header, flags=re.MULTILINE).split("\n\n")]
    if len(paragraphs) < 2 or len(re.findall(r"[.!?](?= |$)", paragraphs[1])) != 1:
        return ""
    return paragraphs[1] if STUMP.match(paragraphs[1]) else ""


def test_headlines_leave_no_stump():
    """A headline that needs half a sentence more says it itself, or in a sentence."""
    assert {str(path): found for path in tracked("*.rs") if (found := stump(path.read_text()))} == {}
    for text in ("Also reads it.", "Does not read its bytes.", "Creates it only once.", "Builds and removes it in steps, too.", "Shows how it works."):
        assert stump(f"//! Does it.\n//!\n//! {text}\n") == text
    for text in ("Records come in key order.", "Terminals may block.", "Readers and writers share it.", "Its key is short.", "Uses it. It is fast."):
        assert stump(f"//! Does it.\n//!\n//! {text}\n") == ""


def test_no_folder_of_a_test_is_tracked():
    """Tests that are killed leave folders for temporary files in the folder of their crate."""
    names = [path.relative_to(REPOSITORY) for path in tracked("*")]
    assert [str(name) for name in names if any(part.startswith(".tmp") for part in name.parts)] == []
