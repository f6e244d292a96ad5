#!/usr/bin/env bash
# Measures the cost of TLS: the same load on Cairn with and without TLS, and on nginx with TLS and the same objects as files, in
# turns, all with one ECDSA certificate. CAIRN_BIN, CAIRN_LOAD_BIN, NGINX_BIN and WORK_DIR as in compare.sh; ROUNDS (3) and DURATION
# (3s). Prints all results and the ratios of the medians. Servers that are not being measured are stopped (SIGSTOP).
set -euo pipefail
cd "$(dirname "$0")/../.."

CAIRN_BIN=${CAIRN_BIN:-target/release/cairn} LOAD=${CAIRN_LOAD_BIN:-target/release/cairn-load}
NGINX_BIN=${NGINX_BIN:-$(PATH=$PATH:/usr/sbin command -v nginx)}
WORK_DIR=$(realpath -m "${WORK_DIR:-target/tls-cost}") ROUNDS=${ROUNDS:-3} DURATION=${DURATION:-3s}
readonly PLAIN=17830 TLS=17840 NGINX=17850
mkdir -p "$WORK_DIR/www/cost"
export AWS_ACCESS_KEY_ID=tls-cost AWS_SECRET_ACCESS_KEY=secret-of-the-tls-cost
declare -A pid endpoint=([plain]=http://127.0.0.1:$PLAIN [tls]=https://127.0.0.1:$TLS [nginx]=https://127.0.0.1:$NGINX)
trap 'kill -CONT "${pid[@]}" 2>/dev/null; kill "${pid[@]}" 2>/dev/null; wait; rm -rf "$WORK_DIR"/data-* "$WORK_DIR/www"' EXIT

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE -keyout "$WORK_DIR/key.pem" -out "$WORK_DIR/certificate.pem" 2>/dev/null

for kind in plain tls; do
    port=$([[ $kind == tls ]] && echo $TLS || echo $PLAIN) certificate=()
    [[ $kind == plain ]] || certificate=(SERVICE_TLS_S3_CERTIFICATE="$WORK_DIR/certificate.pem" SERVICE_TLS_S3_KEY="$WORK_DIR/key.pem")
    env -i PATH="$PATH" SERVICE_DATA_DIR="$WORK_DIR/data-$kind" "${certificate[@]}" \
        SERVICE_S3_BIND="127.0.0.1:$port" SERVICE_API_BIND="127.0.0.1:$((port + 1))" \
        SERVICE_CREDENTIAL_MASTER_KEY=master-key-of-the-cost-of-tls-0001 SERVICE_ROOT_ACCESS_KEY="$AWS_ACCESS_KEY_ID" \
        SERVICE_ROOT_SECRET_KEY="$AWS_SECRET_ACCESS_KEY" SERVICE_MANAGEMENT_SYSTEM_TOKEN=system-token-of-the-cost-of-tls-001 \
        "$CAIRN_BIN" serve >"$WORK_DIR/$kind.log" 2>&1 &
    pid[$kind]=$!
    until curl -sf "http://127.0.0.1:$((port + 1))/ready" >/dev/null; do sleep 0.1; done
done

user=$([[ $EUID -eq 0 ]] && echo 'user root;' || true)
cat >"$WORK_DIR/nginx.conf" <<CONF
$user
daemon off;
worker_processes auto;
pid $WORK_DIR/nginx.pid;
error_log $WORK_DIR/nginx-error.log;
events { worker_connections 4096; }
http {
    access_log off;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 1000000000;
    open_file_cache max=10000;
    client_body_temp_path $WORK_DIR/t1; proxy_temp_path $WORK_DIR/t2; fastcgi_temp_path $WORK_DIR/t3;
    uwsgi_temp_path $WORK_DIR/t4; scgi_temp_path $WORK_DIR/t5;
    server {
        listen 127.0.0.1:$NGINX ssl reuseport;
        ssl_certificate $WORK_DIR/certificate.pem;
        ssl_certificate_key $WORK_DIR/key.pem;
        ssl_protocols TLSv1.2 TLSv1.3;
        root $WORK_DIR/www;
    }
}
CONF
"$NGINX_BIN" -e "$WORK_DIR/nginx-error.log" -c "$WORK_DIR/nginx.conf" &
pid[nginx]=$!
# Any response means that it is running; it responds with 403, because there is no index.
until curl -sk -o /dev/null "https://127.0.0.1:$NGINX/"; do sleep 0.1; done

family() { echo "$1"; pgrep -P "$1" || true; }
signal() { for process in $(family "${pid[$2]}"); do kill "-$1" "$process"; done; }
load() {
    local command=$1 kind=$2
    shift 2
    "$LOAD" "$command" --endpoint "${endpoint[$kind]}" --ca-certificate "$WORK_DIR/certificate.pem" --bucket cost "$@"
}
for kind in plain tls nginx; do signal STOP "$kind"; done

# work COMMAND SIZE KEYS CONNECTIONS SERVER...
work() {
    local command=$1 size=$2 keys=$3 connections=$4 kind auth
    shift 4
    local objects=(--size "$size" --keys "$keys" --prefix "$size-")
    for kind in "$@"; do
        [[ $kind == nginx ]] && continue
        signal CONT "$kind"
        load prepare "$kind" "${objects[@]}" >/dev/null
        signal STOP "$kind"
    done
    [[ $command != get ]] || "$LOAD" files "${objects[@]}" "$WORK_DIR/www/cost"
    for ((round = 1; round <= ROUNDS; round++)); do
        for kind in "$@"; do
            auth=presigned
            [[ $kind != nginx ]] || auth=none
            [[ $command != put ]] || auth=header
            signal CONT "$kind"
            load "$command" "$kind" "${objects[@]}" --auth "$auth" --connections "$connections" --duration "$DURATION" --warm-up 1s \
                --fail-on-error --json >"$WORK_DIR/$command-$size@$kind@$round.json"
            signal STOP "$kind"
        done
    done
    python3 - "$WORK_DIR" "$command-$size" "$@" <<'P'
import json, pathlib, statistics, sys
folder, work, kinds = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
rates = {
    kind: [json.loads(path.read_text())["total"]["requests_per_second"] for path in sorted(folder.glob(f"{work}@{kind}@*.json"))]
    for kind in kinds
}
median = {kind: statistics.median(values) for kind, values in rates.items()}
ratios = [f"tls/{kind} {median['tls'] / median[kind]:.3f}" for kind in kinds if kind != "tls"]
print(work, {kind: [round(value, 1) for value in values] for kind, values in rates.items()}, *ratios)
P
}

work get 16MiB 16 8 plain tls nginx
work get 4KiB 2000 32 plain tls nginx
work put 16MiB 16 8 plain tls
work put 4KiB 2000 32 plain tls
