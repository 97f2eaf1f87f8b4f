#!/bin/sh
# Programs that some tests use, on Debian and Ubuntu as root. Elsewhere those tests are skipped;
# here they fail if CI=true and a program of Prometheus or kcat is missing (installed_tools.py).
missing=""
command -v kcat >/dev/null 2>&1 || missing="$missing kcat"
command -v ip >/dev/null 2>&1 || missing="$missing iproute2"
command -v prometheus >/dev/null 2>&1 || missing="$missing prometheus"
command -v prometheus-alertmanager >/dev/null 2>&1 || missing="$missing prometheus-alertmanager"
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="$missing postgresql"
{ [ -x /usr/sbin/krb5kdc ] && [ -x /usr/sbin/kadmin.local ]; } || missing="$missing krb5-kdc krb5-admin-server krb5-user"
command -v krb5-config >/dev/null 2>&1 || missing="$missing libkrb5-dev"
[ -e /usr/share/doc/libsasl2-modules-gssapi-mit ] || missing="$missing libsasl2-modules-gssapi-mit"
[ -x /usr/sbin/mariadbd ] || missing="$missing mariadb-server"
command -v redis-server >/dev/null 2>&1 || missing="$missing redis-server"
[ -n "$missing" ] || exit 0

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# A machine that has just started may still be updating itself: apt then holds its locks for minutes.
apt() {
    apt-get -q -o DPkg::Lock::Timeout=300 -o Acquire::Retries=2 -o Acquire::http::Timeout=30 "$@" >"$log" 2>&1
}

install() {
    # shellcheck disable=SC2086
    apt install -y --no-install-recommends $missing
}

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    export DEBIAN_FRONTEND=noninteractive
    # Packages of servers start them: tests start their own. Debian asks this file first.
    policy=/usr/sbin/policy-rc.d
    if [ ! -e "$policy" ]; then
        printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod +x "$policy"
        trap 'rm -f "$log" "$policy"' EXIT
    fi
    install && exit 0
    for pause_s in 0 15; do
        sleep "$pause_s"  # a mirror that is away or being updated
        apt update && install && exit 0
    done
    tail -n 3 "$log"
fi
echo "not installed:$missing; their tests will be skipped"
