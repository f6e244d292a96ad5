#!/usr/bin/env bash
# Measures Cairn as its store grows: many objects, versions, keys of one prefix, buckets, and a disk that is nearly full.
#
# The parts, each with a server and a store of its own, which is removed afterwards:
#
#   grow      small objects under scattered keys in 86 folders; at each step PUT (overwrites), GET, list pages, memory, disk, and
#             the time until /ready answers 200 after kill -9 under load, after a stop, and with the page cache dropped
#   versions  one key with many versions: GET, pages of versions, deletion
#   prefix    a bucket with all keys in one prefix, and one with many folders: pages with a delimiter
#   buckets   many buckets: creation, list, start
#   churn     a store that is nine tenths full, on a file system of its own, over a simulated month; needs root and a loop device
#
#   CAIRN_BIN, CAIRN_LOAD_BIN   default target/release/cairn, target/release/cairn-load
#   WORK_DIR       folder on a real disk; default ./scale-work; must be missing or empty. 30 million objects take some 25 GB
#   RESULTS        default WORK_DIR/results: table.md, results.csv, plots, and one JSON for each measurement
#   PARTS          default "grow versions prefix buckets churn"
#   ROUNDS         default 3      DURATION  default 10s     WARM_UP  default 2s     CONNECTIONS  default 32
#   FILL_CONNECTIONS  default 256: connections that fill the store
#   STEPS          grow: default "300000 3000000 10000000 30000000"        OBJECT_SIZE  default 200B
#   VERSION_STEPS  versions: default "1000 1000000"
#   PREFIX_STEPS   prefix: default "100000 10000000"
#   BUCKET_STEPS   buckets: default "100 10000"
#   DISK           churn: default 8GiB, size of the file system             DAYS  default 30
#   BASE_PORT      default 8000
set -euo pipefail

CAIRN_BIN=${CAIRN_BIN:-target/release/cairn} LOAD=${CAIRN_LOAD_BIN:-target/release/cairn-load}
WORK_DIR=$(realpath -m "${WORK_DIR:-scale-work}")
RESULTS=$(realpath -m "${RESULTS:-$WORK_DIR/results}")
PARTS=${PARTS:-grow versions prefix buckets churn}
ROUNDS=${ROUNDS:-3} DURATION=${DURATION:-10s} WARM_UP=${WARM_UP:-2s}
CONNECTIONS=${CONNECTIONS:-32} FILL_CONNECTIONS=${FILL_CONNECTIONS:-256}
STEPS=${STEPS:-300000 3000000 10000000 30000000} OBJECT_SIZE=${OBJECT_SIZE:-200B}
VERSION_STEPS=${VERSION_STEPS:-1000 1000000}
PREFIX_STEPS=${PREFIX_STEPS:-100000 10000000}
BUCKET_STEPS=${BUCKET_STEPS:-100 10000}
DISK=${DISK:-8GiB} DAYS=${DAYS:-30}
BASE_PORT=${BASE_PORT:-8000}
# A large store may take longer than the default to become ready; that is what is measured.
export READY_SECONDS=600
# How long writers run before a kill, so that it comes in the middle of a load.
KILL_AFTER=1.5
SCENARIOS=$(dirname "$(realpath "$0")")
BUCKET=bench
MOUNTED=''
WRITERS=''
export AWS_ACCESS_KEY_ID=scale AWS_SECRET_ACCESS_KEY=secret-of-the-scale-scenario-0123456789

# shellcheck source=servers.sh
source "$SCENARIOS/servers.sh"

# label NUMBER: prints it as a name of results: 200, 3k, 0.3M, 10M.
label() { awk -v n="$1" 'BEGIN { if (n >= 100000) print n / 1000000 "M"; else if (n >= 1000) print n / 1000 "k"; else print n }'; }

# record WORK LABEL ROUND: writes the lines `name value` of the standard input as a result.
record() {
    awk 'BEGIN { printf "{\"measures\": {" } { printf "%s\"%s\": %s", separator, $1, $2; separator = ", " } END { print "}}" }' \
        >"$RESULTS/$1@$2@$3.json"
}

# load PART COMMAND OPTIONS...: runs cairn-load on the server of that part.
load() {
    local part=$1 command=$2
    shift 2
    "$LOAD" "$command" --endpoint "${ENDPOINT[$part]}" --bucket "$BUCKET" "$@"
}

# measure PART WORK LABEL ROUND COMMAND OPTIONS...: writes one result of cairn-load.
measure() {
    local part=$1 work=$2 label=$3 round=$4 command=$5
    shift 5
    say "$work at $label, round $round"
    load "$part" "$command" --json --server-pid "${PID[$part]}" "$@" >"$RESULTS/$work@$label@$round.json" ||
        note "$work at $label, round $round: exit code $?"
}

# rounds PART WORK LABEL COMMAND OPTIONS...: measures for DURATION, in each round.
rounds() {
    local part=$1 work=$2 label=$3 round
    shift 3
    for ((round = 1; round <= ROUNDS; round++)); do
        measure "$part" "$work" "$label" "$round" "$@" --duration "$DURATION" --warm-up "$WARM_UP"
    done
}

