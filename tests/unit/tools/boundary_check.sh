#!/usr/bin/env bash
# usage: boundary_check.sh BOUNDARY_CHECK
# Tests that boundary-check finds what its tables forbid, reports place and reason, and ignores other folders. It must
# also find product files that are too long, and retired words.
set -uo pipefail
boundary_check=$1
status=0
fail() { echo "FAIL: $1"; status=1; }

# try FILE CODE LINE: expects that boundary-check refuses (1) or accepts (0) a tree with only this file.
try() {
  local tree file=$1 code=$2 line=$3 output got
  tree=$(mktemp -d)
  mkdir -p "$tree/ring" "$tree/$(dirname "$file")"
  : >"$tree/ring/empty.h"
  printf '// first line\n%s\n' "$line" >"$tree/$file"
  output=$("$boundary_check" "$tree" 2>&1)
  got=$?
  [[ $got == "$code" ]] || fail "exit code $got instead of $code for '$line' in $file"
  [[ $code == 0 || $output == *"$file:2:$line"* ]] || fail "'$line' in $file is not named: $output"
  rm -rf "$tree"
}

try guest/shim.cc 1 '#include "host/session/session.h"'
try guest/shim.cc 0 '// #include "host/session/session.h"'
try guest/shim.cc 0 '#include "ring/layout/layout.h"'
try host/broker/main.cc 1 '#include "ring/queue/record_ring.h"'
try host/untrusted/copy.cc 1 '  assert(offset < size);'
try host/untrusted/copy.cc 0 '  static_assert(sizeof(int) == 4);'
try host/session/copy.cc 0 '  assert(offset < size);'
try ring/queue/ring.h 1 '  void* p = mmap(nullptr, 1, 0, 0, -1, 0);'
try host/session/session.cc 1 '  auto& header = *reinterpret_cast<ring::SlotHeader*>(base);'
try guest/session/session.cc 1 '  auto* page = reinterpret_cast<const ring::DevicePage*>(base);'
try host/untrusted/module.cc 1 '  char* at = arena.for_driver();'
try host/untrusted/calls/copy_side.h 0 '  char* at = arena.for_driver();'
try host/untrusted/channel.cc 0 '  wait(word.futex_word());'
# Memory types and calls for which the driver has to guess, and similar ones for which it has not.
for line in '  copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;' '  return d.cuMemcpy_ptds(to, from, bytes);' \
  '  return d.cuMemcpy3DBatchAsync_v2(1, &copy, 0, stream);' '  return d.cuMemPrefetchAsync_v2(at, n, place, 0, s);'; do
  try host/untrusted/calls/copy.cc 1 "$line"
