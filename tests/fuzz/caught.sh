#!/usr/bin/env bash
# Expects that a fuzz target with a planted mistake (ring/verify/double_fetches.def, ring/verify/races.def) fails with
# the expected message. The corpus has an input for each mistake. A new call changes the meaning of old inputs; if no
# input triggers the mistake any more, the target searches for one.
#
# usage: caught.sh TARGET MISTAKE CORPUS PROMISE
# PROMISE is a regular expression of the message. Exit codes: 0 caught, 1 missed.
set -euo pipefail
target=$1 mistake=$2 corpus=$3 promise=$4
search_runs=1000000  # a number rather than a time, so that a slow machine searches as far
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export IVGPU_MUTANT=$mistake
mkdir "$work/found"
if "$target" -runs=0 -artifact_prefix="$work/" "$corpus" >"$work/output" 2>&1; then
  if "$target" -seed=1 -max_len=400 -runs=$search_runs -artifact_prefix="$work/" "$work/found" "$corpus" \
    >"$work/output" 2>&1; then
    echo "$mistake was not caught, nor did a search of $search_runs runs find an input that shows it"
    exit 1
  fi
  echo "no input of the corpus shows $mistake; this one does, make it $corpus/$mistake:"
  base64 -w 0 "$work"/crash-*
  echo
fi
grep -E "broken promise: .*($promise)" "$work/output" || { tail -n 30 "$work/output"; exit 1; }
