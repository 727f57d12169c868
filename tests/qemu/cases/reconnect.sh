# The back end dies under traffic and comes back: QEMU connects again, and packets flow again. Both devices have the same
# ring kind, which the host names.
load_network
ring=$(sed -n 's/.*dray.packed=\([01]\).*/\1/p' /proc/cmdline)
[ "$(packed_ring eth0)$(packed_ring eth1)" = "$ring$ring" ] || die "not the rings that were asked for"
namespace first eth0 10.0.0.1
namespace second eth1 10.0.0.2
within $first ping -c 5 -i 0.2 -w $((60 * slow)) 10.0.0.2 >/dev/null || die "no ping before"
within $first ping -i 0.05 10.0.0.2 >/tmp/ping 2>&1 &
pinging=$!
answered() { nsenter -t $first -n ping -c 1 -w 2 10.0.0.2 >/dev/null; }
silent() { ! answered; }
# The host ends the back end when it reads this, and starts it again when it reads the next.
echo READY
await 60 silent
echo SILENT
if [ "$ring" = 1 ]; then
    # QEMU does not tell the new back end where the rings stand: the driver has to begin anew.
    kill $pinging
    rmmod virtio_net
    insmod /lib/modules/virtio_net.ko
    namespace first eth0 10.0.0.1
    namespace second eth1 10.0.0.2
fi
await 60 answered
within $first ping -c 100 -i 0.02 -w $((60 * slow)) 10.0.0.2 | grep '100 packets transmitted, 100 packets received' ||
    die "packets are lost afterwards"
dd if=/dev/urandom of=/tmp/file bs=1M count=4 2>/dev/null
receive $second
send $first 10.0.0.2 /tmp/file
wait $listener
cmp /tmp/file /tmp/arrived || die "another file arrived"
# The ring has gone round many times.
within $second ping -c 3 -w $((30 * slow)) 10.0.0.1 >/dev/null || die "no ping at the end"
