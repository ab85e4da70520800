#!/usr/bin/env bash
# usage: guest_setup.sh SOURCES
# Tests ivgpu-guest-setup on machines that are folders: with the device and without it, with other devices, with two
# devices, with an incomplete installation, and with folders that cannot be written.
set -uo pipefail
sources=$1
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
status=0
fail() { echo "FAIL: $1"; status=1; }

m=$work/machine
setup=$m/usr/libexec/ivgpu/ivgpu-guest-setup
conf=$m/etc/ld.so.conf.d/zz-ivgpu.conf cdi=$m/run/cdi/ivgpu.yaml
new_machine() {
  rm -rf "$m"
  mkdir -p "$m"/{etc/ld.so.conf.d,run,sys/bus/pci/devices,usr/libexec/ivgpu,usr/lib/ivgpu/guest}
  echo 'include /etc/ld.so.conf.d/*.conf' >"$m/etc/ld.so.conf"
  cp "$sources/tools/guest/ivgpu-guest-setup" "$setup"
}
# device ADDRESS VENDOR DEVICE: adds a device behind a link, as the kernel shows it.
device() {
  mkdir -p "$m/sys/devices/pci0/$1"
  [[ ! $2 ]] || echo "$2" >"$m/sys/devices/pci0/$1/vendor"
  [[ ! $3 ]] || echo "$3" >"$m/sys/devices/pci0/$1/device"
  ln -s "../../../devices/pci0/$1" "$m/sys/bus/pci/devices/$1"
}
# expect CODE PATTERN ARGUMENTS...: checks the exit code, and a pattern of the output.
expect() {
  local code=$1 pattern=$2 got
  shift 2
  "$setup" "$@" >"$work/said" 2>&1
  got=$?
  echo >>"$work/said"
  if [[ $got != "$code" ]] || ! grep -qE -- "$pattern" "$work/said"; then
    fail "ivgpu-guest-setup $*: exit code $got (wanted $code), wanted to read '$pattern': $(cat "$work/said")"
  fi
}
shown() { [[ -e $conf && -e $cdi ]]; }
hidden() { [[ ! -e $conf && ! -e $cdi && ! -e $m/run/cdi ]]; }

new_machine
expect 0 '^$' --root "$m" update
hidden || fail "without any device there is something"
device 0000:00:01.0 0x1af4 0x1000  # a virtio network device
device 0000:00:02.0 0x8086 0x1110
device 0000:00:03.0 0x1af4 ''      # one that is just being taken away
expect 0 '^$' --root "$m" update
hidden || fail "another's device is taken for ours"

device 0000:00:04.0 0x1af4 0x1110
expect 0 '^$' --root "$m" update
shown || fail "the device is not found"
[[ $(grep -v '^#' "$conf" | tr '\n' ' ') == '/lib /usr/lib /usr/lib/ivgpu/guest ' ]] || fail "$(cat "$conf")"
grep -qxF '    - hostPath: /sys/devices/pci0/0000:00:04.0' "$cdi" || fail "$(cat "$cdi")"
for library in libcuda.so.1 libnvidia-ml.so.1; do
  for folder in /usr/lib/x86_64-linux-gnu /usr/lib64; do
    grep -xF -A 1 "    - hostPath: /usr/lib/ivgpu/guest/$library" "$cdi" | grep -qxF "      containerPath: $folder/$library" ||
      fail "containers do not get $folder/$library: $(cat "$cdi")"
  done
done
if grep -q deviceNodes "$cdi"; then fail "a node that is not there is given to containers"; fi
[[ -e $m/etc/ld.so.cache ]] || fail "the loader's cache is not made"
touch -d '2001-01-01' "$conf" "$cdi" "$m/etc/ld.so.cache"
expect 0 '^$' --root "$m" update
[[ -z $(find "$m/etc" "$m/run" -type f -newermt 2002-01-01 ! -name ld.so.conf) ]] || fail "what is as it should be is written again"

mkdir "$m/dev"
touch "$m/dev/ivgpu0"
device 0000:00:05.0 0x1af4 0x1110
expect 0 '^$' --root "$m" update
grep -qxF '    - hostPath: /sys/devices/pci0/0000:00:05.0' "$cdi" || fail "the second device is left out: $(cat "$cdi")"
grep -qxF '    - path: /dev/ivgpu0' "$cdi" || fail "the module's node is left out: $(cat "$cdi")"
echo nonsense >"$conf"
expect 0 '^$' --root "$m" update
grep -qx /usr/lib/ivgpu/guest "$conf" || fail "a file that somebody has changed stays"
# The machine's start and udev may run ivgpu-guest-setup at the same time.
for ((i = 0; i < 20; ++i)); do
  rm -f "$cdi"
  "$setup" --root "$m" update & first=$!
  "$setup" --root "$m" update || fail "the second of two at once ended with $?"
  wait "$first" || fail "the first of two at once ended with $?"
done
[[ $(ls "$m/run/cdi") == ivgpu.yaml ]] || fail "two at once leave $(ls "$m/run/cdi")"
# The udev rule for the module's node must run the program by the package's path.
for words in 'TEST=="/usr/libexec/ivgpu/ivgpu-guest-setup"' 'RUN+="/usr/libexec/ivgpu/ivgpu-guest-setup update"'; do
  grep -qF "$words" "$sources/tools/guest/60-ivgpu-module.rules" || fail "the rule for the module's node has no $words"
done
touch "$m/run/cdi/other.yaml"
expect 0 '^$' --root "$m" remove
[[ ! -e $conf && ! -e $cdi && -e $m/run/cdi/other.yaml ]] || fail "remove leaves something, or takes another's"
expect 0 '^$' --root "$m" remove

# In a folder that cannot be written, the command reports the error and leaves no partial file in effect.
new_machine
device 0000:00:04.0 0x1af4 0x1110
rmdir "$m/etc/ld.so.conf.d"
touch "$m/etc/ld.so.conf.d"
expect 1 'ld.so.conf.d' --root "$m" update
[[ ! -e $cdi ]] || fail "containers get a device whose library the machine does not show"

expect 2 '^usage'
expect 2 'there is no nonsense' nonsense
expect 2 'there is no --fast' --fast update
expect 2 '--root needs a value' --root
expect 0 '^usage' --help
exit "$status"
