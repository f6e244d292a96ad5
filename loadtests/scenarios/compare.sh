#!/usr/bin/env bash
# The benchmark campaign: compares Cairn with other servers on one machine, and writes a table, a CSV file and plots.
#
# Every work runs ROUNDS times with the servers taking turns (A B A B ...), so that changes in the machine's speed affect all of
# them. Servers that are not being measured are stopped (SIGSTOP). Dirty pages that a server has left in the page cache are
# flushed before the next one is measured; that time is not measured.
#
#   CAIRN_BIN=target/release/cairn CAIRN_LOAD_BIN=target/release/cairn-load loadtests/scenarios/compare.sh
#
# Settings, all from the environment:
#   CAIRN_BIN, CAIRN_LOAD_BIN      default target/release/cairn, target/release/cairn-load
#   CAIRN_BEFORE_BIN               another build of Cairn, which takes part as the server `before`; default: none
#   MINIO_BIN, VERSITYGW_BIN, GARAGE_BIN, S3S_FS_BIN, NGINX_BIN
#               the other servers; default: found in PATH; a missing one is skipped with a note
#   SERVERS     those that take part, in their order; default "cairn before minio versitygw garage s3s-fs nginx"
#   WORK_DIR    folder on a real disk (not tmpfs) with some 40 GB; default ./compare-work; must be missing or empty
#   RESULTS     folder for results, table.md, results.csv and plots; default WORK_DIR/results
#   ROUNDS      default 5      DURATION default 10s     WARM_UP default 2s
#   ONLY        extended regular expression of the works to run, e.g. '^put|memory'
#   BASE_PORT   default 7800
#   HUGE        size of the object of the memory measurements; default 5GiB
set -euo pipefail

CAIRN_BIN=${CAIRN_BIN:-target/release/cairn}
LOAD=${CAIRN_LOAD_BIN:-target/release/cairn-load}
CAIRN_BEFORE_BIN=${CAIRN_BEFORE_BIN:-}
MINIO_BIN=${MINIO_BIN:-$(command -v minio || true)}
VERSITYGW_BIN=${VERSITYGW_BIN:-$(command -v versitygw || true)}
GARAGE_BIN=${GARAGE_BIN:-$(command -v garage || true)}
S3S_FS_BIN=${S3S_FS_BIN:-$(command -v s3s-fs || true)}
NGINX_BIN=${NGINX_BIN:-$(PATH=$PATH:/usr/sbin command -v nginx || true)}
SERVERS=${SERVERS:-cairn before minio versitygw garage s3s-fs nginx}
WORK_DIR=$(realpath -m "${WORK_DIR:-compare-work}")
RESULTS=$(realpath -m "${RESULTS:-$WORK_DIR/results}")
ROUNDS=${ROUNDS:-5}
DURATION=${DURATION:-10s}
WARM_UP=${WARM_UP:-2s}
ONLY=${ONLY:-.}
BASE_PORT=${BASE_PORT:-7800}
HUGE=${HUGE:-5GiB}

SCENARIOS=$(dirname "$(realpath "$0")")
BUCKET=bench
export AWS_ACCESS_KEY_ID=GK000102030405060708090a0b
export AWS_SECRET_ACCESS_KEY=000102030405060708090a0b0c0d0e0f000102030405060708090a0b0c0d0e0f

# shellcheck source=servers.sh
source "$SCENARIOS/servers.sh"

wanted() { [[ $1 =~ $ONLY ]]; }

# measure WORK SERVER ROUND COMMAND OPTIONS...: writes one result file.
measure() {
    local work=$1 server=$2 round=$3 command=$4
    shift 4
    sync -f "$WORK_DIR"
    wake "$server"
    say "$work, $server, round $round"
    "$LOAD" "$command" --endpoint "${ENDPOINT[$server]}" --bucket "$BUCKET" --json --server-pid "${PID[$server]}" \
        "$@" >"$RESULTS/$work@$server@$round.json" || note "$work on $server, round $round: exit code $?"
    pause "$server"
}

# prepare SERVER OPTIONS...: writes the objects that are read later; not measured.
prepare() {
    local server=$1
    shift
    wake "$server"
    "$LOAD" prepare --endpoint "${ENDPOINT[$server]}" --bucket "$BUCKET" --fail-on-error "$@" >/dev/null
    pause "$server"
}

# clean SERVER PREFIX: deletes what a round has written; not measured.
clean() {
    wake "$1"
    "$LOAD" clean --endpoint "${ENDPOINT[$1]}" --bucket "$BUCKET" --prefix "$2" >/dev/null || note "cleaning $2 on $1 failed"
    pause "$1"
}

# taking_turns SERVER...: prints those of SERVERS that run, without the ones that are named.
taking_turns() {
    local server
    for server in $SERVERS; do
        [[ -z ${PID[$server]:-} || " $* " == *" $server "* ]] || echo "$server"
    done
}

# auth SERVER: prints how a GET is authorised; nginx knows no signatures.
auth() { if [[ $1 == nginx ]]; then echo none; else echo presigned; fi; }

