# What the cases share in the guest.

# How many times slower than on a machine that has nothing else to do, where it has been up for 8 s now: waits are so
# many times longer.
export slow=${slow:-$(($(cut -d. -f1 /proc/uptime) / 8 + 1))}

say() { echo "# $*"; }
die() {
    echo "FAILED: $*"
    exit 1
}

# Passes if the file says this.
expect() { # FILE TEXT
    local is
    is=$(cat "$1") || die "$1 cannot be read"
    [ "$is" = "$2" ] || die "$1 is $is, not $2"
}

# Two groups: kernel queues 0 (dedicated) and 1 (shared), user queues 2 (dedicated) and 3 (shared).
configure() {
    accel-config config-engine dsa0/engine0.0 --group-id=0
    accel-config config-engine dsa0/engine0.1 --group-id=1
    configure_wq 0 0 32 dedicated kernel dmaengine dmaengine
    configure_wq 1 1 32 shared kernel dmaengine dmaengine --threshold=24
    configure_wq 2 1 16 dedicated user app1 user
    configure_wq 3 1 16 shared user app2 user --threshold=15
}

configure_wq() { # NUMBER GROUP SIZE MODE TYPE NAME DRIVER [MORE]
    accel-config config-wq "dsa0/wq0.$1" --group-id="$2" --wq-size="$3" --mode="$4" --type="$5" \
        --name="$6" --driver-name="$7" --priority=10 --max-batch-size=32 --max-transfer-size=2097152 $8
}

# Disables a queue and enables it again: the driver forgets all but its size and group.
again() { # NUMBER CONFIGURATION...
    local wq=$1
    shift
    accel-config disable-wq "dsa0/wq0.$wq"
    accel-config config-wq "dsa0/wq0.$wq" --priority=10 --max-batch-size=32 --max-transfer-size=2097152 "$@"
    accel-config enable-wq "dsa0/wq0.$wq"
    expect "/sys/bus/dsa/devices/wq0.$wq/state" enabled
}

# A program's copies, and what it says of them.
copied() { # WHAT FILE WAY COUNT BYTES [HOW]
    local what=$1 is
    shift
    is=$(copy "$@") || die "copy $*: $is"
    echo "copy $*: $is"
    [ "$is" = "copied $what" ] || die "not: copied $what"
}

enable() { # QUEUES...
    local wq
    accel-config enable-device dsa0 || die "the device cannot be enabled"
    for wq in "$@"; do
        accel-config enable-wq "dsa0/wq0.$wq" || die "queue $wq cannot be enabled"
        expect "/sys/bus/dsa/devices/wq0.$wq/state" enabled
    done
}

# The kernel's own test of a DMA channel, dma0chanN of queue N: THREADS x COUNT copies, checked. The kernel's log has
# the bytes of each.
dmatest() { # CHANNEL THREADS COUNT
    local at=/sys/module/dmatest/parameters bytes=0 length
    dmesg -c >/dev/null
    insmod /lib/modules/dmatest.ko timeout=$((60000 * slow)) iterations="$3" threads_per_chan="$2" max_channels=1 test_buf_size=16384 verbose=1
    echo "$1" >$at/channel
    echo 1 >$at/run
    cat $at/wait >/dev/null
    dmesg | grep "summary"
    rmmod dmatest
    [ "$(dmesg | grep -c "summary $3 tests, 0 failures")" -eq "$2" ] || die "dmatest of $1"
    [ "$(dmesg | grep -c 'test passed')" -eq $(($2 * $3)) ] || die "dmatest of $1: not each copy is in the log"
    for length in $(dmesg | sed -n 's/.*test passed.* len=\(0x[0-9a-f]*\).*/\1/p'); do
        bytes=$((bytes + length))
    done
    echo "copy /dev/dsa/wq0.${1#dma0chan} dmatest: copied $(($2 * $3)) descriptors $bytes bytes 0 faults"
}

# Waits until a command succeeds, so many seconds on a machine that has nothing else to do.
await() { # SECONDS COMMAND...
    local left=$(($1 * slow))
    shift
    until "$@" 2>/dev/null; do
        left=$((left - 1))
        [ "$left" -gt 0 ] || die "in vain: $*"
        sleep 1
    done
}

# The driver of the network devices (vm boot --net). Its queues drop nothing: fq_codel, the kernel's default, takes a
# switch that a busy host does not run for a full line.
load_network() {
    local name
    echo pfifo_fast >/proc/sys/net/core/default_qdisc
    for name in failover net_failover virtio_net; do
        insmod /lib/modules/$name.ko
    done
}

# Has a network device in a network namespace of its own, whose process id is in the variable NAME.
namespace() { # NAME DEVICE ADDRESS
    local holder
    unshare -n sleep 100000 &
    holder=$!
    await 30 sh -c "[ $(readlink /proc/$$/ns/net) != \$(readlink /proc/$holder/ns/net) ]"
    ip link set "$2" netns "$holder"
    within "$holder" ip address add "$3/24" dev "$2"
    within "$holder" ip link set "$2" up
    eval "$1=$holder"
}
within() { # PROCESS COMMAND...
    local process=$1
    shift
    nsenter -t "$process" -n "$@"
}

# Whether a network device has packed rings: feature 34.
packed_ring() { # DEVICE
    cut -c 35 "/sys/class/net/$1/device/features"
}

# A file through TCP, its checksum told to both. A listener whose input ends closes the connection: this one does not.
receive() { # PROCESS [COMMAND TO RUN WHEN IT LISTENS]
    [ -p /tmp/endless ] || mkfifo /tmp/endless
    exec 9<>/tmp/endless
    within "$1" nc -l -p 7000 </tmp/endless >/tmp/arrived &
    listener=$!
    await 30 within "$1" sh -c "netstat -lnt | grep -q :7000"
}
send() { # PROCESS ADDRESS FILE
    timeout $((100 * slow)) nsenter -t "$1" -n nc "$2" 7000 <"$3" || die "$3 was not sent"
}
