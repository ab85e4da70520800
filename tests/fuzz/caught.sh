#!/usr/bin/env bash
# A mistake on purpose (ring/verify/double_fetches.def, ring/verify/races.def) must end its fuzz target with the broken promise that it
# is. The corpus has an input for each. A call that is new to the table gives old inputs another meaning, so where none
# of them shows the mistake any more the target searches for one that does.
#
# usage: caught.sh TARGET MISTAKE CORPUS PROMISE, which is a regular expression. Exit codes: 0 it was caught, 1 it was not.
set -euo pipefail
target=$1 mistake=$2 corpus=$3 promise=$4
search_runs=1000000  # a busy machine searches as far as an idle one
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
