# vm: --tiers --inject fault/61
# The device itself faults: each 61st place that it is to write to is a page fault. The core copies what failed, and
# nothing is lost.
. /migrate.sh
start_migrate 0 1
faults() { # 4k|2m
    mark
    migrate move 33554432 "$1" 1 || die "migrate move $1"
    echo "$1: migrated $(migrated), by device $(since pages_by_device), by core $(since pages_by_core)," \
        "failed $(since fallback_error)"
    [ "$(migrated)" -eq 8192 ] || die "not 8192 pages"
    [ "$(since pages_by_core)" -eq "$(since fallback_error)" ] || die "the core copied others than those that failed"
    [ $(($(since pages_by_device) + $(since pages_by_core))) -eq 8192 ] || die "not each page once"
}
faults 4k
# A fault for each 61 of 8192 copies.
[ "$(since fallback_error)" -eq 134 ] || die "not 134 faults"
knob reason_mask 8
faults 4k
[ "$(since fallback_error)" -ge 134 ] || die "too few faults"
faults 2m
dmesg | grep -q 'a copy by the device has failed: the core makes it' || die "it is not said"
[ "$(counter queues_failed)" -eq 0 ] || die "a queue was given up"
unload_migrate
no_complaint
