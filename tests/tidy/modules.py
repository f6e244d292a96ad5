"""The import graph of a Rust crate, file by file, from its source text.

An edge means that a file names an item of another file, by `use` or by a path in the code. Re-exports are followed to the file
that defines the item. Test code is left out: it may look at whatever it tests.
"""

import re
from dataclasses import dataclass
from pathlib import Path

TEST_ITEM = re.compile(r"#\[cfg\((?:test|any\(test[^\]]*)\)\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([a-z]+\))?\s+)?mod\s+(\w+)\s*(\{|;)")
PATH = re.compile(r"\b(crate|super|self)((?:::\w+)+)")
USE = re.compile(r"(?:^|[;{}\s])(pub(?:\([a-z ]+\))?\s+)?use\s+([^;]+);")

INLINE_MODULE = re.compile(r"\bmod\s+(\w+)\s*\{")


def end_of_block(text: str, start: int) -> int:
    """The index after the brace that closes the block whose content begins at `start`."""
    depth, end = 1, start
    while depth:
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        end += 1
    return end


def inline_modules(text: str) -> tuple[str, list[tuple[str, str]]]:
    """The text without the modules that are written out in it, and these with their names."""
    found = []
    while match := INLINE_MODULE.search(text):
        end = end_of_block(text, match.end())
        found.append((match.group(1), text[match.end() : end - 1]))
        text = text[: match.start()] + text[end:]
    return text, found


@dataclass
class Module:
    """One file: its place in the module tree and what it imports."""

    path: tuple[str, ...]
    file: Path
    text: str
    exports: dict[str, tuple[str, ...]]


def without_comments_and_strings(text: str) -> str:
    """Replaces comments and strings with blanks, so that paths in prose do not count."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|b?r(#*)".*?"\1|b?"(?:\\.|[^"\\])*"', re.DOTALL)
    return pattern.sub(" ", text)


def without_tests(text: str) -> tuple[str, set[str]]:
    """The text without its test modules, and the names of those that are files of their own."""
    files = set()
    while match := TEST_ITEM.search(text):
        end = match.end()
        if match.group(2) == ";":
            files.add(match.group(1))
        else:
            end = end_of_block(text, end)
        text = text[: match.start()] + text[end:]
    return text, files


def use_paths(tree: str) -> list[tuple[tuple[str, ...], str]]:
    """Each path of a use tree, with the name it gets."""
    tree = tree.strip()
    if match := re.fullmatch(r"((?:\w+::)*)\{(.*)\}", tree, re.DOTALL):
        prefix = tuple(part for part in match.group(1).split("::") if part)
        return [(prefix + path, name) for part in split_top(match.group(2)) for path, name in use_paths(part)]
    path, _, alias = (part.strip() for part in tree.partition(" as "))
    parts = tuple(part for part in path.split("::") if part)
    if parts and parts[-1] == "self":
        parts = parts[:-1]
    return [(parts, alias or (parts[-1] if parts else ""))]


def split_top(text: str) -> list[str]:
    """Splits at commas outside of braces."""
    parts, depth, current = [], 0, ""
    for letter in text:
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += letter
    return [part for part in [*parts, current] if part.strip()]


def absolute(path: tuple[str, ...], module: tuple[str, ...]) -> tuple[str, ...] | None:
    """A path from the crate's root; `None` when it leads out of the crate."""
    if path[:1] == ("crate",):
        return path[1:]
    if path[:1] == ("self",):
        return module + path[1:]
    if path[:1] == ("super",):
        while path[:1] == ("super",):
            path, module = path[1:], module[:-1]
        return module + path
    return None


