#!/usr/bin/env bash
# usage: conformance.sh CONFORMANCE BUILD
# Tests tools/conformance with programs whose results are equal on both sides, with a program for each kind of
# difference, and with bad input, on the simulated GPU. The real programs need a real GPU; this test only checks that
# their list matches their folder.
# shellcheck disable=SC2016  # programs and patterns are quoted
set -uo pipefail
conformance=$1 build=$2
# shellcheck source=tests/patient.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../patient.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TMPDIR=$work
status=0
fail() { echo "FAIL: $1"; status=1; }

# Writes the programs' files. Through loopback, IVGPU_REGION is set.
made=$work/made
mkdir "$made"
program() { printf '#!/bin/sh\n%s\n' "$2" >"$made/$1"; chmod +x "$made/$1"; }
program same.sh 'echo "$A $B $*"'
program fails.sh 'echo hello; [ -z "$IVGPU_REGION" ] || { echo "ivgpu: mine" >&2; echo "no | luck" >&2; exit 3; }'
program differs.sh 'echo head; echo "${IVGPU_REGION:+not }alike"'
program later.sh 'echo >>"$COUNT"; [ -z "$IVGPU_REGION" ] || [ "$(wc -l <"$COUNT")" -lt 4 ] || echo late'
program varies.sh 'echo $$'
# Ends the program's time: `timeout` reacts to this signal as to its own timer.
over='p=$PPID; until [ "$(cat /proc/$p/comm)" = timeout ]; do p=$(cut -d " " -f 4 /proc/$p/stat); done; kill -ALRM $p; sleep 1000'
program hangs.sh '[ -z "$IVGPU_REGION" ] || { '"$over; }"
program native.sh 'echo "it broke" >&2; exit 4'
program slow.sh '[ "$IVGPU_REGION" ] || { '"$over; }"
program lacks.sh 'echo "not installed: a camera" >&2; exit 1'
program refused.sh 'exec "$0.bin"'
echo 'import a_package_that_is_not_there' >"$made/missing.py"
echo '#include "a_header_that_is_not_there.h"' >"$made/header.cu"
echo 'int main() { return nothing; }' >"$made/broken.cu"
cat >"$made/vector.cu" <<'CU'
#include "tests/programs/check.h"
__global__ void count(int* values) { values[threadIdx.x] = static_cast<int>(threadIdx.x); }
int main() {
  int* values = check::device_buffer<int>(32);
  count<<<1, 32>>>(values);
  std::printf("%d\n", check::host_copy(values, 32)[7]);
}
CU
# The guest library will never serve graphics, and the simulated GPU does not know the call at all.
cc -x c -o "$made/refused.sh.bin" - -ldl <<'C' || exit 1
#include <dlfcn.h>
#include <stdio.h>
int main(void) {
  void* cuda = dlopen("libcuda.so.1", RTLD_NOW);
  int (*initialise)(unsigned) = (int (*)(unsigned))dlsym(cuda, "cuInit");
  int (*unregister)(void*) = (int (*)(void*))dlsym(cuda, "cuGraphicsUnregisterResource");
  if (initialise(0) != 0) return 2;
  if (unregister) unregister(0);
  return puts("done") < 0;
}
C
# The layout of a Python package: below nvidia/, with the library's file under its versioned name only.
mkdir -p "$work/site/nvidia/cu99/include" "$work/site/nvidia/cu99/lib"
echo 'extern "C" int packaged_number(void);' >"$work/site/nvidia/cu99/include/packaged.h"
cc -shared -fPIC -x c -o "$work/site/nvidia/cu99/lib/libpackaged.so.7" - <<<'int packaged_number(void) { return 71; }' || exit 1
cat >"$made/packaged.cu" <<'CU'
#include <packaged.h>
#include <cstdio>
int main() { std::printf("%d\n", packaged_number()); }
CU
cat >"$made/list.txt" <<'LIST'
# a comment, and an empty line

same | A=1 B=two same.sh three four |  | exact | variables and arguments
fails | fails.sh | | exact | x
differs | differs.sh | | exact | x
later | later.sh | | exact | x
varies | varies.sh | | exact | x
hangs | hangs.sh | | exact | x
native | native.sh | | exact | x
slow | slow.sh | | exact | x
lacks | lacks.sh | | exact | x
refused | refused.sh | | rounded | x
missing | missing.py | | exact | x
header | header.cu | | exact | x
library | vector.cu | a_library_that_is_not_there | exact | x
broken | broken.cu | | exact | x
vector | vector.cu | | exact | x
packaged | packaged.cu | packaged | exact | x
LIST

# expect CODE PATTERN WORDS...: checks the exit code, and a pattern of the output. The output is in $output.
expect() {
  local code=$1 pattern=$2 got
  shift 2
  output=$("$conformance" "$@" 2>&1 </dev/null)
  got=$?
  [[ $got == "$code" && $output =~ $pattern ]] ||
    fail "conformance $*: exit code $got (wanted $code), wanted to read '$pattern' in: $output"
}
here=(--programs "$made" --build "$build" --gpu sim --region-size 1GiB)
# row NAME RESULT [NOTE]: checks a program's result in results.txt of the last run.
row() {
  local line
  line=$(awk -F '\t' -v name="$1" '$1 == name { print $4 "\t" $8 }' "$work/out/results.txt")
  [[ $line == "$2"$'\t'${3-} ]] || fail "$1: '$line', wanted '$2' and '${3-}'"
}