# requests WORK LABEL COMMAND ARGUMENTS...: writes one result of requests that cairn-load does not send.
requests() {
    local work=$1 label=$2
    shift 2
    say "$work at $label"
    python3 "$SCENARIOS/scale_requests.py" "$@" >"$RESULTS/$work@$label@1.json" || note "$work at $label failed"
}

# start PART [NAME=VALUE...]: starts its server. A line for each of millions of requests would be gigabytes of log.
start() {
    local part=$1
    shift
    start_cairn_as "$part" "$BASE_PORT" SERVICE_OBSERVABILITY_REQUEST_LOG=errors SERVICE_S3_COMPATIBILITY=extended "$@"
}

# timed_start PART WORK LABEL ROUND [NAME=VALUE...]: starts its server and records the time until it is ready.
timed_start() {
    local part=$1 work=$2 label=$3 round=$4 begun=${EPOCHREALTIME/[.,]/}
    shift 4
    start "$part" "$@"
    { echo "ready_ms $(((${EPOCHREALTIME/[.,]/} - begun) / 1000))"; python3 "$SCENARIOS/store.py" memory "${PID[$part]}"; } |
        record "$work" "$label" "$round"
    say "$work at $label, round $round: ready after $(((${EPOCHREALTIME/[.,]/} - begun) / 1000)) ms"
}

# kill_under_load PART OPTIONS...: kills its server with SIGKILL while objects are written.
kill_under_load() {
    local part=$1
    shift
    # The generator takes the place of the background shell, so that a signal to this id reaches it.
    (exec "$LOAD" put --endpoint "${ENDPOINT[$part]}" --bucket "$BUCKET" "$@" --connections 16 --duration 60s) \
        >/dev/null 2>&1 &
    WRITERS=$!
    sleep "$KILL_AFTER"
    kill -KILL "${PID[$part]}"
    wait "${PID[$part]}" 2>/dev/null || true
    unset "PID[$part]"
    end_writers
}

end_writers() {
    [[ -z $WRITERS ]] || kill "$WRITERS" 2>/dev/null || true
    wait "$WRITERS" 2>/dev/null || true
    WRITERS=''
}

# memory PART WORK LABEL: records the memory of its server.
memory() { python3 "$SCENARIOS/store.py" memory "${PID[$1]}" | record "$2" "$3" 1; }

# disk PART WORK LABEL COUNT: records what the stopped store takes, in total and for each of COUNT things.
disk() {
    python3 "$SCENARIOS/store.py" disk "$WORK_DIR/$1" "$4" | record "$2" "$3" 1
    { printf '\n%s, %s:\n\n' "$2" "$3"; python3 "$SCENARIOS/store.py" tables "$WORK_DIR/$1"; } >>"$RESULTS/tables.md"
}

remove() { stop "$1" && rm -rf "${WORK_DIR:?}/$1"; }

grow() {
    local count before=0 at round
    # Scattered names have numbers below 2^32, so this makes 86 folders.
    local objects=(--scatter --folder-keys 50000000 --size "$OBJECT_SIZE" --prefix grow/)
    start grow
    for count in $STEPS; do
        at=$(label "$count")
        measure grow fill "$at" 1 prepare "${objects[@]}" --first-key "$before" --keys $((count - before)) \
            --connections "$FILL_CONNECTIONS" --fail-on-error
        before=$count
        rounds grow put "$at" put "${objects[@]}" --keys "$count" --order random --connections "$CONNECTIONS"
        rounds grow get "$at" get "${objects[@]}" --keys "$count" --connections "$CONNECTIONS"
        rounds grow list "$at" list "${objects[@]}" --keys "$count" --max-keys 1000 --connections 8
        rounds grow list-folders "$at" list "${objects[@]}" --keys "$count" --max-keys 1000 --delimiter / --connections 8
        memory grow memory-after-load "$at"
        for ((round = 1; round <= ROUNDS; round++)); do
            kill_under_load grow "${objects[@]}" --keys "$count" --order random
            timed_start grow start-after-kill "$at" "$round"
            stop grow
            timed_start grow start-after-stop "$at" "$round"
        done
        stop grow
        disk grow disk "$at" "$count"
        python3 "$SCENARIOS/store.py" forget "$WORK_DIR/grow"
        timed_start grow start-cold "$at" 1
        measure grow get-cold "$at" 1 get "${objects[@]}" --keys "$count" --connections "$CONNECTIONS" \
            --duration "$DURATION" --warm-up 0
        # One pass over random keys compares what is read with what was written.
        load grow get "${objects[@]}" --keys "$count" --connections "$CONNECTIONS" --duration 3s --warm-up 0 --verify \
            --fail-on-error >/dev/null || note "grow at $at: verification failed"
    done
    remove grow
}

