#!/usr/bin/env bash
# usage: bad_input.sh BUILD
# `ivgpu vm` without what it needs: QEMU, a kernel, memory, a place for its socket. One sentence, the exit code, nothing
# left behind. One guest gets as far as booting: the one whose output nobody reads to its end.
set -uo pipefail
build=$1
# shellcheck source=tests/bad_input.sh
source "$(dirname "${BASH_SOURCE[0]}")/../bad_input.sh"

ivgpu=$build/bin/ivgpu
one_sentence=1
echo text >no-kernel
# Enough memory for QEMU to place the image in, and too little for a kernel to unpack it. QEMU says how large the image is;
# the files do not, since other tests make images of other programs beside this one.
need=$("$ivgpu" vm --gpu sim --memory 24M --timeout 20 -- true 2>&1 </dev/null | sed -n 's/.*initrd is too large.*need \([0-9]*\)).*/\1/p')
[[ $need ]] || fail "QEMU does not say how large the image is"
# With some sizes that are too little a kernel hangs, or says why it ends; which these are depends on the image.
for more in 2 3 4 5 6 7; do
  little=$((${need:-0} / 1048576 + more))M
  said=$("$ivgpu" vm --gpu sim --memory "$little" --timeout 10 -- true 2>&1 </dev/null) || true
  [[ $said != *'before it said anything'* ]] || break
done

# Everything that the PATH has, but for QEMU.
mkdir without-qemu
IFS=: read -ra folders <<<"$PATH"
for folder in "${folders[@]}"; do ln -s "$folder"/* without-qemu/ 2>/dev/null; done
rm -f without-qemu/qemu*
row 3 'cannot run qemu-system-x86_64: No such file' env -u IVGPU_BUNDLE PATH="$work/without-qemu" "$ivgpu" vm --gpu sim --kernel no-kernel -- true
row 3 'the bundle lacks /nowhere'                   env IVGPU_BUNDLE=/nowhere "$ivgpu" vm --gpu sim -- true
row 3 'QEMU does not start: '                       "$ivgpu" vm --gpu sim --kernel no-kernel --timeout 20 -- true
row 3 'QEMU does not start: '                       "$ivgpu" vm --gpu sim --memory lots --timeout 20 -- true
row 3 'QEMU does not start: '                       "$ivgpu" vm --gpu sim --memory 1000000G --timeout 20 -- true
row 4 "ended before it said anything; --memory $little" "$ivgpu" vm --gpu sim --memory "$little" --timeout 20 -- true
row 3 'ivgpud did not start'                        "$ivgpu" vm --gpu sim --region-size 3MiB --timeout 20 -- true
row 3 "the GPU's libcuda is missing"                "$ivgpu" vm --gpu /nowhere/libcuda.so.1 --timeout 20 -- true
row 3 'no folder can be made in /nowhere'           env TMPDIR=/nowhere "$ivgpu" vm --gpu sim -- true
echo 'transport = "plain"' >plain.toml
row 2 "the VM's transport is not doorbell: --extra-"  "$ivgpu" vm --gpu sim --extra-config plain.toml --timeout 20 -- true
row 3 'no-kernel is no kernel: it says no version'    "$ivgpu" vm --gpu sim --transport pmem --kernel no-kernel --timeout 20 -- true
stops_reading "$ivgpu" vm --gpu sim -- yes
long=$TMPDIR/$(printf 'x%.0s' {1..90})
mkdir "$long"
said=$(env TMPDIR="$long" timeout 60 "$ivgpu" vm --gpu sim -- true 2>&1 </dev/null)
got=$?
[[ $got == 3 && $said == *'characters at most'* ]] || fail "a socket's path that is too long: $got: $said"
[[ -z $(ls -A "$long") ]] || fail "a socket's path that is too long leaves $(ls -A "$long")"
finish 11
