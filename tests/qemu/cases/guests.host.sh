# Two guests at a switch, the first with split rings, the second with packed ones.
. "$(dirname "$0")/../host.sh"
a=$work/a.sock b=$work/b.sock
start "$work/vhost" "$a" "$b" -- vhost --port "$a" --port "$b" --forward switch --mover virtual --interrupt \
    --stats-file "$work/stats"
small=(--memory 512M --processors 1)
touch "$work/first"
boot "$work/first" "$here/cases/guests.sh" --net "$a" --append dray.guest=1 "${small[@]}" &
first=$!
started+=("$first")
status=
await_text "$first" '^LISTENING' "$work/first" &&
    boot "$console" "$here/cases/guests.sh" --net "$b,packed=on" --append dray.guest=2 "${small[@]}"
status=$?
wait "$first" || status=1
end "$started_pid" || status=1
cat "$work/vhost"
sums=$(cat "$work/first" "$console" | tr -d '\r' | sed -n 's/^sum //p' | tee /dev/stderr | sort | uniq -c | awk '{print $1}')
[ "$sums" = 2 ] || status=1
no_failed_copy "$work/stats" || status=1
exit "$status"
