#!/usr/bin/env bash
# Measures large objects: a multipart upload compared with plain uploads of the same bytes, completions of many parts, and a copy
# inside the server compared with cp with direct I/O on the same disk; in turns. CAIRN_BIN, CAIRN_LOAD_BIN and WORK_DIR as in
# compare.sh; ROUNDS (3), OBJECT_SIZE (10GiB, a multiple of 64 MiB; the disk needs three times that), COPY_MIB (1024). Needs curl
# 7.75 or later, for signatures. Prints all results and the ratios of the medians.
set -euo pipefail
cd "$(dirname "$0")/../.."

CAIRN_BIN=${CAIRN_BIN:-target/release/cairn} LOAD=${CAIRN_LOAD_BIN:-target/release/cairn-load}
WORK_DIR=${WORK_DIR:-$PWD/target/multipart} ROUNDS=${ROUNDS:-3} OBJECT_SIZE=${OBJECT_SIZE:-10GiB} COPY_MIB=${COPY_MIB:-1024}
mkdir -p "$WORK_DIR"
export AWS_ACCESS_KEY_ID=multipart-scenario AWS_SECRET_ACCESS_KEY=secret-of-the-multipart-scenario
ENDPOINT=http://127.0.0.1:17830
trap 'kill "$server" 2>/dev/null || true; wait; rm -rf "$WORK_DIR"/data "$WORK_DIR"/file "$WORK_DIR"/file-copy' EXIT

# The cache is disabled, so that a copy reads from the device, like cp with direct I/O.
env -i PATH="$PATH" SERVICE_DATA_DIR="$WORK_DIR/data" SERVICE_S3_BIND=127.0.0.1:17830 SERVICE_API_BIND=127.0.0.1:17831 \
    SERVICE_CREDENTIAL_MASTER_KEY=master-key-of-the-multipart-scenario SERVICE_ROOT_ACCESS_KEY="$AWS_ACCESS_KEY_ID" \
    SERVICE_ROOT_SECRET_KEY="$AWS_SECRET_ACCESS_KEY" SERVICE_STORAGE_CACHE_BYTES=0 \
    SERVICE_MANAGEMENT_SYSTEM_TOKEN=system-token-of-the-multipart-scenario "$CAIRN_BIN" serve >"$WORK_DIR/server.log" 2>&1 &
server=$!
until curl -sf http://127.0.0.1:17831/ready >/dev/null; do sleep 0.1; done

# s3 METHOD PATH [CURL OPTION...]: sends one signed request.
s3() {
    local method=$1 path=$2
    shift 2
    curl -sSf --max-time 600 --aws-sigv4 aws:amz:us-east-1:s3 --user "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" \
        -H 'x-amz-content-sha256: UNSIGNED-PAYLOAD' -X "$method" "$@" "$ENDPOINT$path"
}

# seconds COMMAND...: runs the command and prints its duration.
seconds() {
    local before after
    before=$(date +%s.%N)
    "$@" >/dev/null
    after=$(date +%s.%N)
    echo "$before $after" | awk '{ printf "%.3f\n", $2 - $1 }'
}

bytes=$(numfmt --from=iec-i "${OBJECT_SIZE%B}")
streams=$((bytes / (64 << 20)))
common=(--endpoint "$ENDPOINT" --bucket large --connections 8 --json)
for ((round = 1; round <= ROUNDS; round++)); do
    "$LOAD" multipart "${common[@]}" --keys 1 --size "$OBJECT_SIZE" --part-size 64MiB >"$WORK_DIR/multipart@$round.json"
    "$LOAD" clean "${common[@]}" >/dev/null
    "$LOAD" put "${common[@]}" --keys "$streams" --size 64MiB --requests "$streams" --fail-on-error >"$WORK_DIR/put@$round.json"
    "$LOAD" clean "${common[@]}" >/dev/null
done
"$LOAD" multipart "${common[@]}" --prefix many/ --keys 30 --size 320MiB --part-size 5MiB >"$WORK_DIR/completions-64.json"
"$LOAD" clean "${common[@]}" --prefix many/ >/dev/null

dd if=/dev/urandom of="$WORK_DIR/file" bs=1M count="$COPY_MIB" conv=fsync status=none
s3 PUT /large/source -T "$WORK_DIR/file" >/dev/null
for ((round = 1; round <= ROUNDS; round++)); do
    seconds dd if="$WORK_DIR/file" of="$WORK_DIR/file-copy" bs=1M iflag=direct oflag=direct conv=fsync status=none
    rm "$WORK_DIR/file-copy"
done >"$WORK_DIR/cp.txt"
for ((round = 1; round <= ROUNDS; round++)); do
    seconds s3 PUT /large/copy -H 'x-amz-copy-source: /large/source' -H 'content-length: 0'
    s3 DELETE /large/copy >/dev/null
done >"$WORK_DIR/copy.txt"

python3 - "$WORK_DIR" <<'P'
import json, pathlib, statistics, sys

folder = pathlib.Path(sys.argv[1])
reports = lambda name: [json.loads(path.read_text()) for path in sorted(folder.glob(f"{name}@*.json"))]
multipart = [report["bytes_per_second"] for report in reports("multipart")]
put = [report["total"]["bytes_per_second"] for report in reports("put")]
times = {name: [float(line) for line in (folder / f"{name}.txt").read_text().split()] for name in ("cp", "copy")}
mib = lambda values: [round(value / 2**20) for value in values]
print("multipart MiB/s", mib(multipart), "plain puts MiB/s", mib(put), f"multipart/put {statistics.median(multipart) / statistics.median(put):.2f}")
large = reports("multipart")
print(f"completions ms, {large[0]['parts']} parts", [round(report["completion_max_ms"], 1) for report in large])
many = json.loads((folder / "completions-64.json").read_text())
print(f"completions ms, 64 parts: median {many['completion_p50_ms']:.1f}, longest of {many['objects']} {many['completion_max_ms']:.1f}")
print("copy s", times["copy"], "cp s", times["cp"], f"cp/copy {statistics.median(times['cp']) / statistics.median(times['copy']):.2f}")
P
