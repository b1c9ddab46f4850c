# SPDX-License-Identifier: MIT OR Apache-2.0
# A redis-server under redis-benchmark equals the independent count; its own threads live to the end.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
need_python
need_command redis-server
need_command redis-benchmark redis-tools
cat >"$WORK/serve.sh" <<'END'
socket=$1/redis.sock
redis-server --port 0 --unixsocket "$socket" --save '' --appendonly no --dir "$1" --daemonize no \
	>"$1/server.log" 2>&1 &
server=$!
tries=0
until redis-cli -s "$socket" ping >/dev/null 2>&1; do
	tries=$((tries + 1))
	test "$tries" -lt 200 || exit 1
	sleep 0.05
done
redis-benchmark -s "$socket" -n "$2" -c 10 -r 1000 -q -t set,get,lpush,hset,lrange_100 || status=1
redis-cli -s "$socket" shutdown nosave
wait "$server"
exit "${status:-$?}"
END
counted "redis-server and redis-benchmark" sh "$WORK/serve.sh" "$WORK" "$(long 2000 20000)"
tap_done
