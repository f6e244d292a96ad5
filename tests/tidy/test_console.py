"""Rules on the console's sources: which file may import which, how long lines are, and that every text has a translation."""

import json
import re
from pathlib import Path

from tidy.test_files import LINES_MAX, REPOSITORY

WEB = REPOSITORY / "console/web"
COLUMNS_MAX = 120
# From the bottom up. A file imports from lower layers; those of `lib` may import each other, without circles.
LAYERS = ["words", "lib", "views", "main.js"]
IMPORT = re.compile(r"""(?:\bfrom\s*|\bimport\s*\(?\s*)(["'`])(\.[^"'`]+)\1""")
# A string that is too long for a line cannot be broken: it is the key of a translation.
LONG_STRING = re.compile(r'\s*"(?:[^"\\]|\\.)*",?')
STRING = r'"(?:[^"\\\n]|\\.)*"'
WORD = re.compile(rf"  ({STRING}): {STRING},")
# What the server calls the states of compactions, disks and writes: texts that no source of the console contains.
STATES = {
    "disk low", "disk ok", "disk refusing", "running", "writes accepted", "writes refused",
}


def sources(web: Path) -> list[Path]:
    """All modules of a console."""
    return sorted(web.rglob("*.js"))


def imports(web: Path) -> dict[Path, set[Path]]:
    """The modules that each module imports, also by `import()`; a name that is made when it runs stands for all that fit."""
    known, edges = sources(web), {}
    for file in known:
        edges[file] = set()
        for _, target in IMPORT.findall(file.read_text()):
            pattern = str((file.parent / re.sub(r"\$\{[^}]*\}", "*", target)).resolve())
            found = {other for other in known if other.match(pattern)}
            assert found, f"{file}: {target} does not exist"
            edges[file] |= found
    return edges


def wrong_imports(web: Path) -> list[str]:
    """Imports that point up or aside, and circles."""
    edges = imports(web)

    def level(file: Path) -> int:
        return LAYERS.index(file.relative_to(web).parts[0])

    def reached(file: Path) -> set[Path]:
        found, waiting = set(), [file]
        while waiting:
            more = edges[waiting.pop()] - found
            found |= more
            waiting += more
        return found

    wrong = [
        f"{file.relative_to(web)} imports {target.relative_to(web)}" for file, targets in edges.items() for target in sorted(targets)
        if level(target) > level(file) or (level(target) == level(file) and LAYERS[level(file)] != "lib")
    ]
    return wrong + [f"{file.relative_to(web)} imports itself" for file in edges if file in reached(file)]


def long_lines(name: str, text: str) -> list[str]:
    """Lines that the formatter would break if they were not written by hand."""
    return [
        f"{name}:{number}" for number, line in enumerate(text.splitlines(), 1)
        if len(line) > COLUMNS_MAX and not LONG_STRING.fullmatch(line)
    ]


def texts(source: str) -> set[str]:
    """The texts of a module that are translated."""
    plurals = re.findall(rf'\bplural\([^"]*?({STRING}),\s*({STRING})', source)
    return {json.loads(text) for text in [*re.findall(rf"\bt\(\s*({STRING})", source), *(text for pair in plurals for text in pair)]}


def test_imports_point_down():
    """`lib` imports no view, no view another view, and nobody `main.js`."""
    edges = imports(WEB)
    assert len(edges[WEB / "main.js"]) > 15 and sum(map(len, edges.values())) > 100
    assert wrong_imports(WEB) == []


def test_planted_imports_are_found(tmp_path: Path):
    """Whatever form the import has."""
    planted = {
        "words/de.js": "",
        "lib/text.js": "const words = await import(`../words/${language}.js`);",
        "lib/low.js": 'import {\n  a,\n} from "./high.js";',
        "lib/high.js": 'export { b } from "./low.js";\nimport "../views/one.js";',
        "views/one.js": "import * as two from './two.js';",
        "views/two.js": "",
        "main.js": "const view = await import(`./views/${name}.js`);",
    }
    for name, text in planted.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert wrong_imports(tmp_path) == [
        "lib/high.js imports views/one.js", "views/one.js imports views/two.js", "lib/high.js imports itself", "lib/low.js imports itself",
    ]


def test_every_module_has_a_header_and_one_subject():
    """The first line says what it is for."""
    modules = sources(WEB)
    assert len(modules) > 35
    assert [str(path) for path in modules if not path.read_text().startswith("// ")] == []
    assert [str(path) for path in modules if path.parent.name != "words" and path.read_text().count("\n") > LINES_MAX] == []


