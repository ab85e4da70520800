#!/usr/bin/env bash
# cmake/unity-groups: which sources it lets share a translation unit. Usage: unity_groups.sh SOURCES
set -u
groups=$1/cmake/unity-groups
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
status=0
# expect WHAT GROUPS FILE... : the files' groups, in a line.
expect() {
  local what=$1 wanted=$2 got
  shift 2
  got=$("$groups" 8 "$@" | tr '\n' ' ')
  [[ ${got% } == "$wanted" ]] || { echo "FAIL: $what: groups '$got', not '$wanted'"; status=1; }
}
# pair WHAT GROUPS FIRST SECOND: of two sources with these texts.
pair() {
  printf '%s\n' "$3" >a.cc
  printf '%s\n' "$4" >b.cc
  expect "$1" "$2" a.cc b.cc
}

pair 'functions of one name' '0 1' 'namespace n { namespace { int size() { return 1; } } }' 'namespace { int size() { return 2; } }'
pair 'variables of one name' '0 1' 'namespace { constexpr int most = 1; }' 'static const int most{2};'
pair 'types of one name' '0 1' 'namespace { struct Row { int a; }; }' 'namespace { class Row; }'
pair 'aliases of one name' '0 1' 'namespace { using Rows = int; }' 'namespace { using Rows = long; }'
pair 'the second of two declarators' '0 1' 'namespace { int a, b; }' 'namespace m { int b(); }'
pair 'a name that hides what the other calls' '0 1' 'namespace { void fail() {} }' 'void f() { fail(); }'
pair 'a macro' '0 1' '#define LIMIT 4' 'int LIMIT_of(); int x = LIMIT;'
pair 'a name in a template' '0 1' 'namespace { template <class T> T twice(T t) { return t; } }' 'int twice;'
pair 'names in comments and strings alone' '0 0' 'namespace { int size() { return 1; } }' '// size
const char* text() { return "size"; }'
pair 'names of the named namespace' '0 0' 'namespace n { int size() { return 1; } }' 'namespace n { int size(); int twice() { return size(); } }'
pair 'local variables' '0 0' 'int f() { int size = 1; return size; }' 'int g() { int size = 2; return size; }'
pair 'tests, which a macro names' '0 0' 'namespace { TEST(A, One) { int x; } TEST(A, Two) {} }' 'namespace { TEST(A, Three) {} }'
pair 'the same name by a using-declaration' '0 0' 'namespace n { namespace { using ring::Word; } }' 'namespace n { namespace { using ring::Word; } }'
for k in 0 1 2 3 4 5 6 7 8; do echo "int f$k();" >"$k.cc"; done
expect 'at most eight in a group' '0 0 0 0 0 0 0 0 1' 0.cc 1.cc 2.cc 3.cc 4.cc 5.cc 6.cc 7.cc 8.cc

"$groups" 8 missing.cc >/dev/null 2>err
[[ $? == 1 && $(cat err) == *missing.cc* ]] || { echo 'FAIL: a source that is missing'; status=1; }
"$groups" >/dev/null 2>err
[[ $? == 2 && $(cat err) == usage* ]] || { echo 'FAIL: no arguments'; status=1; }
exit "$status"
