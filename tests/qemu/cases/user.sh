# Programs with queues of their own, in their own address space; page faults resumed.
cd /sys/bus/dsa/devices
configure
configure_wq 4 1 16 dedicated user app3 user
enable 2 3 4
copied '20 descriptors 1310720 bytes 0 faults' /dev/dsa/wq0.2 movdir64b 20 65536
copied '20 descriptors 1310720 bytes 0 faults' /dev/dsa/wq0.2 write 20 65536
copied '20 descriptors 1310720 bytes 0 faults' /dev/dsa/wq0.3 enqcmd 20 65536
copied '20 descriptors 1310720 bytes 0 faults' /dev/dsa/wq0.3 write 20 65536
# Sixteen pages each that were never touched: each is a page fault, and the copy goes on.
copied '68 descriptors 262144 bytes 64 faults' /dev/dsa/wq0.2 movdir64b 4 65536 fresh
copied '68 descriptors 262144 bytes 64 faults' /dev/dsa/wq0.3 enqcmd 4 65536 fresh
# A shared queue has many users.
for n in 1 2 3; do
    copied '10 descriptors 163840 bytes 0 faults' /dev/dsa/wq0.3 enqcmd 10 16384 &
    eval "pid$n=$!"
done
wait $pid1 && wait $pid2 && wait $pid3 || die "three users of a shared queue"
# A dedicated queue has one.
copy /dev/dsa/wq0.4 movdir64b 1 1000000 endless >/tmp/first 2>&1 &
first=$!
await 30 grep -q 1 wq0.4/clients
if copy /dev/dsa/wq0.4 movdir64b 1 64; then die "a second user of a dedicated queue"; fi
# Who is killed with descriptors in flight leaves a queue that works.
kill -9 $first
wait $first || true
await 30 grep -q 0 wq0.4/clients
copy /dev/dsa/wq0.4 movdir64b 20 65536
