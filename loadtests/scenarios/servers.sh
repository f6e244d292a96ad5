# Starts, stops and resumes the servers of the scenarios that source this file. Each start function sets PID[name] and
# ENDPOINT[name] and returns when the server responds. Signals are sent only to processes started here, by their id.
# shellcheck shell=bash disable=SC2154

declare -A PID ENDPOINT
MANAGEMENT_TOKEN=benchmark-system-token-of-no-secrecy-01234567
SCRAPE_TOKEN=benchmark-scrape-token-of-no-secrecy-01234567

say() { printf '%s\n' "$*" >&2; }
note() { say "note: $*"; printf -- '- %s\n' "$*" >>"$RESULTS/notes.md"; }

# empty_work_dir: creates WORK_DIR and RESULTS; refuses a folder that is in use or in memory, where durable writes cost nothing.
empty_work_dir() {
    local binary
    for binary in "$CAIRN_BIN" "$LOAD"; do
        [[ -x $binary ]] || { say "no program at $binary: set CAIRN_BIN and CAIRN_LOAD_BIN"; exit 1; }
    done
    if [[ -d $WORK_DIR && -n $(ls -A "$WORK_DIR") ]]; then
        say "$WORK_DIR is not empty: set WORK_DIR to a folder of its own"
        exit 1
    fi
    mkdir -p "$WORK_DIR" "$RESULTS"
    : >"$RESULTS/notes.md"
    [[ $(stat -f -c %T "$WORK_DIR") != tmpfs ]] || { say "$WORK_DIR is in memory: durable writes cost nothing there"; exit 1; }
    ulimit -n "$(ulimit -H -n)"
}

# describe: prints the machine, its load, and the versions of the programs, which a reader needs to judge the figures.
describe() {
    printf 'Measured %s on %s, kernel %s, %s CPUs (%s), %s MiB of memory, %s of %s. Load average %s.\n' "$(date -u +%F)" \
        "$(uname -m)" "$(uname -r)" "$(nproc)" "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)" \
        "$(awk '/^MemTotal/ { print int($2 / 1024) }' /proc/meminfo)" \
        "$(df --output=fstype "$WORK_DIR" | tail -1)" "$(df -h --output=size "$WORK_DIR" | tail -1 | tr -d ' ')" \
        "$(cut -d' ' -f1-3 /proc/loadavg)"
    printf '%s. %s rounds in turn, %s measured after %s of warm-up; client and servers on the same CPUs.\n\n' \
        "$("$CAIRN_BIN" --version)" "$ROUNDS" "$DURATION" "$WARM_UP"
}

# until_ready NAME COMMAND...: waits until the command succeeds, for READY_SECONDS at most (default 30).
until_ready() {
    local name=$1 end=$((SECONDS + ${READY_SECONDS:-30}))
    shift
    while ((SECONDS < end)); do
        if "$@" >/dev/null 2>&1; then return 0; fi
        kill -0 "${PID[$name]}" 2>/dev/null || break
        sleep 0.01
    done
    say "$name did not start; see $WORK_DIR/$name.log"
    exit 1
}

listening() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# responds PORT PATH: succeeds if a GET of the path returns 200.
responds() (
    exec 3<>"/dev/tcp/127.0.0.1/$1"
    printf 'GET %s HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nConnection: close\r\n\r\n' "$2" "$1" >&3
    IFS= read -r line <&3
    [[ $line == "HTTP/1.1 200"* ]]
)

ready() { responds "$1" /ready; }

# start_cairn_as NAME PORT [NAME=VALUE...]: starts Cairn on the ports PORT to PORT + 2 with the data of that name and settings.
start_cairn_as() {
    local name=$1 port=$2
    shift 2
    mkdir -p "$WORK_DIR/$name"
    env SERVICE_DATA_DIR="$WORK_DIR/$name" \
        SERVICE_S3_BIND="127.0.0.1:$port" SERVICE_API_BIND="127.0.0.1:$((port + 1))" \
        SERVICE_CONSOLE_BIND="127.0.0.1:$((port + 2))" \
        SERVICE_CREDENTIAL_MASTER_KEY=benchmark-master-key-of-no-secrecy-0123456789 \
        SERVICE_MANAGEMENT_SYSTEM_TOKEN="$MANAGEMENT_TOKEN" SERVICE_METRICS_SCRAPE_TOKEN="$SCRAPE_TOKEN" \
        SERVICE_ROOT_ACCESS_KEY="$AWS_ACCESS_KEY_ID" SERVICE_ROOT_SECRET_KEY="$AWS_SECRET_ACCESS_KEY" \
        "$@" "$CAIRN_BIN" serve >>"$WORK_DIR/$name.log" 2>&1 &
    PID[$name]=$!
    ENDPOINT[$name]=http://127.0.0.1:$port
    until_ready "$name" ready "$((port + 1))"
}

start_cairn() { start_cairn_as cairn "$BASE_PORT"; }

