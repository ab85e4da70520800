# Shared functions for tests of bad input; sourced, never run. The caller is then in an empty folder of its own.
# shellcheck shell=bash

# shellcheck source=tests/patient.sh
source "$(dirname "${BASH_SOURCE[0]}")/patient.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/left"
export TMPDIR=$work/left
cd "$work" || exit 1
unset IVGPU_REGION XDG_RUNTIME_DIR
status=0 rows=0

fail() { echo "FAIL: $1"; status=1; }

# row CODE PATTERN COMMAND...: expects that the command exits with CODE, prints a match of PATTERN, and leaves neither
# file nor process. Output is short: one error, then at most a quoted log; none may follow if one_sentence is set.
one_sentence='' limit_s=120
row() {
  local code=$1 pattern=$2 said got
  shift 2
  rows=$((rows + 1))
  said=$(timeout "$limit_s" "$@" 2>&1 >/dev/null </dev/null)
  got=$?
  [[ $got == "$code" ]] || fail "$* ended with $got, not $code: $said"
  grep -qF -- "$pattern" <<<"$said" || fail "$* does not say '$pattern', but: $said"
  (($(wc -l <<<"$said") <= ${one_sentence:-8})) || fail "$* says too much: $said"
  nothing_is_left "$*"
}

# stops_reading COMMAND...: expects that an endless writer and its children exit when the reader closes the pipe.
stops_reading() {
  local got
  rows=$((rows + 1))
  timeout "$limit_s" "$@" 2>&1 </dev/null | head -c 1 >/dev/null
  got=${PIPESTATUS[0]}
  [[ $got == 141 ]] || fail "$* ended with $got when nobody read on"
  nothing_is_left "$*"
}

nothing_is_left() {
  wait_for no_process || fail "$1 leaves a process behind"
  [[ -z $(find "$TMPDIR" -mindepth 1 -print -quit) ]] || { fail "$1 leaves $(find "$TMPDIR" -mindepth 1)"; rm -rf "${TMPDIR:?}"/*; }
}
no_process() { ! grep -lqs -- "$TMPDIR" /proc/[0-9]*/cmdline; }

# finish N: fails if fewer than N rows ran, and exits.
finish() {
  ((rows >= $1)) || fail "only $rows rows"
  exit "$status"
}
