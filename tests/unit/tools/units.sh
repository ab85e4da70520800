#!/usr/bin/env bash
# usage: units.sh SOURCES BUILD
# Tests the systemd units: systemd reports no problem, they start existing files, and they restrict ivgpud as
# docs/host.md states.
set -uo pipefail
sources=$1 build=$2
command -v systemd-analyze >/dev/null || { echo "there is no systemd-analyze here"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
fail() { echo "FAIL: $1"; status=1; }

mkdir -p "$work/libexec/ivgpu"
ln -s "$build/bin" "$work/bin"
cp "$sources/tools/guest/ivgpu-guest-setup" "$work/libexec/ivgpu/"
for unit in host/ivgpud guest/ivgpu-guest; do
  sed "s,@CMAKE_INSTALL_PREFIX@,$work,g" "$sources/tools/$unit.service.in" >"$work/$(basename "$unit").service"
done
# Only messages about ivgpu's own units count.
verify() { systemd-analyze verify --man=no --recursive-errors=no "$work/$1.service" 2>&1 | grep -F "$work/"; }
for unit in ivgpud ivgpu-guest; do
  said=$(verify "$unit")
  [[ -z $said ]] || fail "systemd says of $unit.service: $said"
done
cp "$work/ivgpud.service" "$work/kept"
for mistake in 's/^WatchdogSec=.*/WatchdogSec=soon/' 's,/bin/ivgpud,/bin/no-ivgpud,' 's/^KillMode/KillMood/'; do
  sed "$mistake" "$work/kept" >"$work/ivgpud.service"
  [[ -n $(verify ivgpud) ]] || fail "systemd takes a unit with a mistake: $mistake"
done
cp "$work/kept" "$work/ivgpud.service"

told=$(grep -oE 'exposure level of [0-9.]+' "$sources/docs/host.md" | grep -oE '[0-9.]+$')
found=$(systemd-analyze security --offline=yes --no-pager "$work/ivgpud.service" | sed -nE 's/.*Overall exposure level .*: ([0-9.]+) .*/\1/p')
[[ $told && $told == "$found" ]] || fail "docs/host.md tells an exposure level of ${told:-none}; it is $found"
exit "$status"
