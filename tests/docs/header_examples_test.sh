#!/usr/bin/env bash
# The head of each public header has an example between ``` marks that compiles. All C++ examples form one source, each
# in its own namespace after its header's #include; C examples form another.
#
# usage: header_examples_test.sh CXX C TOP CUDA_INCLUDE. Exit codes: 0 all compile, 1 an example is missing or does not
# compile.
set -euo pipefail
cxx=$1 cc=$2 top=$3 cuda=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The contract, and headers of other folders that programs use.
headers() {
  (cd "$1" && find ring -name '*.h' | grep -vxE "$without") | LC_ALL=C sort
  printf '%s\n' guest/region/module.h host/base/result.h host/driver/driver.h host/simgpu/engine.h
}
# Exempt: record headers, which follow records.h; undefine_facts.h, which ends each use of a table.
without='ring/(api/[a-z_]+_records|nvml/undefine_facts)\.h'

# example KIND HEADER: prints the example, its #include lines first, and for C++ the rest in a namespace.
example() {
  awk -v kind="$1" -v header="$2" -v space="$3" '
    /^#pragma once/ { exit }
    $0 == "// ```" && inside { inside = 0 }
    inside {
      line = $0
      sub("^// ?", "", line)
      if (line ~ /^#include/) include = include line "\n"
      else { if (!first) first = NR; text = text line "\n" }
    }
    $0 == "// ```" kind { inside = 1 }
    END {
      if (text == "") exit
      printf "#include \"%s\"\n%s", header, include
      if (kind == "cpp") printf "namespace %s {\n", space
      printf "#line %d \"%s\"\n%s", first, header, text
      if (kind == "cpp") printf "}\n"
    }' "$4/$2"
}

# check FOLDER: checks the headers of FOLDER and prints errors.
check() {
  local folder=$1 header count=0 status=0
  : >"$work/all.cc"
  : >"$work/all.c"
  while IFS= read -r header; do
    example cpp "$header" "example_$((++count))" "$folder" >"$work/one.cc"
    example c "$header" - "$folder" >"$work/one.c"
    if [[ ! -s $work/one.cc && ! -s $work/one.c ]]; then
      echo "$header: its head has no example"
      status=1
    fi
    cat "$work/one.cc" >>"$work/all.cc"
    cat "$work/one.c" >>"$work/all.c"
  done
  local warnings=(-fsyntax-only -Wall -Wextra -Wconversion -Werror -Wno-deprecated-declarations -I"$folder" -isystem "$cuda")
  "$cxx" -std=c++20 -D__CUDA_API_VERSION_INTERNAL -DIVGPU_OBSERVED "${warnings[@]}" "$work/all.cc" || status=1
  "$cc" -std=c11 -D_GNU_SOURCE "${warnings[@]}" "$work/all.c" || status=1
  return "$status"
}

headers "$top" | check "$top"

# Tests this check: a header without an example, and two with a wrong one.
mkdir "$work/tree"
echo '#pragma once' >"$work/tree/none.h"
cat >"$work/tree/wrong.h" <<'TEXT'
// ```cpp
// int wrong() { return missing(); }
// ```
#pragma once
TEXT
cat >"$work/tree/wrong_in_c.h" <<'TEXT'
// ```c
// int wrong_in_c(void) { return absent; }
// ```
#pragma once
TEXT
said=$(printf '%s\n' none.h wrong.h wrong_in_c.h | check "$work/tree" 2>&1) && { echo "FAIL: nothing was found"; exit 1; }
for found in 'none.h: its head has no example' 'wrong.h:2:' 'wrong_in_c.h:2:'; do
  grep -qF "$found" <<<"$said" || { echo "FAIL: '$found' was not found in: $said"; exit 1; }
done
