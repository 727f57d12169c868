# Boots a guest with a virtual DSA, runs a script in it, and says how that went.

# QEMU's IOMMU as the driver wants it for shared virtual addressing.
iommu='intel-iommu,scalable-mode=on,fsts=on,svm=on,pasid-bits=20,device-iotlb=on,caching-mode=on,aw-bits=48'

boot_defaults() {
    memory=1G processors=2 watchdog_s=240 at_most_s= interactive= gdb= image= socket= append= until= live=
    tiers= programs= reboot=
    door=() machine=() extra=() nets=()
}

# A virtio-net device for each socket of a vhost-user back end; QEMU connects again when the back end comes back. What
# follows the socket are properties of the device (packed=on). Their addresses leave the DSA where it is without them.
net_arguments() {
    local n=0 net properties
    for net in "${nets[@]}"; do
        properties=${net#"${net%%,*}"}
        printf '%s\n' -chardev "socket,id=net$n,path=${net%%,*},reconnect-ms=500" \
            -netdev "vhost-user,id=net$n,chardev=net$n" \
            -device "virtio-net-pci,netdev=net$n,romfile=,addr=0x1$n,mac=$(mac_address "$n")$properties"
        n=$((n + 1))
    done
}

# Of network device N: another one in each guest, the same at each boot of SCRIPT with these sockets.
mac_address() { # N
    printf '52:54:00:%s\n' "$(printf '%s' "${nets[$1]%%,*}" | sha256sum | sed 's/\(..\)\(..\)\(..\).*/\1:\2:\3/')"
}

# The machine's memory: one node, or (tiers) one with the processors and one that is slower and has none. HMAT tells
# the guest which is which, so that it has two memory tiers. A device reads and writes it through its file.
memory_arguments() {
    local half
    if [ -z "$tiers" ]; then
        printf '%s\n' -machine q35,memory-backend=mem \
            -object "memory-backend-memfd,id=mem,size=$memory,share=on"
        return
    fi
    half=$(($(numfmt --from=iec "$memory") / 2))
    printf '%s\n' -machine q35,hmat=on \
        -object "memory-backend-memfd,id=near,size=$half,share=on" \
        -object "memory-backend-memfd,id=far,size=$half,share=on" \
        -numa "node,nodeid=0,memdev=near,cpus=0-$((processors - 1))" \
        -numa node,nodeid=1,memdev=far,initiator=0 -numa dist,src=0,dst=1,val=20 \
        -numa hmat-lb,initiator=0,target=0,hierarchy=memory,data-type=access-latency,latency=100 \
        -numa hmat-lb,initiator=0,target=0,hierarchy=memory,data-type=access-bandwidth,bandwidth=100G \
        -numa hmat-lb,initiator=0,target=1,hierarchy=memory,data-type=access-latency,latency=300 \
        -numa hmat-lb,initiator=0,target=1,hierarchy=memory,data-type=access-bandwidth,bandwidth=20G
}

# Without no_timer_check a kernel on a busy host may find that its timer does not tick in time, and panics. With
# unknown_nmi_panic the watchdog's NMI has the kernel say where it is. With tsc=unstable the HPET is the guest's clock, which
# QEMU derives from real time. The time stamp counter's frequency is measured at boot, wrongly where a busy host lets the
# guest wait in the middle: a guest was seen whose clock ran seven times too fast, and with it all of its time limits. And
# no watchdog of clocks runs: in kernel 7.2 watchdog_check_skew may wait, in a timer on processor 0, for processor 1, which
# is in multi_cpu_stop with interrupts off and waits for processor 0. watchdog_thresh=60: a processor that a busy host does
# not run for 20 s is not locked up.
#
# boot SCRIPT [CONSOLE]: without a console's file, prints what the script prints. Exit code of the script, 124 if the
# guest was stuck, 125 if it ended without one.
boot() {
    local script=$1 console=${2:-} status dray=${DRAY:-dray}
    work= door_pid= qemu_pid=
    # Whatever ends this script ends the guest and the device.
    # A second signal, as with Ctrl-C under `dray vm`, does not stop it in that.
    trap 'trap "" INT TERM HUP; end_all; rm -rf "$work"' EXIT
    trap 'exit 130' INT TERM HUP
    remove_abandoned
    work=$(mktemp -d -t dray-vm.XXXXXX)
    exec 9>"$work/lock"
    flock 9
    [ -n "$console" ] || live=$work/console console=$work/console
    : >"$console" || exit 1
    local net
    for net in "${nets[@]}"; do
        [ -S "${net%%,*}" ] || fail "${net%%,*} is no socket: start the back end first (dray vhost --port ${net%%,*})"
    done
    initramfs "$work/initrd" "$script" "${extra[@]}"
    if [ -z "$socket" ]; then
        socket=$work/dsa.sock
        "${tied[@]}" "$dray" vfio --socket "$socket" --once "${door[@]}" 2>"$work/door" &
        door_pid=$!
        until [ -S "$socket" ]; do
            kill -0 "$door_pid" 2>/dev/null || {
                cat "$work/door" >&2
                fail "the device did not start"
            }
            sleep 0.05
        done
    fi
    local nodes network
    mapfile -t nodes < <(memory_arguments)
    mapfile -t network < <(net_arguments)
    # Not even a QEMU that does not go on stays behind.
    local command=(setpriv --pdeathsig KILL "${loader[@]}" "$root/usr/bin/qemu-system-x86_64"
        -L "$root/usr/share/qemu" -L "$root/usr/share/seabios"
        "${nodes[@]}" -m "$memory" -smp "$processors"
        -accel tcg -cpu max,la57=off -nodefaults -display none
        -kernel "${image:-$root/usr/lib/modules/$(kernel)/vmlinuz}" -initrd "$work/initrd"
        -append "console=ttyS0 panic=-1 no_timer_check tsc=unstable watchdog_thresh=60 unknown_nmi_panic ${interactive:-quiet} intel_iommu=on,sm_on iommu=pt $append"
        -device "$iommu" "${network[@]}" "${machine[@]}"
        -device '{"driver":"vfio-user-pci","socket":{"type":"unix","path":"'"$socket"'"}}')
    [ -n "$reboot" ] || command+=(-no-reboot)
    # A socket in a directory of this user's: who reaches it commands the machine, and by its monitor the one that QEMU
    # runs on.
    if [ -n "$gdb" ]; then
        command+=(-gdb "unix:$work/gdb,server=on,wait=off" -S)
        echo "waiting for gdb: target remote $work/gdb" >&2
    fi
    if [ -n "$interactive" ]; then
        # In the background, so that a signal to this script ends it; the terminal is its own. QEMU warns of what
        # this device does not have, and no guest needs.
        "${command[@]}" -serial mon:stdio <&0 2> >(grep --line-buffered -v 'Could not enable error recovery' >&2) &
        qemu_pid=$!
        wait "$qemu_pid" || true
        status=0
    else
        mkfifo "$work/monitor.in" "$work/monitor.out"
        "${command[@]}" -serial "file:$console" -chardev "pipe,id=monitor,path=$work/monitor" \
            -mon chardev=monitor,mode=readline </dev/null >"$work/qemu" 2>&1 &
        qemu_pid=$!
        watch "$qemu_pid" "$console"
        status=$?
        if [ "$status" -eq 125 ]; then
            grep -v 'Could not enable error recovery' "$work/qemu" >&2 || true
        fi
    fi
    end_all
    if [ -s "$work/door" ]; then
        grep -E '^(warning|error|the client was dropped)' "$work/door" >&2 || true
        # As counts that could not be written.
        ! grep -q '^error' "$work/door" || [ "$status" -ne 0 ] || status=1
    fi
    return "$status"
}

# Folders of boots that were ended with SIGKILL: nobody holds their locks.
remove_abandoned() {
    local lock
    for lock in $(find "${TMPDIR:-/tmp}" -maxdepth 2 -path '*/dray-vm.*/lock' -mmin +1 2>/dev/null); do
        flock -n "$lock" true && rm -rf "$(dirname "$lock")"
    done
}

# Ends the guest, then the device, and waits for them.
end_all() {
    local pid
    for pid in $qemu_pid $door_pid; do
        kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
    done
    qemu_pid= door_pid=
}

# Where a guest is that does not go on, on stderr: what its processors execute, by QEMU's monitor; then what the kernel
# itself says to an NMI, if it came so far.
locate() { # CONSOLE
    local from to
    from=$(($(wc -l <"$1") + 1))
    exec 6<>"$work/monitor.in" 5<>"$work/monitor.out"
    printf 'info registers -a\nnmi\n' >&6
    {
        # The first line that is not there ends it.
        while IFS= read -r -t 5 -u 5 to; do printf '%s\n' "$to"; done
        echo END
    } | tr -d '\r' | awk '
        /^CPU#/ {cpu = substr($1, 5)}
        /(RIP|EIP)=/ && cpu != "" {
            ip = ring = halted = ""
            for (i = 1; i <= NF; i++) {
                if ($i ~ /^[RE]IP=/) ip = substr($i, 5)
                if ($i ~ /^CPL=/) ring = substr($i, 5)
                if ($i ~ /^HLT=/) halted = substr($i, 5)
            }
            where = ring == 3 ? "a program" : ip ~ /^ffffffff/ ? "the kernel or a module" : length(ip) == 8 || ip ~ /^0000000000/ ? \
                "firmware, or the kernel before its own page tables" : "the kernel"
            print "processor " cpu ": at " ip ", " where (halted == 1 ? ", halted until an interrupt" : "")
            cpu = ""; any = 1
        }
        /^END$/ && !any {print "QEMU itself does not answer its monitor"}' >&2
    exec 6>&- 5>&-
    tail -n "+$from" "$1" | tr -d '\r' |
        grep -aE 'NMI|CPU: |RIP: |^(\[[ 0-9.]*\] )? +[a-z_0-9.]+\+0x' | head -30 >&2 ||
        note "the kernel says nothing to an NMI"
}

# Seconds that a process was ready to run and this machine ran others: those of the thread that waited longest.
withheld() { # PID
    cat "/proc/$1"/task/*/schedstat 2>/dev/null | awk '$2 > most {most = $2} END {print int(most / 1e9)}'
}

# Waits for the guest's end; a guest that takes too long is ended, and named by its last line and where it is. Seconds
# that a busy machine withholds from QEMU are not the guest's, up to at_most_s.
watch() {
    local pid=$1 console=$2 begin=$SECONDS code last shown= partial= limit=$watchdog_s own most
    most=${at_most_s:-$((10 * watchdog_s))}
    [ -z "$live" ] || exec 7<"$console"
    while kill -0 "$pid" 2>/dev/null; do
        if [ $((SECONDS - begin)) -ge "$limit" ]; then
            own=$((watchdog_s + $(withheld "$pid")))
            [ "$own" -le "$most" ] || own=$most
            if [ "$own" -gt "$limit" ]; then
                limit=$own
                continue
            fi
            last=$(tail -1 "$console" | tr -d '\r')
            locate "$console"
            kill -9 "$pid" 2>/dev/null || true
            wait "$pid" 2>/dev/null || true
            note "stuck after $limit s; the last line was: ${last:-none, it has said nothing}"
            return 124
        fi
        if [ -n "$until" ] && grep -q "^$until" "$console"; then
            kill -9 "$pid" 2>/dev/null || true
            wait "$pid" 2>/dev/null || true
            return 0
        fi
        [ -z "$live" ] || show
        sleep 0.2
    done
    wait "$pid" 2>/dev/null || true
    [ -z "$live" ] || show
    code=$(tr -d '\r' <"$console" | sed -n 's/^.*DRAY-EXIT: \([0-9]*\)$/\1/p' | tail -1)
    if [ -z "$code" ]; then
        note "the guest ended early; the last line was: $(tail -1 "$console" | tr -d '\r')"
        return 125
    fi
    return "$code"
}

# Prints what the script has said since the last time; file 7 is the console.
show() {
    local line
    while IFS= read -r line <&7; do
        line=$partial${line%$'\r'} partial=
        case $line in
        DRAY-BEGIN) shown=1 ;;
        *DRAY-EXIT:*)
            [ "${line%%DRAY-EXIT:*}" = '' ] || printf '%s\n' "${line%%DRAY-EXIT:*}"
            shown=
            ;;
        *) [ -z "$shown" ] || printf '%s\n' "$line" ;;
        esac
    done
    partial+=$line
}