versions() {
    local count before=0 at
    local key=(--keys 1 --prefix one- --size "$OBJECT_SIZE") name=one-0000000000
    local single=(--keys 1 --prefix single- --size "$OBJECT_SIZE")
    start versions
    load versions prepare "${single[@]}" --fail-on-error >/dev/null
    manage versions bucket versioning "$BUCKET" enabled >/dev/null
    rounds versions versions-get-current 1 get "${single[@]}" --connections "$CONNECTIONS"
    for count in $VERSION_STEPS; do
        at=$(label "$count")
        measure versions versions-put "$at" 1 put "${key[@]}" --requests $((count - before)) \
            --connections "$FILL_CONNECTIONS" --fail-on-error
        before=$count
        rounds versions versions-get-current "$at" get "${key[@]}" --connections "$CONNECTIONS"
        requests versions-get-oldest "$at" versions-get "${ENDPOINT[versions]}" "$BUCKET" "$name" 1000
        requests versions-list "$at" versions-list "${ENDPOINT[versions]}" "$BUCKET" "$name" "$count"
        rounds versions versions-list-keys "$at" list --keys 1 --prefix one- --connections 8
        memory versions versions-memory "$at"
    done
    stop versions
    disk versions versions-disk "$at" "$count"
    timed_start versions versions-start-after-stop "$at" 1
    requests versions-delete "$at" versions-delete "${ENDPOINT[versions]}" "$BUCKET" "$name" $((count < 8000 ? count / 4 : 2000))
    requests versions-delete-many "$at" versions-delete-many "${ENDPOINT[versions]}" "$BUCKET" "$name"
    remove versions
}

prefix() {
    local count before=0 at
    start prefix
    for count in $PREFIX_STEPS; do
        at=$(label "$count")
        measure prefix prefix-fill "$at" 1 prepare --prefix flat/ --size "$OBJECT_SIZE" --first-key "$before" \
            --keys $((count - before)) --connections "$FILL_CONNECTIONS" --fail-on-error
        # A tenth as many keys, ten in each folder.
        load prefix prepare --prefix folders/ --folder-keys 10 --size "$OBJECT_SIZE" --first-key $((before / 10)) \
            --keys $(((count - before) / 10)) --connections "$FILL_CONNECTIONS" --fail-on-error >/dev/null
        before=$count
        rounds prefix prefix-keys-in-it "$at" list --prefix flat/ --keys "$count" --delimiter / --connections 8
        # The root has two common prefixes, whatever they hold.
        rounds prefix prefix-root "$at" list --prefix '' --keys 1 --delimiter / --connections 8
        # Pages of a hundred folders, which the first step has too.
        rounds prefix prefix-folders "$at" list --prefix folders/ --folder-keys 10 --keys $((count / 10)) --delimiter / \
            --max-keys 100 --connections 8
        memory prefix prefix-memory "$at"
    done
    stop prefix
    disk prefix prefix-disk "$at" $((count + count / 10))
    timed_start prefix prefix-start-after-stop "$at" 1
    remove prefix
}

buckets() {
    local count before=0 at round
    start buckets
    # The bucket of the writers that are killed.
    load buckets prepare --keys 1 --fail-on-error >/dev/null
    for count in $BUCKET_STEPS; do
        at=$(label "$count")
        requests buckets-create "$at" buckets-create "${ENDPOINT[buckets]}" "$before" $((count - before))
        before=$count
        requests buckets-list "$at" buckets-list "${ENDPOINT[buckets]}" "$((count < 10000 ? count : 9999))" 20
        rounds buckets buckets-put "$at" put --size "$OBJECT_SIZE" --keys 10000 --connections "$CONNECTIONS"
        memory buckets buckets-memory "$at"
        for ((round = 1; round <= ROUNDS; round++)); do
            kill_under_load buckets --size "$OBJECT_SIZE" --keys 10000
            timed_start buckets buckets-start-after-kill "$at" "$round"
        done
    done
    stop buckets
    disk buckets buckets-disk "$at" "$count"
    start buckets
    remove buckets
}

# shellcheck source=scale_churn.sh
source "$SCENARIOS/scale_churn.sh"

outcome() {
    local part works
    describe
    for part in $PARTS; do
        works="^$part-"
        [[ $part != grow ]] || works='^(fill|put|get|list|memory|start|disk)'
        printf '\n%s:\n\n' "$part"
        python3 "$SCENARIOS/results.py" "$RESULTS" "$works"
    done
    cp "$RESULTS/results.csv" "$RESULTS/scale.csv"
    python3 "$SCENARIOS/plot.py" "$RESULTS" >&2 || true
    [[ ! -s $RESULTS/tables.md ]] || { printf '\nTables of the metadata:\n'; cat "$RESULTS/tables.md"; }
    [[ ! -s $RESULTS/notes.md ]] || { printf '\nNotes:\n\n'; cat "$RESULTS/notes.md"; }
}

main() {
    local part
    for part in $PARTS; do
        [[ $part =~ ^(grow|versions|prefix|buckets|churn)$ ]] || { say "no part $part"; exit 1; }
    done
    empty_work_dir
    : >"$RESULTS/tables.md"
    trap 'end_writers; stop_all; [[ -z $MOUNTED ]] || umount "$MOUNTED"' EXIT
    for part in $PARTS; do "$part"; done
    outcome | tee "$RESULTS/table.md"
}

main "$@"
