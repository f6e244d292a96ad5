"""The sections of `./test`: which steps each one has, and what they need.

Everything is compiled in one profile, `ci` (see Cargo.toml), so that each dependency is compiled once: for the binaries that the
suites start, for the unit tests, and its build scripts and macros for clippy too. Whole-workspace calls of cargo keep the
dependencies' features equal from call to call.
"""

import os
from pathlib import Path

from runner.schedule import Step

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / "tests/.venv"
BIOME = ROOT / "tests/clients/javascript/node_modules/.bin/biome"
# One lane for what waits for disks and clocks. The machines of section packages have copies of the host's mounts, which would keep
# the loop devices of section power busy: these two must not run side by side.
CLOCKS = "clocks"
PROFILE = os.environ.get("CAIRN_TEST_PROFILE", "ci")
SECTIONS = ("lint", "unit", "e2e", "packages", "damage", "crash", "power")
# Sections that run only when they are named.
FURTHER_SECTIONS = ("clients",)
# Commands of Debian's packages, as COMMAND or COMMAND:PACKAGE, and libraries as PATH:PACKAGE.
DEBIAN = {
    "e2e": ("chromium", "chromium-headless-shell", "chromedriver:chromium-driver", "zsh", "fish", "mandoc", "nginx", "caddy", "haproxy",
            "restic", "rsync", "openssl", "sslscan", "mkfs.btrfs:btrfs-progs", "mkfs.xfs:xfsprogs", "php:php-cli"),
    "packages": ("systemd-nspawn:systemd-container", "dpkg-shlibdeps:dpkg-dev", "strip:binutils", "podman", "crun", "ss:iproute2", "openssl"),
    "power": ("mkfs.ext4:e2fsprogs", "mkfs.xfs:xfsprogs"),
    "clients": ("aws:awscli", "s3fs", "fusermount3:fuse3", "restic", "pgbackrest", "pg_lsclusters:postgresql", "skopeo", "openssl", "mvn:maven",
                "javac:default-jdk-headless", "duplicity", "/usr/share/doc/python3-boto3:python3-boto3", "ruby",
                "/usr/share/doc/ruby-aws-sdk-s3:ruby-aws-sdk-s3", "/usr/share/doc/ruby-activestorage:ruby-activestorage"),
}
# Mounts file systems, so it belongs to the lane of what does.
MOUNTING = ("tests/e2e/operation/test_operating.py",)
CRASHES = ("tests/campaigns/test_crash.py", "tests/campaigns/test_create_only.py")
POWER_CUTS = ("tests/campaigns/test_power_cut.py", "tests/campaigns/test_failing_disk.py")
# The benchmarks have no tests, and compiling their dependencies takes long; clippy sees them.
COMPILED = ("--profile", PROFILE, "--workspace", "--exclude", "cairn-benches")
FEATURE = "cairn-engine/simulation"
UNIT_TESTS = "unit tests"
COMPILED_TESTS = "end to end, compiled"
CLIENT_TOOLS = "clients of the matrix"
# What runs for a fixed time takes what others leave; compiling gives way to tests that wait for answers. Most waits for the binaries.
FIRST, LATER, LAST = (), ("nice", "-n", "5"), ("nice", "-n", "10")
TOOLS = ("nice", "-n", "5", "python3", str(ROOT / "tests/runner/tools.py"))


def cargo(section: str, name: str, *words: str, priority: tuple[str, ...] = LATER, **more: object) -> Step:
    """A call of cargo; one at a time, because cargo locks its folder."""
    environment = {"CAIRN_FRAGMENTATION_MONTHS": os.environ.get("CAIRN_FRAGMENTATION_MONTHS", "12")}
    return Step(section, name, (*priority, "cargo", *words), lane="cargo", environment=environment, **more)


def pytest(section: str, name: str, lane: str, *words: str, priority: tuple[str, ...] = FIRST, tests: bool = True, **more: object) -> Step:
    """A call of pytest with the pinned packages."""
    command = (*priority, str(VENV / "bin/pytest"), "-c", "tests/pytest.ini", "--rootdir=tests", *words)
    failed = ROOT / "target/test-logs" / f"failed-{name.replace(' ', '-').replace(',', '')}"
    environment = {
        "PATH": f"{VENV / 'bin'}:{os.environ['PATH']}", "CAIRN_TEST_PROFILE": PROFILE, "CAIRN_FAILED_TESTS": str(failed),
        # To compile the tests takes each process eight seconds, where an environment forbids Python to keep the result.
        "PYTHONDONTWRITEBYTECODE": "",
    }
    return Step(section, name, command, lane, tests=tests, environment=environment, **more)


def tools(chosen: list[str]) -> list[Step]:
    """Installs what the chosen sections need; each kind in a lane of its own, because most of it is waiting."""
    # The first call of cargo installs the pinned toolchain; two at a time would disturb each other.
    steps = [Step("tools", "rust", ("cargo", "--version"), lane="cargo")]
    if set(chosen) - {"unit"}:
        steps.append(Step("tools", "python packages", (*TOOLS, "python"), lane="python"))
    # Without root the disks of section power cannot be mounted anyway, and its tests say so.
    wanted = [tool for section in chosen if section != "power" or os.geteuid() == 0 for tool in DEBIAN.get(section, ())]
    if wanted:
        steps.append(Step("tools", "debian packages", (*TOOLS, "debian", *wanted), lane="debian"))
    if {"lint", "e2e", "clients"} & set(chosen):
        steps.append(Step("tools", "javascript packages", (*TOOLS, "javascript"), lane="javascript"))
    if {"e2e", "clients"} & set(chosen):
        steps.append(Step("tools", "go programs", (*TOOLS, "go"), lane="go"))
    if "clients" in chosen:
        steps.append(Step("tools", CLIENT_TOOLS, (*TOOLS, "clients"), lane="go", after=("rust", "debian packages")))
    return steps


