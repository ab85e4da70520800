#!/usr/bin/env bash
# A mistake on purpose (ring/double_fetches.def, ring/races.def) must end its fuzz target with the broken promise that it
# is.
#
# usage: caught.sh TARGET MISTAKE CORPUS PROMISE, which is a regular expression. Exit codes: 0 it was caught, 1 it was not.
set -euo pipefail
target=$1 mistake=$2 corpus=$3 promise=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if IVGPU_MUTANT=$mistake "$target" -runs=0 -artifact_prefix="$work/" "$corpus" >"$work/output" 2>&1; then
  echo "$mistake was not caught"
  exit 1
fi
grep -E "broken promise: .*($promise)" "$work/output" || { tail -n 30 "$work/output"; exit 1; }
