#!/usr/bin/env python3
"""Installs one group of tools: `tools.py python|javascript|go|clients|sources` or `tools.py debian COMMAND[:PACKAGE] ...`.

What is not Debian's comes from the cache (see cache.py) and is linked into the clone, where the suites look for it: tests/.venv,
tests/clients/javascript/node_modules, tests/.tools. Group `clients` is what only the client matrix needs, and `sources`
the stores that a campaign imports from.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from runner import cache  # noqa: E402  (the path comes first)

TESTS = Path(__file__).resolve().parents[1]
CLIENTS = TESTS / "clients"
MATRIX_PYTHON = TESTS / ".tools/python"
# Without optimisation the programs take half of the time to build. Equal flags let them share compiled packages.
GO_BUILD = ["go", "build", "-mod=readonly", "-buildvcs=false", "-trimpath", "-gcflags=all=-N -l", "-ldflags=-s -w"]
SYSTEM_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


class Missing(Exception):
    """Something that cannot be installed; the text says what to do."""


def run(*command: object, cwd: Path | None = None, environment: dict[str, str] | None = None) -> None:
    """Runs a command; its failure ends the step."""
    words = [str(word) for word in command]
    print("+", *words, flush=True)
    subprocess.run(words, cwd=cwd, env=environment, check=True)


def need(command: str, what: str) -> None:
    """Raises Missing unless a command is there."""
    if shutil.which(command) is None:
        raise Missing(f"{command} is missing: {what}")


def python() -> None:
    """A virtual environment with exactly the pinned packages."""
    virtual_environment("venv", TESTS / ".venv", TESTS / "requirements.txt")


def virtual_environment(name: str, link: Path, *requirements: Path) -> None:
    """Installs the packages of some requirement files, and nothing else."""
    def build(folder: Path) -> None:
        try:
            run(sys.executable, "-m", "venv", folder)
        except subprocess.CalledProcessError:
            raise Missing("python3 -m venv failed; Debian calls the package python3-venv") from None
        pip = [folder / "bin/pip", "--disable-pip-version-check"]
        run(*pip, "install", "--quiet", "--no-deps", *(word for file in requirements for word in ("-r", file)))
        run(*pip, "check")

    cache.place_link(link, cache.entry(name, cache.key_of(*requirements, sys.version), build))


def javascript() -> None:
    """The AWS SDK and MinIO's client for JavaScript, axe-core (accessibility), Biome, and an OpenID provider."""
    need("npm", "Node.js 20 or later with npm, for the AWS SDK for JavaScript, axe-core, Biome and the OpenID provider")
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if int(version.lstrip("v").split(".")[0]) < 20:
        raise Missing(f"Node.js 20 or later is needed, this is {version}")
    npm_packages("javascript", version)
    npm_packages("openid-provider", version)


def npm_packages(name: str, version: str) -> None:
    """Installs the packages of a lock file."""
    sources = [CLIENTS / name / file for file in ("package.json", "package-lock.json")]

    def build(folder: Path) -> None:
        for source in sources:
            shutil.copy(source, folder)
        run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error", cwd=folder)

    made = cache.entry(name, cache.key_of(*sources, version), build)
    cache.place_link(CLIENTS / name / "node_modules", made / "node_modules")


def go() -> None:
    """The program around the AWS SDK for Go, MinIO's client, load generator and server, and Helm."""
    need("go", "1.24 or later, for the AWS SDK for Go")
    go_program(CLIENTS / "minio", {"mc": "github.com/minio/mc", "warp": "github.com/minio/warp"})
    go_program(CLIENTS / "go", {"go-client": "."})
    go_program(CLIENTS / "minio-server", {"minio": "github.com/minio/minio"})
    go_program(CLIENTS / "helm", {"helm": "helm.sh/helm/v3/cmd/helm"})


def go_program(module: Path, programs: dict[str, str]) -> None:
    """Builds programs, by name and package, in the versions of a module's go.mod and with the sums of its go.sum."""
    version = subprocess.run(["go", "env", "GOVERSION", "GOARCH"], capture_output=True, text=True, check=True).stdout

    def build(folder: Path) -> None:
        for name, package in programs.items():
            run(*GO_BUILD, "-o", folder / name, package, cwd=module)

    sources = sorted(path for path in module.iterdir() if path.suffix in (".go", ".mod", ".sum"))
    made = cache.entry(module.name, cache.key_of(*sources, version, *GO_BUILD, *programs, *programs.values()), build)
    for name in programs:
        cache.place_link(TESTS / ".tools/bin" / name, made / name)


