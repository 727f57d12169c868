# Programs with queues of their own, in their own address space; page faults resumed.
cd /sys/bus/dsa/devices
configure
enable 2 3
copied() { # LINE COMMAND...
    local line=$1 is
    shift
    is=$("$@") || die "$*: $is"
    echo "$*: $is"
    [ "$is" = "copied $line" ] || die "not: copied $line"
}
copied '20 descriptors 1310720 bytes 0 faults' copy /dev/dsa/wq0.2 movdir64b 20 65536
copied '20 descriptors 1310720 bytes 0 faults' copy /dev/dsa/wq0.2 write 20 65536
copied '20 descriptors 1310720 bytes 0 faults' copy /dev/dsa/wq0.3 enqcmd 20 65536
copied '20 descriptors 1310720 bytes 0 faults' copy /dev/dsa/wq0.3 write 20 65536
# Sixteen pages each that were never touched: each is a page fault, and the copy goes on.
copied '68 descriptors 262144 bytes 64 faults' copy /dev/dsa/wq0.2 movdir64b 4 65536 fresh
copied '68 descriptors 262144 bytes 64 faults' copy /dev/dsa/wq0.3 enqcmd 4 65536 fresh
# A dedicated queue has one user, a shared queue many.
copy /dev/dsa/wq0.2 movdir64b 1 1000000 endless >/tmp/first 2>&1 &
first=$!
await 30 test "$(cat wq0.2/clients)" = 1 || true
await 30 grep -q 1 wq0.2/clients
copy /dev/dsa/wq0.2 movdir64b 1 64 && die "a second user of a dedicated queue"
for n in 1 2 3; do copy /dev/dsa/wq0.3 enqcmd 10 16384 >/tmp/shared.$n & eval "pid$n=$!"; done
wait $pid1 && wait $pid2 && wait $pid3 || die "three users of a shared queue"
# Who is killed with descriptors in flight leaves a queue that works.
kill -9 $first
wait $first || true
await 30 grep -q 0 wq0.2/clients
copied '20 descriptors 1310720 bytes 0 faults' copy /dev/dsa/wq0.2 movdir64b 20 65536