# Another build of Cairn, usually an earlier one.
start_before() { CAIRN_BIN=$CAIRN_BEFORE_BIN start_cairn_as before $((BASE_PORT + 60)); }

# manage NAME COMMAND...: runs a command of the management plane of a Cairn that was started here.
manage() {
    local endpoint=${ENDPOINT[$1]}
    shift
    SERVICE_MANAGEMENT_TOKEN=$MANAGEMENT_TOKEN SERVICE_MANAGEMENT_ENDPOINT=${endpoint%:*}:$((${endpoint##*:} + 1)) \
        "$CAIRN_BIN" "$@"
}

# metric NAME METRIC: prints the sum of a metric's series as a whole number, 0 if there is none.
metric() {
    local endpoint=${ENDPOINT[$1]}
    curl -sSf -H "Authorization: Bearer $SCRAPE_TOKEN" "${endpoint%:*}:$((${endpoint##*:} + 1))/metrics" |
        awk -v name="$2" '{ split($1, parts, "{") } parts[1] == name { sum += $2 } END { printf "%.0f\n", sum }'
}

start_s3s-fs() {
    mkdir -p "$WORK_DIR/s3s-fs"
    "$S3S_FS_BIN" --host 127.0.0.1 --port $((BASE_PORT + 10)) --access-key "$AWS_ACCESS_KEY_ID" \
        --secret-key "$AWS_SECRET_ACCESS_KEY" "$WORK_DIR/s3s-fs" >"$WORK_DIR/s3s-fs.log" 2>&1 &
    PID[s3s-fs]=$!
    ENDPOINT[s3s-fs]=http://127.0.0.1:$((BASE_PORT + 10))
    until_ready s3s-fs listening $((BASE_PORT + 10))
}

start_nginx() {
    local folder=$WORK_DIR/nginx user=''
    mkdir -p "$folder/www/$BUCKET" "$folder/temporary"
    [[ $(id -u) != 0 ]] || user='user root;'
    cat >"$folder/nginx.conf" <<CONF
$user
daemon off;
worker_processes auto;
pid $folder/pid;
error_log $folder/error.log;
events { worker_connections 4096; }
http {
    access_log off;
    sendfile on;
    tcp_nopush on;
    tcp_nodelay on;
    keepalive_timeout 600;
    keepalive_requests 1000000000;
    open_file_cache max=100000 inactive=600s;
    open_file_cache_valid 600s;
    default_type application/octet-stream;
    client_body_temp_path $folder/temporary/body;
    proxy_temp_path $folder/temporary/proxy;
    fastcgi_temp_path $folder/temporary/fastcgi;
    uwsgi_temp_path $folder/temporary/uwsgi;
    scgi_temp_path $folder/temporary/scgi;
    server { listen 127.0.0.1:$((BASE_PORT + 20)) reuseport; root $folder/www; }
}
CONF
    "$NGINX_BIN" -e "$folder/error.log" -c "$folder/nginx.conf" >"$WORK_DIR/nginx.log" 2>&1 &
    PID[nginx]=$!
    ENDPOINT[nginx]=http://127.0.0.1:$((BASE_PORT + 20))
    until_ready nginx listening $((BASE_PORT + 20))
}

# Garage with the durability of Cairn: every write flushed, one node, one copy.
start_garage() {
    local folder=$WORK_DIR/garage port=$((BASE_PORT + 30)) config=$WORK_DIR/garage.toml
    mkdir -p "$folder"
    cat >"$config" <<CONF
metadata_dir = "$folder/meta"
data_dir = "$folder/data"
db_engine = "lmdb"
metadata_fsync = true
data_fsync = true
replication_factor = 1
rpc_bind_addr = "127.0.0.1:$((port + 1))"
rpc_public_addr = "127.0.0.1:$((port + 1))"
rpc_secret = "000102030405060708090a0b0c0d0e0f000102030405060708090a0b0c0d0e0f"
[s3_api]
s3_region = "us-east-1"
api_bind_addr = "127.0.0.1:$port"
CONF
    chmod 600 "$config"
    RUST_LOG=warn "$GARAGE_BIN" -c "$config" server >"$WORK_DIR/garage.log" 2>&1 &
    PID[garage]=$!
    ENDPOINT[garage]=http://127.0.0.1:$port
    local garage=("$GARAGE_BIN" -c "$config")
    until_ready garage "${garage[@]}" status
    {
        "${garage[@]}" layout assign -z here -c 100G "$("${garage[@]}" node id -q | cut -d@ -f1)"
        "${garage[@]}" layout apply --version 1
        "${garage[@]}" key import --yes -n bench "$AWS_ACCESS_KEY_ID" "$AWS_SECRET_ACCESS_KEY"
        until_ready garage "${garage[@]}" bucket create "$BUCKET"
        "${garage[@]}" bucket allow --read --write --owner "$BUCKET" --key bench
    } >>"$WORK_DIR/garage.log" 2>&1
}

# MinIO on one drive. It flushes the data of an object, but not the folders that name it.
start_minio() {
    local port=$((BASE_PORT + 40))
    mkdir -p "$WORK_DIR/minio"
    MINIO_ROOT_USER=$AWS_ACCESS_KEY_ID MINIO_ROOT_PASSWORD=$AWS_SECRET_ACCESS_KEY MINIO_BROWSER=off MINIO_UPDATE=off \
        "$MINIO_BIN" server --quiet --config-dir "$WORK_DIR/minio.config" --address "127.0.0.1:$port" \
        --console-address "127.0.0.1:$((port + 1))" "$WORK_DIR/minio" >"$WORK_DIR/minio.log" 2>&1 &
    PID[minio]=$!
    ENDPOINT[minio]=http://127.0.0.1:$port
    # `ready` answers before requests of S3 are.
    until_ready minio responds "$port" /minio/health/cluster
}

# versitygw over a folder. It closes connections after each request unless it is told to keep them.
start_versitygw() {
    local port=$((BASE_PORT + 50))
    mkdir -p "$WORK_DIR/versitygw"
    ROOT_ACCESS_KEY=$AWS_ACCESS_KEY_ID ROOT_SECRET_KEY=$AWS_SECRET_ACCESS_KEY \
        "$VERSITYGW_BIN" --port "127.0.0.1:$port" --keep-alive --quiet --health /health posix "$WORK_DIR/versitygw" \
        >"$WORK_DIR/versitygw.log" 2>&1 &
    PID[versitygw]=$!
    ENDPOINT[versitygw]=http://127.0.0.1:$port
    until_ready versitygw responds "$port" /health
}

# binary SERVER: prints the path of its program, or nothing if it is not installed.
binary() {
    case $1 in
        cairn) echo "$CAIRN_BIN" ;;
        before) echo "${CAIRN_BEFORE_BIN:-}" ;;
        minio) echo "$MINIO_BIN" ;;
        versitygw) echo "$VERSITYGW_BIN" ;;
        garage) echo "$GARAGE_BIN" ;;
        s3s-fs) echo "$S3S_FS_BIN" ;;
        nginx) echo "$NGINX_BIN" ;;
        *) say "no server $1"; exit 1 ;;
    esac
}

