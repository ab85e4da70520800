#!/usr/bin/env bash
# The recorder of requests: it writes down what a program asks of a device, with the count; a worker that it stands before
# serves as any other.
set -euo pipefail
repo=$1 build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() { echo "FAIL: $1"; cat "$work"/* 2>/dev/null || true; exit 1; }

mkdir "$work/seen"
IVGPU_IOCTLS=$work/seen LD_PRELOAD=$build/tests/libioctl_recorder.so "$build/tests/ioctl_probe"
tr -d '\0' <"$work"/seen/* >"$work/lines"
grep -Eq '^before done +ioctl 0xc0204601 +3 /dev/null' "$work/lines" || fail "three equal requests"
grep -Eq '^before done +ioctl 0x30000001 +1 /dev/null' "$work/lines" || fail "a request without the common form"
grep -Eq '^before done +open +0x00000002 +1 /dev/null' "$work/lines" || fail "an opened device"
IVGPU_IOCTLS=$work/none LD_PRELOAD=$build/tests/libioctl_recorder.so "$build/tests/ioctl_probe" 2>"$work/error" && fail "a folder that is not there"
grep -q 'cannot be recorded' "$work/error" || fail "no word about a folder that is not there"

"$repo/tools/dev/record-ioctls" --no-such-option >/dev/null 2>&1 && fail "an unknown option"
"$repo/tools/dev/record-ioctls" --gpu sim --build "$build" --quick --out "$work/out" >"$work/said" 2>&1 || fail "a program through loopback"
grep -q 'ran vector_add' "$work/said" || fail "no program ran"
grep -q '^# columns: .* [1-9][0-9]* processes$' "$work/out/ioctls.txt" || fail "no worker had the recorder"