def clients() -> None:
    """The clients that only the matrix runs: Python packages, programs in Go, Rust and Java."""
    virtual_environment("matrix-venv", MATRIX_PYTHON, TESTS / "requirements.txt", TESTS / "client_matrix/requirements.txt")
    need("go", "1.26.6 or later, for the docker registry and OpenTofu")
    go_program(CLIENTS / "registry", {"registry": "github.com/distribution/distribution/v3/cmd/registry"})
    go_program(CLIENTS / "opentofu", {"tofu": "github.com/opentofu/opentofu/cmd/tofu"})
    rust_program(CLIENTS / "rust", "rust-client")
    need("mvn", "Maven, for the AWS SDK for Java, Hadoop and Iceberg; Debian calls the package maven")
    need("javac", "a Java development kit, version 17 or later; Debian calls the package default-jdk-headless")
    java_program(CLIENTS / "java", "Calls.java")
    java_program(CLIENTS / "hadoop", "HadoopCalls.java")
    java_program(CLIENTS / "iceberg", "IcebergCalls.java")


def sources() -> None:
    """The store that `tests/campaign import-sources` imports from."""
    need("go", "1.25 or later, for versitygw")
    go_program(CLIENTS / "versitygw", {"versitygw": "github.com/versity/versitygw/cmd/versitygw"})


def rust_program(package: Path, name: str) -> None:
    """Builds a program in the versions of its lock file."""
    def build(folder: Path) -> None:
        run("cargo", "build", "--locked", "--quiet", "--target-dir", folder / "target", cwd=package)
        shutil.move(folder / "target/debug" / name, folder / name)
        shutil.rmtree(folder / "target")

    sources = [package / "Cargo.toml", package / "Cargo.lock", *sorted((package / "src").iterdir())]
    cache.place_link(TESTS / ".tools/bin" / name, cache.entry(name, cache.key_of(*sources), build) / name)


def java_program(module: Path, source: str) -> None:
    """Compiles a program, beside the libraries that a module's pom.xml names."""
    def build(folder: Path) -> None:
        run("mvn", "--batch-mode", "--quiet", "dependency:copy-dependencies", f"-DoutputDirectory={folder}", cwd=module)
        run("javac", "-d", folder, "-cp", f"{folder}/*", module / source)

    made = cache.entry(module.name, cache.key_of(module / "pom.xml", module / source), build)
    cache.place_link(TESTS / ".tools" / module.name, made)


def debian(*tools: str) -> None:
    """Debian's packages of the commands that are missing, each as COMMAND or COMMAND:PACKAGE, or PATH:PACKAGE for a library.

    In the versions that Debian has now: older browsers have holes and leave the archive, and proxies and shells are what
    their users have.
    """
    def has(command: str) -> bool:
        return Path(command).exists() if command.startswith("/") else shutil.which(command, path=SYSTEM_PATH) is not None

    missing = {tool.split(":")[-1] for tool in tools if not has(tool.split(":")[0])}
    if not missing:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise Missing(f"missing: {' '.join(sorted(missing))}; Debian: apt-get install {' '.join(sorted(missing))}")
    run("apt-get", "update", "-qq")
    install = ["apt-get", "install", "-qq", "-y", "--no-install-recommends", "-o", "Dpkg::Use-Pty=0", *sorted(missing)]
    # The archive's files need not be on disk before the next command runs: nothing here outlives a power cut.
    run(*install, "-o", "Dpkg::Options::=--force-unsafe-io", environment=os.environ | {"DEBIAN_FRONTEND": "noninteractive"})


def main() -> int:
    """Installs the group that the command line names."""
    groups = {"python": python, "javascript": javascript, "go": go, "clients": clients, "sources": sources, "debian": debian}
    try:
        groups[sys.argv[1]](*sys.argv[2:])
    except (Missing, subprocess.CalledProcessError) as error:
        print(f"tools: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
