#!/usr/bin/env bash
# Measures tail latencies at half of the peak rate, undisturbed and while the server works in the background.
#
# First the peak rate of each work is measured in a closed loop. Then an open loop sends half as many requests a second, whatever
# the server does, and latencies run from the time at which a request was due. The states take turns:
#
#   quiet      nothing else is done
#   scrub      the background verification runs (storage.scrub_interval_days)
#   lifecycle  a rule removes objects of another bucket
#   compact    `cairn storage compact` runs, again and again
#   hold       `cairn backup` holds the store for a second, again and again: the metadata are copied each time
#
# Each state has a server of its own with the same content; those that are not being measured are stopped (SIGSTOP).
#
#   CAIRN_BIN, CAIRN_LOAD_BIN      default target/release/cairn, target/release/cairn-load
#   WORK_DIR    folder on a real disk with some 20 GB for each configuration; default ./tail-latency-work; must be missing or empty
#   RESULTS     default WORK_DIR/results: table.md, results.csv, and one JSON for each run
#   ROUNDS      default 5      DURATION  default 10s     WARM_UP  default 2s     PEAK  default 5s, length of the closed loop
#   STATES      default "quiet scrub lifecycle compact hold"
#   WORKS       default "get put mixed"
#   SHARE       default 50: the rate of the open loop in percent of the peak       CONNECTIONS  default 64
#   FILL        default 2GiB: objects of 1 MiB beside the 4 KiB ones, for the scrub to read
#   DUE         default 40000: objects that the rule finds due in each round
#   CONFIGURATIONS   names of configurations that are compared, default "default"
#   SETTINGS_<name>  environment variables of the server in that configuration, such as SETTINGS_log="SERVICE_STORAGE_COMMIT=log"
#   BASE_PORT   default 7900
set -euo pipefail

CAIRN_BIN=${CAIRN_BIN:-target/release/cairn} LOAD=${CAIRN_LOAD_BIN:-target/release/cairn-load}
WORK_DIR=$(realpath -m "${WORK_DIR:-tail-latency-work}")
RESULTS=$(realpath -m "${RESULTS:-$WORK_DIR/results}")
ROUNDS=${ROUNDS:-5} DURATION=${DURATION:-10s} WARM_UP=${WARM_UP:-2s} PEAK=${PEAK:-5s}
STATES=${STATES:-quiet scrub lifecycle compact hold} WORKS=${WORKS:-get put mixed}
SHARE=${SHARE:-50} CONNECTIONS=${CONNECTIONS:-64} FILL=${FILL:-2GiB} DUE=${DUE:-40000}
CONFIGURATIONS=${CONFIGURATIONS:-default} BASE_PORT=${BASE_PORT:-7900}
SCENARIOS=$(dirname "$(realpath "$0")")
BUCKET=bench
export AWS_ACCESS_KEY_ID=tail-latency AWS_SECRET_ACCESS_KEY=secret-of-the-tail-latency-scenario

# shellcheck source=servers.sh
source "$SCENARIOS/servers.sh"

declare -A RATE
REPEATER=''

# load NAME COMMAND OPTIONS...: runs cairn-load on the bucket of that server.
load() {
    local name=$1 command=$2
    shift 2
    "$LOAD" "$command" --endpoint "${ENDPOINT[$name]}" --bucket "$BUCKET" "$@"
}

# options WORK: prints the options of its load. Puts overwrite a fixed set of keys, so that rounds find the same store.
options() {
    case $1 in
        get) echo get --auth presigned --keys 20000 --size 4KiB --prefix get- ;;
        put) echo put --keys 20000 --size 4KiB --prefix put- ;;
        mixed) echo mixed --ratio 70:25:5:0:0 --keys 20000 --size 4KiB --prefix mixed- ;;
        *) say "no work $1: get, put and mixed"; exit 1 ;;
    esac
}

# server STATE CONFIGURATION: prints the name of its server, which is also that of its results.
server() { if [[ $CONFIGURATIONS == *' '* ]]; then echo "$1-$2"; else echo "$1"; fi; }

# start STATE CONFIGURATION PORT [NAME=VALUE...]: starts its server.
start() {
    local settings=SETTINGS_$2 name port=$3
    name=$(server "$1" "$2")
    shift 3
    # A rule finds due what is two seconds old, and looks every second.
    # shellcheck disable=SC2086
    start_cairn_as "$name" "$port" SERVICE_LIFECYCLE_INTERVAL_SECONDS=1 SERVICE_LIFECYCLE_DAY_SECONDS=1 \
        SERVICE_STORAGE_SCRUB_INTERVAL_DAYS=0 "$@" ${!settings:-}
}

fill() {
    local name=$1 work large
    for work in $WORKS; do
        # shellcheck disable=SC2046
        set -- $(options "$work")
        shift
        [[ $1 != --ratio ]] || shift 2
        load "$name" prepare --fail-on-error "$@" >/dev/null
    done
    large=$(($(numfmt --from=iec-i "${FILL%B}") >> 20))
    ((large == 0)) || load "$name" prepare --fail-on-error --keys "$large" --size 1MiB --prefix fill- >/dev/null
}

# first_run NAME: waits until rules have been applied for the first time, which is a minute after a start.
first_run() {
    local attempt
    for ((attempt = 0; attempt < 120; attempt++)); do
        [[ $(metric "$1" service_lifecycle_last_run_timestamp_seconds) == 0 ]] || return 0
        sleep 1
    done
    note "$1: no rule was applied within two minutes"
}

