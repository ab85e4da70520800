#!/usr/bin/env bash
# usage: run_program.sh BUILD PROGRAM [ARGUMENTS...]
# Runs a test program on the simulated GPU and in loopback. Exits 0 if both runs passed with equal output, and if the
# simulated GPU's messages about faults and images reached standard error in both. IVGPU_TEST_CONFIG names a file with
# settings for the loopback's broker.
set -euo pipefail
build=$1 program=$2
shift 2
# shellcheck source=tests/patient.sh
source "$(dirname "${BASH_SOURCE[0]}")/patient.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

config=()
if [[ ${IVGPU_TEST_CONFIG:-} ]]; then config=(--extra-config "$IVGPU_TEST_CONFIG"); fi

# diagnoses FILE: the simulated GPU's messages, from either route.
diagnoses() { sed -nE 's/^ivgpu:? simulated GPU: //p' "$1"; }

status=0
"$build/bin/ivgpu" sim "$build/programs/$program" "$@" >"$work/sim" 2>"$work/sim.err" ||
  { echo "on the simulated GPU: exit code $?"; status=1; }
"$build/bin/ivgpu" run --gpu sim "${config[@]}" "$build/programs/$program" "$@" \
  >"$work/loopback" 2>"$work/loopback.err" ||
  { echo "in loopback: exit code $?"; status=1; }
diff -u --label simulated --label loopback "$work/sim" "$work/loopback" || status=1
cat "$work/sim.err" "$work/loopback.err" >&2
diff -u --label 'said, simulated' --label 'said, loopback' <(diagnoses "$work/sim.err") \
  <(diagnoses "$work/loopback.err") || status=1
[[ -s $work/sim ]] || { echo "the program printed nothing"; status=1; }
exit "$status"