# ---- bad input -------------------------------------------------------------------------------------------------------
expect 0 '^usage: tools/conformance' --help
expect 2 'no option --nonsense' --nonsense
expect 2 '--seconds needs a value' --seconds
expect 2 '--seconds is a number from 1 to 9999' --seconds 0
expect 2 '--repeat is a number from 1 to 9999' --repeat x
expect 2 '--part is K/N' --part 2
expect 2 'there is no such part' --part 3/2
expect 2 '--gpu is auto or sim' --gpu none
expect 2 'there is no program nosuch' "${here[@]}" nosuch
expect 2 'has no program' "${here[@]}" --part 2/2 same
expect 2 'cannot be made' "${here[@]}" --out /proc/out same
expect 3 'list.txt is not there' "${here[@]}" --programs "$work"
expect 3 'bin/ivgpu is not there' "${here[@]}" --build "$work"
expect 3 'results.txt is not there' --report "$work"
mkdir "$work/bad"
echo 'a | b.sh | exact | too few' >"$work/bad/list.txt"
expect 3 'has not five cells' --programs "$work/bad"
echo 'a | b.sh | | nearly | x' >"$work/bad/list.txt"
expect 3 'a is neither exact nor rounded' --programs "$work/bad"

# ---- which programs --------------------------------------------------------------------------------------------------
expect 0 'same +exact +variables and arguments.*vector' "${here[@]}" --list
[[ $(wc -l <<<"$output") == 16 ]] || fail "--list prints: $output"
expect 0 '^hangs +exact +x$' "${here[@]}" --list 'h[a]*'
expect 0 '^same .*differs' "${here[@]}" --list --part 1/2 differs fails same
[[ $output != *fails* ]] || fail "part 1 of 2 has the second program: $output"
expect 0 'programs/vector_add +exact' "${here[@]}" --list 'programs/*'

# Each file of the folder is either in the list or included by a file, each line of the list has its file, and Python
# can compile its own files.
real=$(dirname "$conformance")/../tests/conformance
listed=$(grep -v '^#' "$real/list.txt" | grep -oE '[a-z_]+\.(cu|py)' | sort -u)
found=$(find "$real" -name '*.cu' -printf '%f\n' -o -name '*.py' ! -name show.py -printf '%f\n' | sort)
[[ $(wc -l <<<"$listed") -gt 30 && $listed == "$found" ]] || fail "list.txt and its folder: $(diff <(echo "$listed") <(echo "$found"))"
(cd "$real" && python3 -c 'import ast, sys; [ast.parse(open(name).read(), name) for name in sys.argv[1:]]' ./*.py) ||
  fail "a program in Python is none"

# ---- what comes of them ----------------------------------------------------------------------------------------------
export COUNT=$work/count PYTHONPATH=$work/site
expect 1 'differs +[0-9.]+ s +[0-9.]+ s +differs' "${here[@]}" --out "$work/out" --seconds 300 --repeat 2
row same same
row fails fails 'no   luck'
row differs differs '-alike +not alike'
row later differs '+late'
[[ $(awk '$1 == "varies"' "$work/out/results.txt") =~ ^varies.*varies\ natively.*- ]] || fail "varies: $output"
row hangs hangs
row native 'fails natively' 'it broke'
row slow 'fails natively'
row lacks 'not installed' 'a camera'
row refused same
row missing 'not installed' 'the Python package a_package_that_is_not_there is not there'
row header 'not installed' 'a_header_that_is_not_there.h is not there'
row library 'not installed' 'liba_library_that_is_not_there.so is not there'
[[ $(awk '$1 == "broken"' "$work/out/results.txt") =~ does\ not\ build.*nothing ]] || fail "broken: $output"
row vector same
row packaged same
[[ $output =~ refused\ on\ the\ way:.*refused\ +cuGraphicsUnregisterResource ]] || fail "what was refused is not told: $output"
[[ $output == *"[1/16] same: same, native "* ]] || fail "no progress: $output"
[[ $(cat "$work/out/same/loopback.2.out") == '1 two three four' ]] || fail "same printed $(cat "$work/out/same/loopback.2.out")"
[[ -s $work/out/differs/diff && -s $work/out/fails/loopback.1.err && -s $work/out/broken/build.log ]] || fail "logs are missing"
[[ ! -e $work/out/same/diff ]] || fail "same has a diff"
grep -qE '^hangs.*over 300 s' "$work/out/results.txt" || fail "hangs does not say how long it was waited for"

# A missing library makes no program fail.
mv "$work/out" "$work/first"
expect 0 'vector' "${here[@]}" --out "$work/out" --markdown same vector missing library
[[ $output == *'| `vector` | '*' s | same | '*' | exact |'* ]] || fail "no table in Markdown: $output"
[[ $output == *"the simulated GPU; ivgpu "* ]] || fail "the table does not say of which machine it is: $output"
expect 3 'nothing ran' "${here[@]}" missing library
expect 0 'vector' "${here[@]}" --seconds 300 programs/vector_add vector

# --report combines the partial results into one table.
expect 1 '`fails`.*`vector`' --report "$work/first" --report "$work/out" --markdown
expect 0 'vector +' --report "$work/out"

[[ $(find "$work" -mindepth 1 -maxdepth 1 \( -name 'tmp.*' -o -name 'ivgpu*' \)) == '' ]] || fail "something is left: $(ls "$work")"
exit "$status"
