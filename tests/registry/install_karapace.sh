#!/bin/sh
# Karapace, another registry, for tests/registry/test_karapace.py, below ~/.cache/barnabas/karapace.
# Needs git, Python 3.12 or newer, a C compiler. KARAPACE_SOURCE may name a repository, KARAPACE_PYTHON an interpreter.
set -eu
version=6.2.0
source=${KARAPACE_SOURCE:-https://github.com/Aiven-Open/karapace}
python=${KARAPACE_PYTHON:-python3.12}
home=$HOME/.cache/barnabas/karapace
[ -e "$home/ready-$version" ] && exit 0

rm -rf "$home"
mkdir -p "$home"
git -c advice.detachedHead=false clone -q --depth 1 --no-checkout --branch "$version" "$source" "$home/source"
git -C "$home/source" checkout -q HEAD -- src requirements
"$python" -m venv "$home/venv"
# Its pinned requirements, with Avro from PyPI in place of a fork.
grep -v '^avro @' "$home/source/requirements/requirements.txt" >"$home/requirements.txt"
"$home/venv/bin/pip" install -q -r "$home/requirements.txt" 'avro==1.12.0'
site=$("$home/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
# Tests use Avro alone: an empty library stands in for Karapace's Protobuf library in Go.
printf 'void *FormatSchema(void) { return 0; }\nchar *CheckCompatibility(void) { return 0; }\n' |
    cc -shared -fPIC -x c -o "$site/protopacelib.so" -
echo "__version__ = '$version'" >"$home/source/src/karapace/version.py"
echo "$home/source/src" >"$site/karapace.pth"
touch "$home/ready-$version"