# reads WORK SIZE KEYS CONNECTIONS: objects with presigned URLs, and on nginx the same objects as files.
reads() {
    local work=$1 size=$2 keys=$3 connections=$4 round server
    wanted "$work" || return 0
    local objects=(--size "$size" --keys "$keys" --prefix "$work-")
    for server in $(taking_turns nginx); do prepare "$server" "${objects[@]}"; done
    [[ -z ${PID[nginx]:-} ]] || "$LOAD" files "${objects[@]}" "$WORK_DIR/nginx/www/$BUCKET"
    for ((round = 1; round <= ROUNDS; round++)); do
        for server in $(taking_turns); do
            measure "$work" "$server" "$round" get --auth "$(auth "$server")" "${objects[@]}" \
                --connections "$connections" --duration "$DURATION" --warm-up "$WARM_UP"
        done
    done
    # One pass verifies every byte.
    for server in $(taking_turns); do
        wake "$server"
        "$LOAD" get --endpoint "${ENDPOINT[$server]}" --bucket "$BUCKET" --verify --fail-on-error \
            --auth "$(auth "$server")" "${objects[@]}" --connections "$connections" --duration 3s --warm-up 0 >/dev/null ||
            note "$work on $server: verification failed"
        pause "$server"
    done
    for server in $(taking_turns nginx); do clean "$server" "$work-"; done
}

# writes WORK SIZE KEYS CONNECTIONS: new objects, with the durability that `durability` states.
writes() {
    local work=$1 size=$2 keys=$3 connections=$4 round server
    wanted "$work" || return 0
    for ((round = 1; round <= ROUNDS; round++)); do
        for server in $(taking_turns nginx); do
            measure "$work" "$server" "$round" put --size "$size" --keys "$keys" --prefix "$work-$round-" \
                --connections "$connections" --duration "$DURATION" --warm-up "$WARM_UP"
            clean "$server" "$work-$round-"
        done
    done
}

lists() {
    local work=list-1000-of-20000-8-connections round server
    wanted "$work" || return 0
    local objects=(--size 1KiB --keys 20000 --prefix "$work-")
    for server in $(taking_turns nginx); do prepare "$server" "${objects[@]}"; done
    for ((round = 1; round <= ROUNDS; round++)); do
        for server in $(taking_turns nginx); do
            measure "$work" "$server" "$round" list "${objects[@]}" --max-keys 1000 --connections 8 \
                --duration "$DURATION" --warm-up "$WARM_UP"
        done
    done
}

# Resident memory of a freshly started Cairn: with 1000 connections, and while a large object is transferred.
memory() {
    wanted memory || return 0
    [[ -n ${PID[cairn]:-} ]] || return 0
    local name
    stop cairn
    rm -rf "$WORK_DIR/cairn"
    start_cairn
    "$LOAD" prepare --endpoint "${ENDPOINT[cairn]}" --bucket "$BUCKET" --keys 1 --fail-on-error >/dev/null
    local to=(--endpoint "${ENDPOINT[cairn]}" --bucket "$BUCKET" --json --server-pid "${PID[cairn]}")
    "$LOAD" idle "${to[@]}" --connections 1000 --touch --duration 5s >"$RESULTS/memory-idle.json" ||
        note "memory: not all idle connections stayed open"
    for name in put get; do
        local verify=()
        [[ $name != get ]] || verify=(--verify)
        "$LOAD" "$name" "${to[@]}" --size "$HUGE" --keys 1 --prefix huge- --requests 1 --connections 1 \
            --timeout 10m "${verify[@]}" --fail-on-error >"$RESULTS/memory-$name.json" ||
            note "memory: $name of $HUGE failed"
    done
    {
        printf '\n| resident memory of Cairn, KiB | first | last | most |\n|---|---|---|---|\n'
        printf '| 1000 open connections | %s | %s | %s |\n' "$(field server_before_kib memory-idle)" \
            "$(field last_kib memory-idle)" "$(field max_kib memory-idle)"
        for name in put get; do
            printf '| %s of one object of %s | %s | %s | %s |\n' "$name" "$HUGE" "$(field first_kib "memory-$name")" \
                "$(field last_kib "memory-$name")" "$(field max_kib "memory-$name")"
        done
    } >>"$RESULTS/memory.md"
}

# field NAME FILE: prints a number from pretty-printed JSON that contains the name once.
field() { sed -n "s/^ *\"$1\": \([0-9]*\),\{0,1\}$/\1/p" "$RESULTS/$2.json"; }

# outcome: writes results.csv and the plots, and prints all tables.
outcome() {
    describe
    # shellcheck disable=SC2046
    describe_servers $(taking_turns)
    if compgen -G "$RESULTS/*@*.json" >/dev/null; then
        python3 "$SCENARIOS/results.py" "$RESULTS"
        cp "$RESULTS/results.csv" "$RESULTS/compare.csv"
        python3 "$SCENARIOS/plot.py" "$RESULTS" >&2
        printf '\nRatios of the medians, and the cost of the generator:\n\n'
        "$LOAD" table "$RESULTS"
    fi
    [[ ! -s $RESULTS/memory.md ]] || cat "$RESULTS/memory.md"
    [[ ! -s $RESULTS/notes.md ]] || { printf '\nNotes:\n\n'; cat "$RESULTS/notes.md"; }
}

main() {
    empty_work_dir
    trap stop_all EXIT
    # shellcheck disable=SC2086
    start_all $SERVERS
    reads get-4KiB-32-connections 4KiB 10000 32
    reads get-64KiB-32-connections 64KiB 4000 32
    reads get-16MiB-8-connections 16MiB 32 8
    writes put-4KiB-1-connection 4KiB 200000 1
    writes put-4KiB-32-connections 4KiB 200000 32
    writes put-64KiB-32-connections 64KiB 50000 32
    writes put-16MiB-8-connections 16MiB 128 8
    lists
    memory
    outcome | tee "$RESULTS/table.md"
}

main "$@"
