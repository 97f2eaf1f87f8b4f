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

install() {
    # shellcheck disable=SC2086
    apt-get install -y -qq --no-install-recommends $missing >/dev/null 2>&1
}

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    export DEBIAN_FRONTEND=noninteractive
    # Packages of servers start them: tests start their own. Debian asks this file first.
    policy=/usr/sbin/policy-rc.d
    if [ ! -e "$policy" ]; then
        printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod +x "$policy"
        trap 'rm -f "$policy"' EXIT
    fi
    install || { apt-get update -qq >/dev/null 2>&1 && install; } && exit 0
fi
echo "not installed:$missing; their tests will be skipped"
