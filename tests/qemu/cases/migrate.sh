# vm: --tiers
# Pages that move_pages moves are copied by the device, all of them: folio by folio, in batches, and huge pages over
# two queues. Then by threads and by one core.
. /migrate.sh
start_migrate 0 1

# 32 MiB to node 1: every page by the copier that was chosen, none bad, at most so many submissions.
moves() { # COPIER 4k|2m MOST_SUBMISSIONS
    mark
    migrate move 33554432 "$2" 1 || die "migrate move"
    echo "$1 $2: migrated $(migrated), by $1 $(since "pages_by_$1"), batched $(since pages_batched)," \
        "submissions $(since submissions)"
    [ "$(migrated)" -eq 8192 ] || die "not 8192 pages"
    [ "$(since "pages_by_$1")" -eq 8192 ] || die "not all by $1"
    [ "$(since submissions)" -le "$3" ] || die "more than $3 submissions"
}

moves device 4k 8192
moves device 2m 32
# Bit 3: move_pages.
knob reason_mask 8
moves device 4k 256
[ "$(since pages_batched)" -eq 8192 ] || die "not all in batches"
moves device 2m 32
knob use_dsa_copy_pages 0
knob cpu_multi_copy_pages 1
moves threads 4k 0
moves threads 2m 0
knob reason_mask 0
moves threads 2m 0
knob cpu_multi_copy_pages 0
moves core 4k 0
moves core 2m 0
cat /sys/module/dray_migrate/parameters/counters
unload_migrate
expect /sys/bus/dsa/devices/wq0.0/state disabled
[ ! -e /proc/timer ] || die "there is a timer without the module"
no_complaint
