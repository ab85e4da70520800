#!/usr/bin/env bash
# usage: run_programs.sh RUN_PROGRAMS
# Tests the lines that run-programs prints about programs that pass, fail, crash, hang or are missing.
set -uo pipefail
run_programs=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

program() {
  printf '#!/bin/sh\n%s\n' "$2" >"$work/$1"
  chmod +x "$work/$1"
}
program good 'echo "$# $1"; echo "ivgpu-stats calls=5 posted=3 waited=2 bytes=100" >>"$IVGPU_STATS"
              echo "ivgpu-stats calls=1 posted=1 waited=0 bytes=0" >>"$IVGPU_STATS"'
program bad 'echo output; echo "row 3 differs" >&2; exit 1'
program crash 'kill -SEGV $$'
# Ends the program's time: `timeout` reacts to this signal as to its own timer.
program hang 'kill -ALRM $PPID; exec sleep 1000'
cat >"$work/list.txt" <<'LIST'
# a comment

good --n 5
bad
crash
hang
absent
LIST

status=0
expect() {
  grep -qE -- "$1" "$work/out" || { echo "FAIL: no line '$1' in:"; cat "$work/out"; status=1; }
}

"$run_programs" --timeout 60 "$work/list.txt" "$work" >"$work/out" 2>&1
[[ $? == 1 ]] || { echo "FAIL: failed programs, and exit code 0"; status=1; }
expect '^PASS good [0-9]+\.[0-9][0-9] calls=6 posted=4 waited=2 bytes=100$'
expect '^FAIL bad exit code 1: row 3 differs$'
expect '^FAIL crash ended by signal 11'
expect '^FAIL hang did not end within 60 s'
expect '^FAIL absent not found'
expect '^1 of 5 programs passed$'

"$run_programs" --filter good "$work/list.txt" "$work" >"$work/out" 2>&1 || { echo "FAIL: exit code $?"; status=1; }
expect '^1 of 1 programs passed$'
"$run_programs" --filter nothing "$work/list.txt" "$work" >"$work/out" 2>&1 && { echo "FAIL: no program passed"; status=1; }

"$run_programs" --outputs --filter 'good' "$work/list.txt" "$work" env >"$work/out" 2>&1
expect '^== good --n 5$'
expect '^2 --n$'
expect '^== exit 0$'
exit "$status"
