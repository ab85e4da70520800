#!/usr/bin/env bash
# usage: thread_safety.sh SOURCE_DIR
# clang compiles a source of the product with its locks, and refuses it where an access to a guarded member lacks the
# lock.
set -uo pipefail
cd "$1" || exit 1
status=0
fail() { echo "FAIL: $1"; status=1; }
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

grep -A3 'CMAKE_CXX_COMPILER_ID STREQUAL Clang' cmake/IvgpuOptions.cmake |
  grep -q -e '-Wthread-safety -Wthread-safety-beta' ||
  fail 'the builds with clang do not check the locks'

# compile FILE: checks a file as the builds with clang do; the diagnostics become $output.
compile() { output=$(clang++ -std=c++20 -Wthread-safety -Wthread-safety-beta -Werror -fsyntax-only -I. "$1" 2>&1); }
product=guest/objects/memory/reservations.cc
cp "$product" "$tree/locked.cc"
compile "$tree/locked.cc" || fail "the product is refused: $output"

# edit NAME SCRIPT: a copy of the source that a sed script has changed.
edit() {
  sed -E "$2" "$product" >"$tree/$1"
  ! cmp -s "$product" "$tree/$1" || fail "nothing was planted in $1"
}
edit unlocked.cc '/MutexLock lock\(mutex_\)/d'
! compile "$tree/unlocked.cc" || fail 'an access without the lock compiles'
[[ $output == *"requires holding mutex 'mutex_'"* ]] || fail "the mutex is not named: $output"
edit late.cc 's/(.*MutexLock lock\(mutex_\).*)/ranges_.clear();\n\1/'
! compile "$tree/late.cc" || fail 'an access before the lock compiles'
edit twice.cc 's/MutexLock lock\(mutex_\);/MutexLock lock(mutex_); const ring::MutexLock again(mutex_);/'
! compile "$tree/twice.cc" || fail 'a mutex that is locked twice compiles'
cat >"$tree/order.cc" <<'TEXT'
#include "ring/base/mutex.h"
ring::Mutex second;
ring::Mutex first ACQUIRED_BEFORE(second);
void lock_both() {
  const ring::MutexLock one(second);
  const ring::MutexLock other(first);
}
TEXT
! compile "$tree/order.cc" || fail 'two mutexes that are locked against their order compile'
exit "$status"