class Crate:
    """The files of a crate and the edges between them."""

    def __init__(self, source: Path):
        self.source = source
        self.modules: dict[tuple[str, ...], Module] = {}
        root = source / "lib.rs" if (source / "lib.rs").is_file() else source / "main.rs"
        self._load((), root)
        self.edges: dict[tuple[str, ...], dict[tuple[str, ...], set[str]]] = {}
        for module in self.modules.values():
            self.edges[module.path] = self._imports(module)

    def _load(self, path: tuple[str, ...], file: Path) -> None:
        """Reads a file and the modules that it declares."""
        text, tests = without_tests(without_comments_and_strings(file.read_text()))
        exports = {}
        for _, tree in USE.findall(inline_modules(text)[0]):
            for target, name in use_paths(tree):
                exports[name] = target
        self.modules[path] = Module(path, file, text, exports)
        folder = file.parent if file.name in ("lib.rs", "main.rs", "mod.rs") else file.parent / file.stem
        for name in re.findall(r"\bmod\s+(\w+)\s*;", text):
            if name in tests:
                continue
            for candidate in (folder / f"{name}.rs", folder / name / "mod.rs"):
                if candidate.is_file():
                    self._load((*path, name), candidate)

    def _imports(self, module: Module) -> dict[tuple[str, ...], set[str]]:
        """The files that a file takes something from, with the names."""
        found: dict[tuple[str, ...], set[str]] = {}
        scopes = [(module.path, module.text)]
        while scopes:
            scope, text = scopes.pop()
            text, inner = inline_modules(text)
            scopes += [((*scope, name), body) for name, body in inner]
            paths = [target for _, tree in USE.findall(text) for target, _ in use_paths(tree)]
            paths += [(head, *tail.split("::")[1:]) for head, tail in PATH.findall(USE.sub(" ", text))]
            for path in paths:
                target = self._owner(path, scope)
                if target is not None and target[0] != module.path:
                    found.setdefault(target[0], set()).add(target[1])
        return found

    def _owner(self, path: tuple[str, ...], module: tuple[str, ...], depth: int = 8) -> tuple[tuple[str, ...], str] | None:
        """The file that defines what a path names."""
        full = absolute(path, module)
        if full is None and path and (*module, path[0]) in self.modules:
            full = (*module, *path)
        if full is None or depth == 0:
            return None
        length = max(count for count in range(len(full) + 1) if full[:count] in self.modules)
        owner, rest = full[:length], full[length:]
        if rest and rest[0] in self.modules[owner].exports:
            target = self.modules[owner].exports[rest[0]]
            followed = self._owner((*target, *rest[1:]), owner, depth - 1) if target != path else None
            if followed is not None:
                return followed
        return owner, "::".join(rest) or "module"

    def place(self, path: tuple[str, ...]) -> str:
        """The folder or file at the top of the crate that a module belongs to."""
        return path[0] if path else "lib"

    def cycles(self) -> list[list[str]]:
        """Groups of files that import each other. A module and those inside it count as files of their own."""
        groups = [group for group in strongly_connected(self.edges) if len(group) > 1]
        return [sorted(self.parts(path).as_posix() for path in group) for group in groups]

    def parts(self, path: tuple[str, ...]) -> Path:
        """The file of a module, relative to the sources."""
        return self.modules[path].file.relative_to(self.source)

    def folder_cycles(self) -> list[list[str]]:
        """Groups of entries of one folder, at any depth, that import each other. A file `x.rs` is the head of a folder `x`."""
        found = []
        folders = {parent for path in self.modules for parent in self.parts(path).parents}
        for folder in sorted(folders):
            graph: dict[str, set[str]] = {}
            for path, targets in self.edges.items():
                for target in targets:
                    ends = [self.parts(end) for end in (path, target)]
                    if all(folder in end.parents for end in ends):
                        own, other = (end.parts[len(folder.parts)].removesuffix(".rs") for end in ends)
                        if own != other:
                            graph.setdefault(own, set()).add(other)
                            graph.setdefault(other, set())
            groups = [sorted(group) for group in strongly_connected(graph) if len(group) > 1]
            found += [[(folder / name).as_posix() for name in group] for group in groups]
        return found


def strongly_connected(graph: dict) -> list[list]:
    """Tarjan's algorithm, without recursion."""
    index: dict = {}
    low: dict = {}
    stack, on_stack, groups = [], set(), []
    for start in graph:
        if start in index:
            continue
        work = [(start, iter(graph[start]))]
        index[start] = low[start] = len(index)
        stack.append(start)
        on_stack.add(start)
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(graph[target])))
                    break
                if target in on_stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    group = []
                    while True:
                        member = stack.pop()
                        on_stack.discard(member)
                        group.append(member)
                        if member == node:
                            break
                    groups.append(group)
    return groups
