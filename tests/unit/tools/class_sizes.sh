#!/usr/bin/env bash
# usage: class_sizes.sh CLASS_SIZES
# Tests that class-sizes counts methods and members, names a class that has too many, and rejects bad arguments.
set -uo pipefail
class_sizes=$1
status=0
fail() { echo "FAIL: $1"; status=1; }
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/guest/session" "$tree/host/simgpu"

# write FILE METHODS MEMBERS: writes a class with these numbers of methods and members, plus lines that do not count.
write() {
  local k
  {
    echo 'class Sample final : public Base {'
    echo ' public:'
    echo '  explicit Sample(int number) : member_1_(number) {}'
    echo '  Sample& operator=(const Sample&) = delete;'
    echo '  using Name = std::string;'
    echo '  // int comment(int) { return 1; }'
    for ((k = 1; k <= $2; ++k)); do
      echo "  int method_$k(std::map<int, int> a) const { if (a.empty()) { return 1; } return 2; }"
      echo "  int method_$k(double);"
    done
    echo ' private:'
    for ((k = 1; k <= $3; ++k)); do echo "  std::map<int, std::function<void(int)>> member_${k}_ GUARDED_BY(mutex_){};"; done
    echo '};'
  } >"$tree/$1"
}
expect() {
  local code=$1 text=$2 output got
  output=$("$class_sizes" "$tree" 2>&1)
  got=$?
  [[ $got == "$code" ]] || fail "exit code $got instead of $code: $output"
  [[ $output == *"$text"* ]] || fail "no '$text' in: $output"
}
write guest/session/sample.h 25 15; expect 0 ''
write guest/session/sample.h 26 15; expect 1 'guest/session/sample.h:1: Sample: 26 methods, 15 members'
write guest/session/sample.h 25 16; expect 1 'guest/session/sample.h:1: Sample: 25 methods, 16 members'
write guest/session/sample.h 0 40; expect 0 ''
rm "$tree/guest/session/sample.h"
write host/simgpu/sample.h 60 60; expect 0 ''
"$class_sizes" --no-such-option >/dev/null 2>&1; [[ $? == 2 ]] || fail 'an unknown option'
"$class_sizes" "$tree" "$tree" >/dev/null 2>&1; [[ $? == 2 ]] || fail 'two folders'
[[ $("$class_sizes" --help) == *$'\nusage: '* ]] || fail 'no help'
exit "$status"
