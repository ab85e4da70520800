#!/usr/bin/env bash
# usage: parts_test.sh SOURCES BUILD
# tools/dev/parts on the simulated GPU: both tables are complete, and each part has a plausible number.
set -euo pipefail
sources=$1 build=$2
table=$("$sources/tools/dev/parts" --gpu sim --quick --build "$build")
status=0
fail() { echo "FAIL: $1"; echo "$table"; status=1; }

[[ $(grep -c '^| \*\*the whole' <<<"$table") == 2 ]] || fail "there are not two wholes"
[[ $(grep -cE '^\| (guest|to the worker|worker|the driver|reply)[^|]*\| [1-9][0-9]* \|' <<<"$table") -ge 12 ]] ||
  fail "a part has no figure"
code=0
"$sources/tools/dev/parts" --gpu nonsense >/dev/null 2>&1 || code=$?
[[ $code == 2 ]] || fail "a wrong option gives $code"
exit "$status"
