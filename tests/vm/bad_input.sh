#!/usr/bin/env bash
# usage: bad_input.sh BUILD
# Tests `ivgpu vm` without QEMU, a kernel, memory, or a place for its socket. It must print one error message, return
# the exit code, and leave no file behind. One guest boots, to test output whose reader closes the pipe.
set -uo pipefail
build=$1
# shellcheck source=tests/bad_input.sh
source "$(dirname "${BASH_SOURCE[0]}")/../bad_input.sh"

ivgpu=$build/bin/ivgpu
one_sentence=1 limit_s=300  # a guest boots
echo text >no-kernel
# A QEMU that exits silently, like one whose guest lacks the memory to unpack its image. The size at which a kernel does
# so depends on the image.
mkdir silent
printf '#!/bin/sh\nexit 0\n' >silent/qemu-system-x86_64
chmod +x silent/qemu-system-x86_64

# A PATH without QEMU.
mkdir without-qemu
IFS=: read -ra folders <<<"$PATH"
for folder in "${folders[@]}"; do ln -s "$folder"/* without-qemu/ 2>/dev/null; done
rm -f without-qemu/qemu*
row 3 'cannot run qemu-system-x86_64: No such file' env -u IVGPU_BUNDLE PATH="$work/without-qemu" "$ivgpu" vm --gpu sim --kernel no-kernel -- true
row 3 'the bundle lacks /nowhere'                   env IVGPU_BUNDLE=/nowhere "$ivgpu" vm --gpu sim -- true
row 3 'QEMU does not start: '                       "$ivgpu" vm --gpu sim --kernel no-kernel --timeout 200 -- true
row 3 'QEMU does not start: '                       "$ivgpu" vm --gpu sim --memory lots --timeout 200 -- true
row 3 'QEMU does not start: '                       "$ivgpu" vm --gpu sim --memory 1000000G --timeout 200 -- true
row 4 'ended before it said anything; --memory 74M' env -u IVGPU_BUNDLE PATH="$work/silent:$PATH" "$ivgpu" vm --gpu sim --memory 74M --timeout 200 -- true
row 3 'ivgpud did not start'                        "$ivgpu" vm --gpu sim --region-size 3MiB --timeout 200 -- true
row 3 "the GPU's libcuda is missing"                "$ivgpu" vm --gpu /nowhere/libcuda.so.1 --timeout 200 -- true
echo 'transport = "plain"' >plain.toml
row 2 "the VM's transport is not doorbell: --extra-"  "$ivgpu" vm --gpu sim --extra-config plain.toml --timeout 200 -- true
row 3 'no-kernel is no kernel: it says no version'    "$ivgpu" vm --gpu sim --transport pmem --kernel no-kernel --timeout 200 -- true
stops_reading "$ivgpu" vm --gpu sim -- yes
# Unusable folders; /tmp is usable.
long=$TMPDIR/$(printf 'x%.0s' {1..90})
mkdir "$long"
for folder in /nowhere "$long"; do
  said=$(env TMPDIR="$folder" timeout 300 "$ivgpu" vm --gpu sim -- true 2>&1 </dev/null)
  got=$?
  [[ $got == 0 ]] || fail "TMPDIR=$folder: $got: $said"
  [[ $folder != /nowhere || $said == *'TMPDIR=/nowhere does not serve'* ]] || fail "TMPDIR=$folder: $said"
done
[[ -z $(ls -A "$long") ]] || fail "a path that is too long for a socket leaves $(ls -A "$long")"
finish 10