# repeat NAME COMMAND...: repeats a command of the CLI in the background, and counts how often it succeeds.
repeat() {
    : >"$WORK_DIR/repeated"
    while manage "$@" >>"$WORK_DIR/repeated.log" 2>&1; do echo >>"$WORK_DIR/repeated"; done &
    REPEATER=$!
}

# begin STATE NAME ROUND: makes that state begin; what it counts is in `done_meanwhile`.
begin() {
    local name=$2 round=$3
    case $1 in
        lifecycle)
            # Before the objects: an index of objects that exist is made slowly in a busy store.
            manage "$name" bucket create due >/dev/null 2>&1 || true
            manage "$name" lifecycle create due --prefix "$round-" --expire-days 1 >/dev/null
            "$LOAD" prepare --endpoint "${ENDPOINT[$name]}" --bucket due --keys "$DUE" --size 1KiB --prefix "$round-" \
                --fail-on-error >/dev/null || note "$name, round $round: not all objects that become due were put"
            ;;
        compact) repeat "$name" storage compact ;;
        hold) repeat "$name" backup run -- sleep 1 ;;
    esac
}

# done_meanwhile STATE NAME: MiB that were scrubbed, objects that a rule has removed, compactions, or holds, since the start.
done_meanwhile() {
    case $1 in
        scrub) echo $(($(metric "$2" service_scrub_verified_bytes_total) >> 20)) ;;
        lifecycle) metric "$2" service_lifecycle_removed_total ;;
        compact | hold) wc -l <"$WORK_DIR/repeated" ;;
        *) echo 0 ;;
    esac
}

# finish STATE NAME: ends the state, for the next round of another.
finish() {
    [[ -n $REPEATER ]] || return 0
    kill "$REPEATER" 2>/dev/null || true
    wait "$REPEATER" 2>/dev/null || true
    REPEATER=''
    # The server ends what it has begun. One more command waits for a compaction; one that has a hold ends it.
    case $1 in
        compact) manage "$2" storage compact >>"$WORK_DIR/repeated.log" 2>&1 || true ;;
        hold) manage "$2" backup end >>"$WORK_DIR/repeated.log" 2>&1 || true ;;
    esac
}

measure() {
    local work=$1 state=$2 configuration=$3 round=$4 name before after
    name=$(server "$state" "$configuration")
    local result=$RESULTS/$work@$name@$round
    say "$work, $name, round $round"
    sync -f "$WORK_DIR"
    wake "$name"
    begin "$state" "$name" "$work-$round"
    before=$(done_meanwhile "$state" "$name")
    # shellcheck disable=SC2046
    load "$name" $(options "$work") --rate "${RATE[$work]}" --connections "$CONNECTIONS" --duration "$DURATION" \
        --warm-up "$WARM_UP" --json --server-pid "${PID[$name]}" >"$result.json" || note "$work, $name, round $round: exit code $?"
    after=$(done_meanwhile "$state" "$name")
    [[ $state == quiet ]] || echo "meanwhile $((after - before))" >"$result.extra"
    if [[ $state != quiet && $before == "$after" ]]; then note "$work, $name, round $round: nothing was done meanwhile"; fi
    if [[ $state == scrub && $(metric "$name" service_scrub_running) != 1 ]]; then
        note "$work, $name, round $round: the scrub had ended; give it more with FILL"
    fi
    finish "$state" "$name"
    pause "$name"
}

# peak WORK: sets its rate, from a closed loop on an undisturbed server of the first configuration.
peak() {
    local work=$1 name reached
    name=$(server "${STATES%% *}" "${CONFIGURATIONS%% *}")
    wake "$name"
    # shellcheck disable=SC2046
    reached=$(load "$name" $(options "$work") --connections "$CONNECTIONS" --duration "$PEAK" --warm-up 1s --json |
        python3 -c 'import json, sys; print(int(json.load(sys.stdin)["total"]["requests_per_second"]))')
    pause "$name"
    RATE[$work]=$((reached * SHARE / 100))
    say "$work: peak $reached/s, open loop ${RATE[$work]}/s"
    printf -- '- %s: the peak was %s/s in a closed loop with %s connections.\n' "$work" "$reached" "$CONNECTIONS" \
        >>"$RESULTS/peaks.md"
}

main() {
    local state configuration work round port=$BASE_PORT name
    empty_work_dir
    : >"$RESULTS/peaks.md"
    trap '[[ -z $REPEATER ]] || kill "$REPEATER" 2>/dev/null || true; stop_all' EXIT
    for configuration in $CONFIGURATIONS; do
        for state in $STATES; do
            name=$(server "$state" "$configuration")
            say "filling $name"
            start "$state" "$configuration" "$port"
            fill "$name"
            if [[ $state == scrub ]]; then
                # A scrub begins at a start, and a pass over an empty store would have ended at once.
                stop "$name"
                start "$state" "$configuration" "$port" SERVICE_STORAGE_SCRUB_INTERVAL_DAYS=1
            fi
            [[ $state != lifecycle ]] || first_run "$name"
            pause "$name"
            port=$((port + 5))
        done
    done
    for work in $WORKS; do peak "$work"; done
    for ((round = 1; round <= ROUNDS; round++)); do
        for work in $WORKS; do
            for state in $STATES; do
                for configuration in $CONFIGURATIONS; do measure "$work" "$state" "$configuration" "$round"; done
            done
        done
    done
    {
        describe
        python3 "$SCENARIOS/results.py" "$RESULTS"
        printf '\nDone meanwhile: MiB scrubbed, objects removed by a rule, compactions, holds.\n\n'
        cat "$RESULTS/peaks.md" "$RESULTS/notes.md"
    } | tee "$RESULTS/table.md"
}

main "$@"
