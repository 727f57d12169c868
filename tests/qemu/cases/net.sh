# Two network devices of this guest whose back end is `dray vhost`, a split and a packed ring, each in a network
# namespace of its own, and a learning switch between them: ping, fragments, and a file each way.
load_network
[ "$(packed_ring eth0)" = 0 ] && [ "$(packed_ring eth1)" = 1 ] || die "not one split and one packed ring"
namespace split eth0 10.0.0.1
namespace packed eth1 10.0.0.2
within $split ping -c 10 -i 0.2 -w $((60 * slow)) 10.0.0.2 | tail -3
within $split ping -c 3 -s 20000 -w $((60 * slow)) 10.0.0.2 | grep '3 packets transmitted, 3 packets received' || die "fragments"
dd if=/dev/urandom of=/tmp/file bs=1M count=8 2>/dev/null
sum=$(sha256sum </tmp/file)
through() { # FROM TO ADDRESS
    receive $2
    send $1 $3 /tmp/file
    wait $listener
    [ "$(sha256sum </tmp/arrived)" = "$sum" ] || die "another file arrived"
    say "8 MiB to $3, sha256 equal"
}
through $split $packed 10.0.0.2
through $packed $split 10.0.0.1
within $packed ping -c 3 -w $((30 * slow)) 10.0.0.1 >/dev/null || die "no ping afterwards"
