# Starts, stops and resumes the servers of compare.sh, which sources this file. Each start function sets PID[name] and
# ENDPOINT[name] and returns when the server responds. Signals are sent only to processes started here, by their id.
# shellcheck shell=bash disable=SC2154

declare -A PID ENDPOINT

# until_ready NAME COMMAND...: waits until the command succeeds, for 30 seconds at most.
until_ready() {
    local name=$1 attempt
    shift
    for ((attempt = 0; attempt < 300; attempt++)); do
        if "$@" >/dev/null 2>&1; then return 0; fi
        kill -0 "${PID[$name]}" 2>/dev/null || break
        sleep 0.1
    done
    say "$name did not start; see $WORK_DIR/$name.log"
    exit 1
}

listening() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# ready PORT: succeeds if GET /ready returns 200.
ready() (
    exec 3<>"/dev/tcp/127.0.0.1/$1"
    printf 'GET /ready HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nConnection: close\r\n\r\n' "$1" >&3
    IFS= read -r line <&3
    [[ $line == "HTTP/1.1 200"* ]]
)

start_cairn() {
    local api=$((BASE_PORT + 1))
    mkdir -p "$WORK_DIR/cairn"
    SERVICE_DATA_DIR="$WORK_DIR/cairn" \
        SERVICE_S3_BIND="127.0.0.1:$BASE_PORT" SERVICE_API_BIND="127.0.0.1:$api" \
        SERVICE_CONSOLE_BIND="127.0.0.1:$((BASE_PORT + 2))" \
        SERVICE_CREDENTIAL_MASTER_KEY=benchmark-master-key-of-no-secrecy-0123456789 \
        SERVICE_MANAGEMENT_SYSTEM_TOKEN=benchmark-system-token-of-no-secrecy-01234567 \
        SERVICE_ROOT_ACCESS_KEY=$AWS_ACCESS_KEY_ID SERVICE_ROOT_SECRET_KEY=$AWS_SECRET_ACCESS_KEY \
        "$CAIRN_BIN" serve >>"$WORK_DIR/cairn.log" 2>&1 &
    PID[cairn]=$!
    ENDPOINT[cairn]=http://127.0.0.1:$BASE_PORT
    until_ready cairn ready "$api"
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

start_all() {
    local server binary
    for server in cairn s3s-fs nginx garage; do
        case $server in
            cairn) binary=$CAIRN_BIN ;;
            s3s-fs) binary=$S3S_FS_BIN ;;
            nginx) binary=$NGINX_BIN ;;
            garage) binary=$GARAGE_BIN ;;
        esac
        if [[ -z $binary || ! -x $binary ]]; then
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