# version SERVER: prints what the program says about itself.
version() {
    local program
    program=$(binary "$1")
    case $1 in
        nginx) "$program" -v 2>&1 ;;
        # Built from a module, it does not know its version.
        minio | versitygw) go version -m "$program" 2>/dev/null | awk '$1 == "mod" { print $2, $3 }' ;;
        *) "$program" --version ;;
    esac | head -1
}

# durability SERVER: prints what has been done when a write is acknowledged.
durability() {
    case $1 in
        cairn | before) echo 'data and metadata are flushed' ;;
        minio) echo 'data and metadata of the object are flushed, its folders are not' ;;
        versitygw | s3s-fs) echo 'nothing is flushed: a power cut may lose it' ;;
        garage) echo 'data and metadata are flushed: data_fsync and metadata_fsync are on' ;;
        nginx) echo 'reads only, of files that cairn-load has written; no signature is checked' ;;
    esac
}

# describe_servers SERVER...: prints a table of their versions and of their durability.
describe_servers() {
    local server
    printf '| server | version | when a write is acknowledged |\n|---|---|---|\n'
    for server in "$@"; do printf '| %s | %s | %s |\n' "$server" "$(version "$server")" "$(durability "$server")"; done
    printf '\n'
}

# start_all SERVER...: starts those that are installed, with a bucket, and stops them until they are woken.
start_all() {
    local server program
    for server in "$@"; do
        program=$(binary "$server")
        if [[ -z $program && $server == before ]]; then
            continue
        fi
        if [[ -z $program || ! -x $program ]]; then
            note "$server is not here: skipped"
            continue
        fi
        "start_$server"
        # Creates the bucket on servers that have buckets.
        if [[ $server != nginx ]]; then
            "$LOAD" prepare --endpoint "${ENDPOINT[$server]}" --bucket "$BUCKET" --keys 1 --fail-on-error >/dev/null
        fi
        pause "$server"
    done
}

# family PID: prints the process and its children (nginx has workers).
# shellcheck disable=SC2046
family() { echo "$1" $(cat "/proc/$1/task/$1/children" 2>/dev/null || true); }

# shellcheck disable=SC2046
pause() { kill -STOP $(family "${PID[$1]}"); }
# shellcheck disable=SC2046
wake() { kill -CONT $(family "${PID[$1]}"); }

stop() {
    wake "$1"
    kill -TERM "${PID[$1]}"
    wait "${PID[$1]}" 2>/dev/null || true
    unset "PID[$1]"
}

stop_all() {
    local server
    for server in "${!PID[@]}"; do stop "$server" || true; done
}
