#!/usr/bin/env bash
# usage: reclaim.sh BUILD
# In a VM nothing tells the host that a program was killed: the next program that wants a slot finds it out. The VM has
# one slot here, and three programs are killed that hold it: before the next one starts, while the next one waits, and
# with a parent that never asks after it. Each time the next one must pass.
set -euo pipefail
build=$1
code=0
data=$(cd "$(dirname "${BASH_SOURCE[0]}")/../data" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$build/bin/ivgpu" vm --gpu sim --extra-config "$data/one_slot.toml" --timeout 120 >"$work/out" 2>"$work/err" <<'JOB' || code=$?
hold() { exec handoff --rounds 5000000; }
# A program that finds no slot waits, longer than this lets it.
is_held() { timeout 2 vector_add --n 1000 >/dev/null 2>&1 || echo "$1: the slot is held"; }
works() { vector_add --n 1000 >/dev/null && echo "$1: the next program works"; }

hold & sleep 2
is_held "killed before"
kill -9 $!
works "killed before"

hold & sleep 2
is_held "killed meanwhile"
(sleep 2; kill -9 $!) &
works "killed meanwhile"

sh -c 'handoff --rounds 5000000 & echo $! >/tmp/pid; exec sleep 1000' & sleep 2
is_held "killed and forgotten"
kill -9 "$(cat /tmp/pid)"
sleep 1
grep -q 'State:.*zombie' "/proc/$(cat /tmp/pid)/status" && echo "killed and forgotten: it is a zombie"
works "killed and forgotten"
JOB

cat >"$work/wanted" <<'TEXT'
killed before: the slot is held
killed before: the next program works
killed meanwhile: the slot is held
killed meanwhile: the next program works
killed and forgotten: the slot is held
killed and forgotten: it is a zombie
killed and forgotten: the next program works
TEXT
diff -u --label wanted --label guest "$work/wanted" "$work/out" || { cat "$work/err"; exit 1; }
[[ $code == 0 ]] || { echo "ivgpu vm ended with $code"; cat "$work/err"; exit 1; }