done
try host/session/session.cc 1 '  return d.cuMemcpyAsync(to, from, bytes, stream);'
try host/simgpu/api/memory/copy.cc 0 '    case CU_MEMORYTYPE_UNIFIED: return cuMemcpyAsync(to, from, bytes, stream);'
try host/untrusted/calls/copy.cc 0 '  return d.cuMemcpy3DAsync_v2(&copy, s) + d.cuMemcpyDtoD_v2(to, from, CU_MEMORYTYPE_DEVICE);'
try host/broker/region/region.cc 1 '  wait(word.futex_word());'
try guest/marshal/copy.cc 1 '  char* at = mailbox.write_only(0);'
try guest/region/region.cc 1 '#include "guest/objects/memory/arena.h"'
try guest/base/log.cc 1 '#include "guest/region/region.h"'
try guest/objects/memory/arena.cc 1 '#include "guest/session/order.h"'
try guest/session/channel.cc 1 '#include "guest/process/thread.h"'
try guest/process/process.cc 1 '#include "guest/marshal/marshal.h"'
try guest/marshal/custom.h 1 '#include "guest/calls/copy.h"'
try guest/calls/context/device.cc 1 '#include "guest/shim/shim.h"'
try guest/calls/context/device.cc 0 '#include "guest/process/thread.h"'
try ring/abi/image.h 1 '#include "guest/channel.h"'
# A mutex that clang does not check.
try guest/session/channel.h 1 '  std::mutex mutex_;'
try host/session/objects.cc 1 '  const std::lock_guard lock(mutex_);'
try host/session/objects.cc 0 '  const ring::MutexLock lock(mutex_);'
try ring/base/mutex.h 0 '  std::mutex mutex_;'
try tests/unit/slots.cc 0 '  std::mutex mutex_;'
# A busy machine can only lengthen a time, so no test may expect that only little time has passed.
try tests/loopback/strict.cc 1 '  EXPECT_LT(seconds_since(start), 1.0);'
try tests/loopback/strict.cc 0 '  EXPECT_GE(seconds_since(start), 0.5);'
try tests/loopback/strict.cc 0 'TEST_F(StrictTiming, Answers) { EXPECT_LT(seconds_since(start), 1.0); }'
try tests/unit/slots.cc 1 '  ASSERT_LE(std::chrono::steady_clock::now() - begin, 150ms) << "late";'
try tests/unit/slots.cc 0 '  EXPECT_LE(lines, 1 + seconds_since(begin)) << "one a second";'
try tests/unit/slots.cc 1 '  EXPECT_GE(lines, 100 * seconds_since(begin));'
try tests/unit/slots.cc 1 '  EXPECT_TRUE(processor_time() - before < 200ms);'
try tests/unit/slots.cc 0 '  // EXPECT_LT(seconds_since(start), 1.0);'
try tests/vm/end.sh 1 '((SECONDS - start < 5)) || fail "it was late"'
try tests/vm/end.sh 0 'while ((SECONDS < end)); do sleep 0.1; done'
# The library must not use a descriptor number that the program may have closed.
try guest/region/slot_owner.cc 1 '  const int fd = open(path, O_RDONLY | O_CLOEXEC);'
try guest/region/slot_owner.cc 0 '  const int fd = cuabi::open_file(path, O_RDONLY);'
try guest/session/channels.h 0 '  std::uint32_t open() const { return open_.load(); }'
try guest/region/sysfs.cc 1 '  DIR* folder = opendir(path.c_str());'
try guest/region/sysfs.cc 0 '  DIR* folder = cuabi::open_folder(path.c_str());'
try guest/region/vsock.cc 1 '  const int fd = socket(AF_VSOCK, SOCK_STREAM, 0);'
try guest/nvml/gpus.cc 1 '  const int fd = memfd_create("answer", MFD_CLOEXEC);'
try guest/region/devdax.cc 1 '  n = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);'
try guest/region/loopback.cc 0 '  n = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);'
# Calls that could make the broker wait for another process.
try host/base/process/listener.cc 1 '  if (recv(fd, bytes, sizeof bytes, 0) < 0) return;'
try host/base/process/listener.cc 1 '  const auto n = ::send(fd, bytes, sizeof bytes,'
try host/base/process/listener.cc 0 '  if (receive_now(fd, bytes, sizeof bytes) < 0) return;'
try host/broker/vm/vm_memory.cc 0 '  slots_[k].worker->send(words);'
try host/base/fd_message.h 0 '  return recv(socket, bytes, length, MSG_DONTWAIT);'
try host/broker/transport/doorbell_transport.cc 1 '    [[maybe_unused]] const auto n = read(bell.get(), &rings, sizeof rings);'
try host/broker/transport/doorbell_transport.cc 1 '    preadv2(bell.get(), &into, 1, -1, 0);'
try host/broker/transport/doorbell_transport.cc 0 '    bell.drain();'
try host/scheduler/worker_pages.cc 1 '  if (read(bell_.get(), &rings, sizeof rings) < 0) return;'
# Threads' own queues must not include shared memory or a header that maps it, under any name.
for file in ring/queue/ring.h guest/objects/objects.h host/untrusted/serve.cc host/session/session.h host/broker/region/region.cc \
  host/worker/start.cc host/driver/driver.h host/jail/seccomp.cc tools/ivgpu/trace/source.cc; do
  try "$file" 1 '#include <boost/lockfree/spsc_queue.hpp>'
done
for file in ring/layout/layout.h guest/region/region.h host/broker/region/region.cc tools/ivgpu/trace/source.cc; do
  try "$file" 1 '#include "boost/lockfree/stack.hpp"'
done
try host/broker/region/region.cc 1 '#include "host/simgpu/api/stream/schedule.h"'
try host/simgpu/api/stream/schedule.h 0 '#include <boost/lockfree/queue.hpp>'
try host/broker/gpu/gpus.cc 0 '#include "host/simgpu/image/device_names.h"'

# try_length FILE CODE LINES: expects that boundary-check refuses (1) a file of this many lines, with its length and a
# remedy, or accepts it (0).
try_length() {
  local tree file=$1 code=$2 lines=$3 output got
  tree=$(mktemp -d)
  mkdir -p "$tree/$(dirname "$file")" "$tree/ring/layout"
  echo '// checked' >"$tree/ring/layout/layout.h"
  yes '// a line' | head -n "$lines" >"$tree/$file"
  output=$("$boundary_check" "$tree" 2>&1)
  got=$?
  [[ $got == "$code" ]] || fail "exit code $got instead of $code for $lines lines in $file: $output"
  [[ $code == 0 || $output == *"$file: $lines lines"*"split it by meaning"* ]] || fail "$file is not named: $output"
  rm -rf "$tree"
}

for file in ring/api/driver.def guest/shim.cc host/broker/main.cc tools/demo; do
  try_length "$file" 0 400
  try_length "$file" 1 401
done
try_length tests/unit/long_test.cc 0 401

# A file that consists of one class may have 800 lines.
try_class() {
  local tree file=$1 code=$2 lines=$3 got
  tree=$(mktemp -d)
  mkdir -p "$tree/$(dirname "$file")" "$tree/ring"
  echo '// checked' >"$tree/ring/empty.h"
  { printf '%s\n' "${@:4}"; yes '// a line' | head -n "$((lines - $# + 3))"; } >"$tree/$file"
  "$boundary_check" "$tree" >/dev/null 2>&1
  got=$?
  [[ $got == "$code" ]] || fail "exit code $got instead of $code for $lines lines of a class in $file"
  rm -rf "$tree"
}
try_class guest/session/session.h 0 800 'class Session {' '};'
try_class guest/session/session.h 1 801 'class Session {' '};'
try_class guest/session/session.h 1 401 'class Session {' '};' 'class Other {' '};'
try_class guest/session/session.cc 0 800 'bool Session::opened() { return true; }' 'int Session::count(int n) { return n; }'
try_class guest/session/session.cc 1 401 'bool Session::opened() { return true; }' 'int Other::count(int n) { return n; }'

