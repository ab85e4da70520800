#!/usr/bin/env bash
# usage: programs.sh BUILD
# Runs every program of list.txt in one guest. All must pass, and print what they print on the simulated GPU directly.
set -euo pipefail
build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$build/share/ivgpu/guest/run-programs" --outputs "$build/programs/list.txt" "$build/programs" "$build/bin/ivgpu" sim \
  >"$work/direct"
"$build/bin/ivgpu" vm --gpu sim --region-size 4GiB --timeout 500 -- \
  run-programs --outputs /programs/list.txt /programs >"$work/guest"

status=0
diff -u --label simulated --label guest "$work/direct" "$work/guest" || status=1
wanted=$(grep -c '^[^#]' "$build/programs/list.txt")
passed=$(grep -cx '== exit 0' "$work/guest" || true)
echo "$passed of $wanted programs passed in the guest"
[[ $passed == "$wanted" && $wanted -gt 0 ]] || status=1
exit "$status"
