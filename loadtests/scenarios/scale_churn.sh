# The part `churn` of scale.sh: a store that is nine tenths full, over a simulated month.
#
# The store has a file system of its own, in an image. A tenth of it are objects that are overwritten at random; the rest are groups
# of objects, one for each of the last days. Each day the oldest group is deleted, a new one is written, and half as many of the
# other objects as there are get another content and size. A day takes seconds, so what the server does by the clock (it returns
# unused space after a minute) happens less often in a simulated day than in a real one.
# shellcheck shell=bash disable=SC2154

# Mixed sizes, 611 KiB in the mean.
CHURN_SIZES=6KiB:20,20KiB:20,50KiB:20,200KiB:15,700KiB:15,3MiB:7,8MiB:3
# Groups, which are the days that an object is kept.
GROUPS_KEPT=10
# How many objects show the mean size before the rest is written.
SAMPLE=200
# Days between two measurements of reads and of the disk.
WINDOW=5
CHURN_CONNECTIONS=8
# The result of the last write of each group.
LAST_WRITE=()

# mount_image: makes and mounts the file system; fails with a note if that is not possible here.
mount_image() {
    local image=$WORK_DIR/churn.img
    if [[ $(id -u) != 0 ]] || ! command -v mkfs.ext4 >/dev/null; then
        note 'churn needs root and mkfs.ext4: skipped'
        return 1
    fi
    mkdir -p "$WORK_DIR/churn"
    truncate -s "$(numfmt --from=iec-i "${DISK%B}")" "$image"
    mkfs.ext4 -q -F -m 0 "$image"
    if ! mount -o loop,discard "$image" "$WORK_DIR/churn"; then
        note 'churn: no loop device can be mounted: skipped'
        rm -f "$image"
        return 1
    fi
    MOUNTED=$WORK_DIR/churn
}

unmount_image() {
    umount "$MOUNTED"
    MOUNTED=''
    rm -rf "${WORK_DIR:?}/churn" "$WORK_DIR/churn.img"
}

# used: bytes that payloads and metadata take.
used() { metric churn service_storage_used_bytes; }

# group NUMBER COUNT SEED LABEL ROUND: writes a group of objects.
group() {
    LAST_WRITE[$1]=$RESULTS/churn-put@$4@$5.json
    measure churn churn-put "$4" "$5" prepare --prefix "group-$1/" --keys "$2" --seed "$3" --size "$CHURN_SIZES" \
        --connections "$CHURN_CONNECTIONS"
}

# churn_state LABEL HOT: measures reads of the objects that are overwritten, memory, and the disk.
churn_state() {
    local at=$1 hot=$2
    rounds churn churn-get "$at" get --prefix hot/ --keys "$hot" --connections "$CHURN_CONNECTIONS"
    {
        echo "used_mib $(($(used) >> 20))"
        echo "disk_mib $(df --output=used -BM "$MOUNTED" | tail -1 | tr -dc 0-9)"
        python3 "$SCENARIOS/store.py" memory "${PID[churn]}"
    } | record churn-disk "$at" 1
}

# verify_group NUMBER COUNT SEED LABEL: reads a whole group. Only objects whose write was refused may be missing.
verify_group() {
    local result=$RESULTS/churn-verify@$4@$1.json refused missing
    refused=$(errors "${LAST_WRITE[$1]}")
    measure churn churn-verify "$4" "$1" get --prefix "group-$1/" --keys "$2" --seed "$3" --size "$CHURN_SIZES" \
        --requests "$2" --order sequential --verify --connections "$CHURN_CONNECTIONS"
    missing=$(errors "$result")
    [[ $refused == "$missing" ]] || note "churn: $refused objects of group $1 were refused, and $missing are missing"
}

# errors FILE: prints the number of failed requests of a result.
errors() { sed -n 's/^ *"error_count": \([0-9]*\),$/\1/p' "$1"; }

churn() {
    local hot size mean day at number written=() target
    mount_image || return 0
    # Reads come from the device, where fragments show.
    start churn SERVICE_STORAGE_CACHE_BYTES=0
    local many=(--prefix hot/ --size "$CHURN_SIZES" --connections "$CHURN_CONNECTIONS")
    load churn prepare "${many[@]}" --keys "$SAMPLE" --fail-on-error >/dev/null
    mean=$(($(used) / SAMPLE))
    target=$(($(df --output=size -B1 "$MOUNTED" | tail -1) * 9 / 10))
    hot=$((target / GROUPS_KEPT / mean))
    ((hot > SAMPLE)) || { note "churn: $DISK is too small: skipped"; stop churn; unmount_image; return 0; }
    measure churn churn-put day-0 0 prepare "${many[@]}" --first-key "$SAMPLE" --keys $((hot - SAMPLE))
    mean=$(($(used) / hot))
    size=$(((target - $(used)) / GROUPS_KEPT / mean))
    say "churn: $hot objects that are overwritten, $GROUPS_KEPT groups of $size, $mean bytes each"
    for ((number = 0; number < GROUPS_KEPT; number++)); do
        group "$number" "$size" $((1000 + number)) day-0 $((number + 1))
        written[number]=$((1000 + number))
    done
    churn_state day-0 "$hot"
    for ((day = 1; day <= DAYS; day++)); do
        number=$((day % GROUPS_KEPT))
        at=day-$((((day - 1) / WINDOW + 1) * WINDOW))
        measure churn churn-delete "$at" "$day" delete --prefix "group-$number/" --keys "$size" --connections "$CHURN_CONNECTIONS"
        group "$number" "$size" "$day" "$at" "$day"
        written[number]=$day
        measure churn churn-overwrite "$at" "$day" put "${many[@]}" --keys "$hot" --order random --requests $((hot / 2)) \
            --seed "$day"
        if ((day % WINDOW == 0)); then churn_state "$at" "$hot"; fi
    done
    kill_under_load churn "${many[@]}" --keys "$hot" --order random
    timed_start churn churn-start-after-kill "$at" 1 SERVICE_STORAGE_CACHE_BYTES=0
    for ((number = 0; number < GROUPS_KEPT; number++)); do verify_group "$number" "$size" "${written[number]}" "$at"; done
    stop churn
    unmount_image
}
