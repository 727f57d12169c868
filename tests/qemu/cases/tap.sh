# A guest whose network ends at an interface of the host's kernel: it fetches a file and its checksum, sends it back, and
# reboots; the host knows which boot it is.
load_network
namespace net eth0 10.0.0.2
within $net ping -c 5 -i 0.2 -w $((60 * slow)) 10.0.0.1 | grep '5 packets transmitted, 5 packets received' || die "no ping"
# What the host sends first is which boot this is.
mkfifo /tmp/endless
exec 9<>/tmp/endless
fetch() { # PORT FILE: a listener may not be there yet
    until timeout $((100 * slow)) nsenter -t $net -n nc 10.0.0.1 $1 </tmp/endless >$2 && [ -s $2 ]; do sleep 0.2; done
}
send_file() { timeout $((100 * slow)) nsenter -t $net -n nc 10.0.0.1 7000 </tmp/file; }
fetch 7001 /tmp/boot
say "boot $(cat /tmp/boot)"
fetch 7002 /tmp/file
until send_file; do sleep 0.2; done
sha256sum </tmp/file
[ "$(cat /tmp/boot)" = 2 ] || reboot -f
