# The switch between a guest and the kernel of this machine, in a network namespace; the guest reboots. By a tap device;
# XDP=1: by AF_XDP on one end of a veth pair (needs the programs ip and ethtool). PACKED=1: with packed rings.
[ -n "${INSIDE:-}" ] || {
    user=()
    [ "$(id -u)" -eq 0 ] || user=(--user --map-root-user)
    INSIDE=1 exec unshare "${user[@]}" --net bash "$0" "$@"
}
. "$(dirname "$0")/../host.sh"
busybox=$root/usr/bin/busybox
a=$work/a.sock port=tap:dray0 interface=dray0
if [ -n "${XDP:-}" ]; then
    port=xdp:dray0 interface=dray1
    # The other end must not leave checksums and segments to its device: nobody makes them.
    ip link add dray0 type veth peer name dray1 && ip link set dray0 up &&
        ethtool -K dray1 tx off >/dev/null || fail "no veth pair: this needs ip and ethtool"
fi
start "$work/vhost" "$a" -- vhost --port "$a" --port "$port" --forward switch --mover virtual --interrupt \
    --stats-file "$work/stats"
until "$busybox" ip link show "$interface" >/dev/null 2>&1; do
    kill -0 "$started_pid" || fail "$(cat "$work/vhost")"
    sleep 0.1
done
"$busybox" ip address add 10.0.0.1/24 dev "$interface" && "$busybox" ip link set "$interface" up ||
    fail "$interface cannot be set up"
head -c 4M /dev/urandom >"$work/file"
mkfifo "$work/endless"
exec 9<>"$work/endless"
serve() {
    local boot
    for boot in 1 2; do
        echo $boot | "${tied[@]}" "$busybox" nc -l -p 7001
        "${tied[@]}" "$busybox" nc -l -p 7002 <"$work/file" >/dev/null
        "${tied[@]}" "$busybox" nc -l -p 7000 <"$work/endless" >"$work/back.$boot"
    done
}
serve &
started+=($!)
boot "$console" "$here/cases/tap.sh" --net "$a${PACKED:+,packed=on}" --reboot
status=$?
for boot in 1 2; do
    cmp "$work/file" "$work/back.$boot" || status=1
done
end "$started_pid" || status=1
cat "$work/vhost"
no_failed_copy "$work/stats" || status=1
exit "$status"