empty=$(mktemp -d)
"$boundary_check" "$empty" 2>/dev/null && fail "a tree without a file to check passed"
rmdir "$empty"
# The base folder of the host must not include folders that use it.
try host/base/fd.h 1 '#include "host/broker/daemon.h"'
try host/base/process/helper.cc 0 '#include "host/base/event_loop.h"'

# Folders that include each other, and the number of includes in each direction.
tree=$(mktemp -d)
mkdir -p "$tree"/ring "$tree"/host/broker/{vm,worker,gpu}
: >"$tree/ring/empty.h"
echo '#include "host/broker/worker/cgroup.h"' >"$tree/host/broker/vm/vm.h"
echo '#include "host/broker/gpu/gpus.h"' >"$tree/host/broker/worker/cgroup.h"
: >"$tree/host/broker/gpu/gpus.h"
"$boundary_check" "$tree" >/dev/null || fail "includes that point one way are refused"
echo '#include "host/broker/vm/vm.h"' >"$tree/host/broker/gpu/gpus.h"
output=$("$boundary_check" "$tree") && fail "a circle of folders is not refused"
for line in 'vm/vm.h:1:#include "host/broker/worker/cgroup.h"' 'worker/cgroup.h:1:#include "host/broker/gpu/gpus.h"' \
  'gpu/gpus.h:1:#include "host/broker/vm/vm.h"'; do
  [[ $output == *"host/broker/$line"* ]] || fail "of a circle, $line is not named: $output"
done
rm -rf "$tree"

# A folder of 30 files, and a folder of 31.
tree=$(mktemp -d)
mkdir -p "$tree/host/broker/vm"
for i in {1..30}; do : >"$tree/host/broker/vm/file$i.h"; done
"$boundary_check" "$tree" >/dev/null || fail "a folder of 30 files is refused"
: >"$tree/host/broker/vm/file31.cc"
output=$("$boundary_check" "$tree") && fail "a folder of 31 files is not refused"
[[ $output == *"host/broker/vm: 31 files"* ]] || fail "the folder is not named: $output"
rm -rf "$tree"

# Retired words in lines and commits that are newer than a given commit.
tree=$(mktemp -d)
mkdir -p "$tree"/{ring,docs,host/broker}
in_tree() { git -C "$tree" -c user.name=test -c user.email=test@example.invalid "$@"; }
commit() { in_tree add -A && in_tree commit -q --allow-empty -m "$1"; }
echo '// its keeper' >"$tree/ring/old.h"
in_tree init -q && commit 'an old subject whose keeper naps'
since=$(in_tree rev-parse HEAD)
commit 'ring, docs/design: keep an old line'

# try_words CODE WHAT: with $since, expects that boundary-check refuses (1) or accepts (0) the tree. WHAT is the
# reported word, or describes the accepted text.
try_words() {
  local code=$1 what=$2 output got
  output=$(WORDS_SINCE=${3:-$since} "$boundary_check" "$tree" 2>&1)
  got=$?
  [[ $got == "$code" ]] || fail "exit code $got instead of $code for '$what': $output"
  [[ $code == 0 || $output == *"$what"* ]] || fail "'$what' is not named: $output"
}
try_words 0 'a line from before'
for line in '// its keeper' 'class FdKeeper;' 'int mps_keeper_ = 0;' 'it naps for a while' 'A bell rings.' 'Wiper wiper;' \
  'int lent_bytes;' 'BrokerLine line;' 'it is closed out'; do
  echo "$line" >"$tree/host/broker/new.h"
  in_tree add -A
  try_words 1 "host/broker/new.h:1:$line"
done
echo 'the bookkeeper, snaps, silent, a doorbell, org.ivgpu.bell.0, take("bell"), a kidnapped plugin' >"$tree/host/broker/new.h"
for exempt in docs/moved.md CHANGELOG.md; do echo 'The keeper naps.' >"$tree/$exempt"; done
commit 'host/broker: add words that only look retired'
try_words 0 'words that only look retired'
echo 'The keeper naps.' >"$tree/docs/page.md"
in_tree add -A
try_words 0 'a tree without the commit' 0123456789012345678901234567890123456789
try_words 1 'docs/page.md:1:The keeper naps.'
in_tree reset -q --hard
for subject in 'no component' 'Broker: begin in capitals' 'broker: wake the keeper' "broker: $(printf 'word %.0s' {1..20})"; do
  commit "$subject"
  try_words 1 "${subject% }"
  in_tree reset -q --hard HEAD~
done
rm -rf "$tree"

exit "$status"
