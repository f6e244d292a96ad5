#!/usr/bin/env bash
# Measures the cost of encryption at rest: the same load on a server without and a server with it, in turns.
# CAIRN_BIN, CAIRN_LOAD_BIN and WORK_DIR as in compare.sh; ROUNDS (3) and DURATION (3s); CACHE_BYTES (0: every GET reads from the
# device and decrypts). Prints all results and the ratio of the medians.
set -euo pipefail
cd "$(dirname "$0")/../.."

CAIRN_BIN=${CAIRN_BIN:-target/release/cairn} LOAD=${CAIRN_LOAD_BIN:-target/release/cairn-load}
WORK_DIR=${WORK_DIR:-$PWD/target/encryption} ROUNDS=${ROUNDS:-3} DURATION=${DURATION:-3s}
mkdir -p "$WORK_DIR"
export AWS_ACCESS_KEY_ID=encryption-cost AWS_SECRET_ACCESS_KEY=secret-of-the-encryption-cost
declare -A pid port=([plain]=17810 [sealed]=17820)
trap 'kill "${pid[@]}" 2>/dev/null || true; wait; rm -rf "$WORK_DIR"/data-*' EXIT

for kind in plain sealed; do
    enabled=$([[ $kind == sealed ]] && echo true || echo false)
    env -i PATH="$PATH" SERVICE_DATA_DIR="$WORK_DIR/data-$kind" SERVICE_STORAGE_ENCRYPTION_ENABLED="$enabled" \
        SERVICE_S3_BIND="127.0.0.1:${port[$kind]}" SERVICE_API_BIND="127.0.0.1:$((port[$kind] + 1))" \
        SERVICE_CREDENTIAL_MASTER_KEY=master-key-of-the-encryption-cost-1 SERVICE_ROOT_ACCESS_KEY="$AWS_ACCESS_KEY_ID" \
        SERVICE_ROOT_SECRET_KEY="$AWS_SECRET_ACCESS_KEY" SERVICE_STORAGE_CACHE_BYTES="${CACHE_BYTES:-0}" \
        SERVICE_MANAGEMENT_SYSTEM_TOKEN=system-token-of-the-encryption-cost "$CAIRN_BIN" serve >"$WORK_DIR/$kind.log" 2>&1 &
    pid[$kind]=$!
    until curl -sf "http://127.0.0.1:$((port[$kind] + 1))/ready" >/dev/null; do sleep 0.1; done
done

for work in "put 16MiB 32 8" "get 16MiB 32 8" "put 4KiB 2000 32" "get 4KiB 2000 32"; do
    read -r command size keys connections <<<"$work"
    for kind in plain sealed; do
        if [[ $command == get ]]; then
            "$LOAD" prepare --endpoint "http://127.0.0.1:${port[$kind]}" --bucket cost --size "$size" --keys "$keys" --prefix "$size/" >/dev/null
        else
            "$LOAD" prepare --endpoint "http://127.0.0.1:${port[$kind]}" --bucket cost --size 1KiB --keys 1 >/dev/null
        fi
    done
    for ((round = 1; round <= ROUNDS; round++)); do
        for kind in plain sealed; do
            "$LOAD" "$command" --endpoint "http://127.0.0.1:${port[$kind]}" --bucket cost --size "$size" --keys "$keys" --prefix "$size/" \
                --connections "$connections" --duration "$DURATION" --warm-up 1s --fail-on-error --json >"$WORK_DIR/$command-$size@$kind@$round.json"
        done
    done
    python3 - "$WORK_DIR" "$command-$size" <<'P'
import json, pathlib, statistics, sys
folder, work = pathlib.Path(sys.argv[1]), sys.argv[2]
rates = {
    kind: [json.loads(path.read_text())["total"]["requests_per_second"] for path in sorted(folder.glob(f"{work}@{kind}@*.json"))]
    for kind in ("plain", "sealed")
}
median = {kind: statistics.median(values) for kind, values in rates.items()}
print(work, {kind: [round(value, 1) for value in values] for kind, values in rates.items()}, f"sealed/plain {median['sealed'] / median['plain']:.3f}")
P
done
