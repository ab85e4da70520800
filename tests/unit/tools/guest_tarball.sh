#!/usr/bin/env bash
# usage: guest_tarball.sh SOURCES BUILD
# Tests that the guest's tarball has exactly the named files, and that the files need only libc.
set -uo pipefail
sources=$1 build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
fail() { echo "FAIL: $1"; status=1; }
expect() {
  local code=$1 pattern=$2 output got
  shift 2
  output=$("$sources/tools/guest-tarball" "$@" 2>&1)
  got=$?
  [[ $got == "$code" && $output =~ $pattern ]] || fail "guest-tarball $*: exit code $got (wanted $code): $output"
}

cmake --install "$build" --component guest --prefix "$work/installed" >/dev/null || fail "cmake --install"
cat >"$work/wanted" <<'TEXT'
bin/ivgpu-check
lib/ivgpu/guest/libcuda.so.1
lib/ivgpu/guest/libnvidia-ml.so.1
share/ivgpu/guest/60-ivgpu-module.rules
share/ivgpu/guest/60-ivgpu.rules
share/ivgpu/guest/README
share/ivgpu/guest/ivgpu.conf
TEXT
(cd "$work/installed" && find . ! -type d | sed 's,^\./,,' | LC_ALL=C sort) | diff "$work/wanted" - || fail "other files are installed"

umask 077
expect 0 '^$' --build "$build" --out "$work/guest.tar.gz"
umask 022
if tar -tvzf "$work/guest.tar.gz" | grep -vE '^(drwxr-xr-x|-rwxr-xr-x|-rw-r--r--) '; then
  fail "the packer's umask becomes the mode of the guest's folders"
fi
mkdir "$work/guest"
tar -C "$work/guest" -xzf "$work/guest.tar.gz" || fail "the tarball cannot be unpacked"
cat >"$work/wanted" <<'TEXT'
etc/ld.so.conf.d/ivgpu.conf
usr/local/bin/ivgpu-check
usr/local/lib/ivgpu/guest/libcuda.so.1
usr/local/lib/ivgpu/guest/libnvidia-ml.so.1
usr/local/share/ivgpu/guest/60-ivgpu-module.rules
usr/local/share/ivgpu/guest/60-ivgpu.rules
usr/local/share/ivgpu/guest/README
TEXT
(cd "$work/guest" && find . ! -type d | sed 's,^\./,,' | LC_ALL=C sort) | diff "$work/wanted" - || fail "other files are packed"
folder=$(cat "$work/guest/etc/ld.so.conf.d/ivgpu.conf")
for library in libcuda.so.1 libnvidia-ml.so.1; do
  [[ -e $work/guest$folder/$library ]] || fail "the loader is sent to $folder, where $library is not"
done
grep -q 'The disadvantage' "$work/guest/usr/local/share/ivgpu/guest/60-ivgpu.rules" || fail "the rule does not state its disadvantage"
"$work/guest/usr/local/bin/ivgpu-check" --version >/dev/null || fail "ivgpu-check does not run"
if grep -q 'IVGPU_SANITIZE:.*=$' "$build/CMakeCache.txt"; then
  ! ldd "$work/guest/usr/local/bin/ivgpu-check" >/dev/null 2>&1 || fail "ivgpu-check needs shared libraries"
  for library in libcuda.so.1 libnvidia-ml.so.1; do
    needs=$(objdump -p "$work/guest$folder/$library" | awk '$1 == "NEEDED" { print $2 }' | grep -vE '^(libc|libm|ld-linux-x86-64)\.so')
    [[ -z $needs ]] || fail "$library needs more than libc: $needs"
  done
fi

expect 0 'usage: tools/guest-tarball' --help
expect 2 'there is no option --fast' --fast
expect 2 '--out needs a value' --out
expect 3 'is no build tree' --build "$work"
expect 3 'cannot be written' --build "$build" --out "$work/no/such/folder/guest.tar.gz"
exit "$status"