def test_lines_are_short():
    """At most 120 columns, in style sheets too; words are apart."""
    files = [path for path in [*sources(WEB), *WEB.glob("*.css")] if path.parent.name != "words"]
    assert [line for path in files for line in long_lines(str(path), path.read_text())] == []
    assert long_lines("planted", f'{"x" * 121}\n  "{"x" * 121}",\nt("{"x" * 121}")') == ["planted:1", "planted:3"]


def bare(text: str) -> str:
    """A script or a style sheet as it is served, before lines are joined: `console/build.rs` leaves out comments and indentation."""
    kept, inside = [], False
    for line in text.splitlines():
        inside |= line.lstrip().startswith("/*")
        if not inside and not line.lstrip().startswith("//"):
            kept.append(line.lstrip())
        inside &= "*/" not in line
    return "\n".join(kept)


def test_only_comments_look_like_comments():
    """What is left out when the files are served is found line by line, so texts of several lines could be cut."""
    assert bare("// a\n/** b\n * c */\nd\n  // e\nf // g\n/* h */\ni") == "d\nf // g\ni"
    served = {path.name: bare(path.read_text()).splitlines() for path in sources(WEB)}
    assert [(name, line) for name, lines in served.items() for line in lines if line.count("`") % 2] == []


def test_each_word_has_a_line():
    """In the order of the English texts, so that two changes of the file rarely meet."""
    for file in (WEB / "words").glob("*.js"):
        entries = file.read_text().partition("export const words = {\n")[2].removesuffix("};\n").splitlines()
        assert len(entries) > 500
        assert [line for line in entries if not WORD.fullmatch(line)] == []
        english = [json.loads(WORD.fullmatch(line)[1]) for line in entries]
        assert english == sorted(set(english), key=lambda text: (text.lower(), text))


def test_every_text_has_a_translation():
    """And none is left over."""
    modules = {path: path.read_text() for path in sources(WEB) if path.parent.name != "words"}
    used = set().union(*map(texts, modules.values()))
    written = {json.loads(text) for source in modules.values() for text in re.findall(STRING, source)}
    assert len(used) > 500
    for file in (WEB / "words").glob("*.js"):
        known = {json.loads(text) for text in re.findall(rf"^  ({STRING}):", file.read_text(), re.MULTILINE)}
        assert used - known == set(), "texts without a translation"
        assert known - written == STATES, "translations that nothing uses"


# A term, except in some texts, and the one German word for it.
TERMS = [
    (r"\bquotas?\b", "", "kontingent"),
    (r"\btokens?\b", "", "token"),
    (r"\bbuckets?\b", "", "bucket"),
    (r"\bdelete markers?\b", "", "löschmarke"),
    (r"\blegal hold\b", "", "rechtlich"),
    (r"\bretention\b", "", "aufbewahrung"),
    (r"\bpolic(y|ies)\b", "sharing policy", "richtlinie"),
    (r"\bversions?\b", "", "version"),
    (r"\baccess key\b", "", "zugriffsschlüssel"),
    (r"\bcredentials?\b", "", "zugangsdaten"),
    (r"\bstatements?\b", "", "anweisung"),
    (r"\bshare[sd]?\b", "sharing|so that others", "freig[ea]"),
    (r"\bdetach", "", "entzieh|entzog"),
    (r"\bcreated?\b", "", "erstell"),
    (r"\bids?\b(?!})", "", "kennung"),
]


def test_each_term_has_one_german_word():
    """Readers took a quota, a limit and a share of something for three things."""
    words = [WORD.fullmatch(line) for line in (WEB / "words/de.js").read_text().splitlines()]
    pairs = [(json.loads(found[1]), found[0].partition(": ")[2].lower()) for found in words if found]
    wrong = [
        (english, german) for english, german in pairs for term, exceptions, word in TERMS
        if re.search(term, english, re.I) and not (exceptions and re.search(exceptions, english)) and not re.search(word, german)
    ]
    assert wrong == []


def test_texts_are_found_over_several_lines():
    """The formatter breaks long calls."""
    source = 't(\n  "one",\n) + plural(\n  rows.length,\n  "{n} row",\n  "{n} rows",\n) + not("this")'
    assert texts(source) == {"one", "{n} row", "{n} rows"}


def test_every_error_of_the_server_has_a_meaning():
    """German pages showed the server's English message for every error."""
    code = re.compile(r'"([A-Z]+(?:_[A-Z]+)*)"')
    table = (REPOSITORY / "admin/src/error.rs").read_text().partition("error_table! {\n")[2].partition("\n}\n")[0]
    sign_ins = (REPOSITORY / "openid/src/error.rs").read_text().partition("fn code(")[2].partition("\n    }\n")[0]
    known = set(re.findall(r"^  ([A-Z_]+): \(\) =>", (WEB / "lib/meanings.js").read_text(), re.MULTILINE))
    assert len(known) > 50
    assert known == {*code.findall(table), *code.findall(sign_ins)}
