#!/usr/bin/env bash
# usage: command.sh BUILD
# What `ivgpu vm` promises of a command: its output and errors byte for byte and apart, its exit code, the environment,
# the folders, and that a command that does not end is ended.
set -euo pipefail
build=$1
ivgpu=$build/bin/ivgpu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
fail() { echo "FAIL: $1"; status=1; }

mkdir "$work/mine"
head -c 300000 /dev/urandom >"$work/mine/bytes"

code=0
"$ivgpu" vm --gpu sim --program-dir "$work/mine" --env "WORD=it's here" --timeout 120 -- \
  'cat /programs/mine/bytes; echo "$WORD" >&2; dmesg -n 8; echo noise >/dev/kmsg; exit 7' \
  >"$work/out" 2>"$work/err" || code=$?
[[ $code == 7 ]] || fail "exit code $code instead of 7"
cmp "$work/mine/bytes" "$work/out" || fail "the output is not what the command wrote"
[[ $(cat "$work/err") == "it's here" ]] || fail "the errors are not what the command wrote: $(cat "$work/err")"

code=0
"$ivgpu" vm --gpu sim --timeout 40 -- 'echo begun; sleep 1000' >"$work/out" 2>"$work/err" || code=$?
[[ $code == 124 ]] || fail "exit code $code instead of 124 after the time ran out"
grep -q '^ivgpu: the command did not end within 40 s$' "$work/err" || fail "no word about the time that ran out"
[[ $(cat "$work/out") == begun ]] || fail "what the command wrote before its end is lost"
exit "$status"
