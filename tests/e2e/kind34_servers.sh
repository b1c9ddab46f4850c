# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 34: whole servers, made, started, used and stopped, run as without us and are recorded: many
# processes, daemons, shared memory, other users.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
test "$(long short long)" = long || tap_skip_all "only in make check-long"
PATH=$PATH:/usr/sbin:/sbin
chmod 755 "$WORK"

# server TEXT STATUS LAUNCHED...: the script's output and status are as without us.
server()
{
	text=$1
	wanted=$2
	shift 2
	bounded 100 "$@" >"$WORK/plain" 2>"$WORK/plain.err" </dev/null
	tap_equal "$text: works without us" "$wanted" $?
	track run "$@" >"$WORK/out" 2>"$WORK/err" </dev/null
	tap_verdict "$text: status as without us" $(($? != wanted)) "$WORK/err" "$WORK/out"
	tap_check "$text: output as without us" cmp "$WORK/plain" "$WORK/out"
	verified "$text" run
	tap_equal "$text: nothing lost, nothing untracked" "0 0" \
		"$(lost run) $("$MEMTRACK" stat "$WORK/run" | grep -c 'untracked: pid')"
}

postgres=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1)
cat >"$WORK/postgres.sh" <<'END'
at=$(mktemp -d) && cd "$at" || exit 1
trap 'rm -rf "$at"' EXIT
initdb -D data -A trust --no-sync >log.init 2>&1 || exit 11
pg_ctl -D data -o "-k $at -h '' -c fsync=off -c autovacuum_naptime=1" -l log -w start >log.start || exit 12
psql -h "$at" -d postgres -q -c "create table t as select i, repeat('x', i % 100) s from generate_series(1, 20000) i" ||
	exit 13
for k in 1 2 3 4; do
	psql -h "$at" -d postgres -At -c "select $k, sum(length(s)), count(distinct s) from t where i % $k = 0" >"out$k" &
done
wait
cat out1 out2 out3 out4
pg_ctl -D data -m fast -w stop >log.stop || exit 14
exit 9
END
if test -z "$postgres"; then
	tap_skip "postgres" "it is not installed (package postgresql)"
elif test "$(id -u)" -eq 0; then
	PATH=$postgres:$PATH server "postgres" 9 setpriv --reuid postgres --regid postgres --clear-groups \
		sh "$WORK/postgres.sh"
else
	PATH=$postgres:$PATH server "postgres" 9 sh "$WORK/postgres.sh"
fi

cat >"$WORK/nginx.sh" <<'END'
at=$(mktemp -d) && mkdir "$at/html" && chmod 755 "$at" "$at/html" && seq 1 50000 >"$at/html/numbers" || exit 1
trap 'rm -rf "$at"' EXIT
cat >"$at/conf" <<CONF
worker_processes 3; pid $at/pid; error_log $at/errors; events { worker_connections 64; }
http { access_log $at/access; gzip on; gzip_types *; client_body_temp_path $at/a; proxy_temp_path $at/b;
fastcgi_temp_path $at/c; uwsgi_temp_path $at/d; scgi_temp_path $at/e;
server { listen unix:$at/socket; root $at/html; } }
CONF
nginx -c "$at/conf" 2>/dev/null || exit 11
python3 - "$at/socket" <<'CLIENT'
import concurrent.futures, http.client, socket, sys
def fetch(i):
    c = http.client.HTTPConnection("x")
    c.sock = socket.socket(socket.AF_UNIX)
    c.sock.connect(sys.argv[1])
    c.request("GET", "/numbers", headers={"Accept-Encoding": "gzip"})
    return len(c.getresponse().read()) > 1000
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    print(sum(pool.map(fetch, range(100))))
CLIENT
nginx -c "$at/conf" -s quit 2>/dev/null
while test -e "$at/pid"; do sleep 0.02; done
wc -l <"$at/access"
exit 9
END
if ! command -v nginx >/dev/null; then
	tap_skip "nginx" "it is not installed (package nginx-light)"
else
	server "nginx" 9 sh "$WORK/nginx.sh"
fi
tap_done
