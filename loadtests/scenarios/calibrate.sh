#!/usr/bin/env bash
# Measures the maximum rate of the generator itself: against its own null server, which does almost nothing, and nginx.
#
# The null server row of a work is the maximum for that work on this machine, for client and server together. A result of a real
# server above about half of it also depends on the generator.
#
#   CAIRN_LOAD_BIN   default target/release/cairn-load     NGINX_BIN   default: found in PATH; skipped if missing
#   WORK_DIR         default ./calibrate-work; must be absent or empty
#   ROUNDS           default 3      DURATION  default 5s      WARM_UP  default 1s      BASE_PORT  default 7900
set -euo pipefail

LOAD=${CAIRN_LOAD_BIN:-target/release/cairn-load}
NGINX_BIN=${NGINX_BIN:-$(PATH=$PATH:/usr/sbin command -v nginx || true)}
WORK_DIR=$(realpath -m "${WORK_DIR:-calibrate-work}")
RESULTS=$WORK_DIR/results
ROUNDS=${ROUNDS:-3}
DURATION=${DURATION:-5s}
WARM_UP=${WARM_UP:-1s}
BASE_PORT=${BASE_PORT:-7900}
BUCKET=bench
export AWS_ACCESS_KEY_ID=access AWS_SECRET_ACCESS_KEY=secret

# shellcheck source=servers.sh
source "$(dirname "$(realpath "$0")")/servers.sh"

# start_null SIZE PORT
start_null() {
    "$LOAD" null-server --bind "127.0.0.1:$2" --size "$1" >"$WORK_DIR/null-$1.log" 2>&1 &
    PID[null-$1]=$!
    until_ready "null-$1" listening "$2"
}

# measure WORK SERVER PORT ROUND COMMAND OPTIONS...
measure() {
    local work=$1 server=$2 port=$3 round=$4 command=$5
    shift 5
    say "$work, $server, round $round"
    "$LOAD" "$command" --endpoint "http://127.0.0.1:$port" --bucket "$BUCKET" --json --fail-on-error \
        --duration "$DURATION" --warm-up "$WARM_UP" "$@" >"$RESULTS/$work@$server@$round.json"
}

if [[ -d $WORK_DIR && -n $(ls -A "$WORK_DIR") ]]; then
    say "$WORK_DIR is not empty: set WORK_DIR to a folder of its own"
    exit 1
fi
mkdir -p "$RESULTS"
trap stop_all EXIT
small=(--size 4KiB --keys 10000 --prefix small- --connections 32)
large=(--size 16MiB --keys 32 --prefix large- --connections 8)
start_null 4KiB $((BASE_PORT + 1))
start_null 16MiB $((BASE_PORT + 2))
if [[ -x $NGINX_BIN ]]; then
    start_nginx
    "$LOAD" files --size 4KiB --keys 10000 --prefix small- "$WORK_DIR/nginx/www/$BUCKET"
    "$LOAD" files --size 16MiB --keys 32 --prefix large- "$WORK_DIR/nginx/www/$BUCKET"
else
    say "no nginx: skipped"
fi
for ((round = 1; round <= ROUNDS; round++)); do
    for auth in none presigned header; do
        measure "get-4KiB-$auth" null $((BASE_PORT + 1)) "$round" get --auth "$auth" "${small[@]}"
        measure "put-4KiB-$auth" null $((BASE_PORT + 1)) "$round" put --auth "$auth" "${small[@]}"
    done
    measure put-4KiB-header-sha256 null $((BASE_PORT + 1)) "$round" put --payload-digest sha256 "${small[@]}"
    measure get-4KiB-none-verify null $((BASE_PORT + 1)) "$round" get --auth none --verify "${small[@]}"
    measure get-16MiB-none null $((BASE_PORT + 2)) "$round" get --auth none "${large[@]}"
    measure put-16MiB-header null $((BASE_PORT + 2)) "$round" put "${large[@]}"
    if [[ -n ${PID[nginx]:-} ]]; then
        measure get-4KiB-none nginx $((BASE_PORT + 20)) "$round" get --auth none "${small[@]}"
        measure get-16MiB-none nginx $((BASE_PORT + 20)) "$round" get --auth none "${large[@]}"
    fi
done
"$LOAD" table --subject null "$RESULTS"