def builds(chosen: list[str]) -> list[Step]:
    """The binaries under test, and the programs that test them, in one call."""
    if set(chosen) <= {"lint"}:
        return []
    words = ("build", *COMPILED, "--bins", "--examples")
    return [cargo("build", "binaries", *words, priority=FIRST, no_warnings=True)]


def lint(_ready: tuple[str, ...]) -> list[Step]:
    """Format and lints of Rust and of the console's files, the rules of tests/tidy.

    Clippy sees all features at once; without them the sources are compiled by section unit, where a warning is a failure too.
    """
    clippy = ("clippy", "--profile", PROFILE, "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings")
    return [
        Step("lint", "format", ("cargo", "fmt", "--all", "--check"), lane="suite", after=("rust",)),
        Step("lint", "console", (str(BIOME), "ci", "--error-on-warnings", "--colors=off"), lane="suite", after=("javascript packages",)),
        pytest("lint", "rules on the sources", "suite", "tests/tidy", after=("rust", "python packages")),
        cargo("lint", "clippy", *clippy),
    ]


def unit_tests(*words: str) -> Step:
    """The tests of the crates, or those that `words` choose."""
    return cargo("unit", UNIT_TESTS, "test", *COMPILED, "--no-fail-fast", *words, tests=True)


def unit(_ready: tuple[str, ...]) -> list[Step]:
    """The tests of the crates, and those that need simulated volumes: a build of its own, because the feature scales sizes down."""
    test = ("test", *COMPILED)
    simulated = ("--features", FEATURE, "--test", "simulation")
    return [
        cargo("unit", "unit tests, build", *test, "--no-run", no_warnings=True),
        unit_tests(),
        cargo("unit", "simulated volumes", *test, *simulated, "--no-fail-fast", tests=True, no_warnings=True),
    ]


def e2e(ready: tuple[str, ...]) -> list[Step]:
    """The binary under every kind of request and client."""
    ready = (*ready, "javascript packages", "go programs", "debian packages")
    # Four on two cores: many tests wait for clocks or for programs that start.
    others = (f"--ignore={path}" for path in MOUNTING)
    side_by_side = ("-n", "4", "--dist", "loadfile", "--no-loadscope-reorder", *others, "tests/e2e")
    ready = (*ready, COMPILED_TESTS)
    return [
        # Once, while the binaries are built: the processes below find the result.
        pytest(
            "e2e", COMPILED_TESTS, "python", "--collect-only", "-qq", "tests/e2e", priority=LATER, tests=False, after=("python packages",),
        ),
        pytest("e2e", "operating manual", CLOCKS, *MOUNTING, after=ready),
        pytest("e2e", "end to end", "suite", *side_by_side, after=ready),
    ]


def packages(ready: tuple[str, ...]) -> list[Step]:
    """Debian's package and the image on machines in namespaces, as root."""
    ready = (*ready, "debian packages")
    if os.geteuid() != 0:
        refused = ("sh", "-c", "echo 'section packages mounts, boots and installs in namespaces: it needs root'; exit 1")
        return [Step("packages", "packages", refused, lane=CLOCKS)]
    return [pytest("packages", "packages", CLOCKS, "tests/packages", after=ready)]


def damage(ready: tuple[str, ...]) -> list[Step]:
    """Flipped bits in a store at rest."""
    return [pytest("damage", "damage", CLOCKS, "-s", "tests/campaigns/test_damage.py", "tests/campaigns/test_salvage.py", after=ready)]


def crash(ready: tuple[str, ...]) -> list[Step]:
    """kill -9 under load."""
    return [pytest("crash", "crash", CLOCKS, "-s", *CRASHES, priority=LAST, after=ready)]


def power(ready: tuple[str, ...]) -> list[Step]:
    """Power cuts, a failing disk, a full disk."""
    ready = (*ready, "debian packages") if os.geteuid() == 0 else ready
    return [
        pytest("power", "power cuts", CLOCKS, "-s", *POWER_CUTS, priority=LAST, after=ready),
        pytest("power", "full disk", CLOCKS, "-s", "tests/campaigns/test_full_disk.py", priority=LAST, after=ready),
    ]


def clients(ready: tuple[str, ...]) -> list[Step]:
    """The client matrix, which writes docs/clients.md."""
    ready = (*ready, "javascript packages", "go programs", "debian packages", CLIENT_TOOLS)
    return [Step("clients", "client matrix", (str(ROOT / "tests/campaign"), "clients"), "suite", after=ready)]


def plan(chosen: list[str]) -> list[Step]:
    """All steps of the chosen sections, in the order in which a lane runs them."""
    made = {"lint": lint, "unit": unit, "e2e": e2e, "packages": packages, "damage": damage, "crash": crash, "power": power, "clients": clients}
    # The long build of the binaries is first; what only the compiler has to do comes while the suites wait for disks.
    order = [section for section in ("crash", "power", "damage", "packages", "unit", "lint", "e2e", "clients") if section in chosen]
    ready = ("binaries", "python packages")
    return [*tools(chosen), *builds(chosen), *(step for section in order for step in made[section](ready))]
