#!/usr/bin/env bash
# usage: programs.sh BUILD
# Runs every program of list.txt in one guest, and the program with NVRTC in another guest. Each program must pass, and
# print the same as directly on the simulated GPU, including its messages about faults and images.
set -euo pipefail
build=$1
# shellcheck source=tests/patient.sh
source "$(dirname "${BASH_SOURCE[0]}")/../patient.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$build/share/ivgpu/guest/run-programs" --outputs "$build/programs/list.txt" "$build/programs" "$build/bin/ivgpu" sim \
  >"$work/direct" 2>"$work/direct.err"
"$build/bin/ivgpu" vm --gpu sim --region-size 4GiB --timeout 1500 -- \
  run-programs --outputs /programs/list.txt /programs >"$work/guest" 2>"$work/guest.err"

# diagnoses FILE: prints the simulated GPU's messages, as the guest library or the simulated GPU printed them.
diagnoses() { sed -nE 's/^ivgpu:? simulated GPU: //p' "$1"; }

status=0
diff -u --label 'said, simulated' --label 'said, guest' <(diagnoses "$work/direct.err") <(diagnoses "$work/guest.err") ||
  status=1
[[ $(diagnoses "$work/guest.err") == *'access of 4 bytes at'* ]] || { echo "no fault was explained"; status=1; }
diff -u --label simulated --label guest "$work/direct" "$work/guest" || status=1

"$build/bin/ivgpu" sim "$build/programs-nvrtc/driver_context" >"$work/direct"
"$build/bin/ivgpu" vm --gpu sim --program-dir "$build/programs-nvrtc" --timeout 1500 -- /programs/programs-nvrtc/driver_context \
  >"$work/compiled" || { echo "with NVRTC: exit code $?"; status=1; }
diff -u --label simulated --label 'guest, with NVRTC' "$work/direct" "$work/compiled" || status=1
wanted=$(grep -c '^[^#]' "$build/programs/list.txt")
passed=$(grep -cx '== exit 0' "$work/guest" || true)
echo "$passed of $wanted programs passed in the guest"
[[ $passed == "$wanted" && $wanted -gt 0 ]] || status=1
exit "$status"
