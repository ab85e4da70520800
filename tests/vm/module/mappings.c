// Mappings: a descriptor can map the read-only header area and its own slot, and nothing else. Also tests kernel I/O to
// a slot's pages.
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "test.h"

static void* map(int fd, uint64_t offset, uint64_t bytes, int protection, int flags) {
  return mmap(NULL, bytes, protection, flags, fd, (off_t)offset);
}

static uint64_t start_of(const struct Opened* any, uint32_t slot) {
  return any->info.first_slot + slot * any->info.slot_bytes;
}

static void front(void) {
  struct Opened any = open_module();
  const int both = PROT_READ | PROT_WRITE;
  CHECK(any.header->magic == IVGPU_REGION_MAGIC && any.header->version == IVGPU_LAYOUT_VERSION, "header");
  CHECK_ERROR(map(any.fd, 0, IVGPU_PAGE, both, MAP_SHARED), EACCES);
  CHECK_ERROR(map(any.fd, 0, IVGPU_PAGE, PROT_READ, MAP_PRIVATE), EINVAL);
  CHECK_ERROR(map(any.fd, 0, IVGPU_PAGE, PROT_READ | PROT_EXEC, MAP_SHARED), EACCES);
  CHECK_ERROR(map(any.fd, IVGPU_VM_GPUS_OFFSET, IVGPU_PAGE, both, MAP_SHARED), EACCES);
  CHECK_ERROR(map(any.fd, IVGPU_HEADER_AREA_BYTES - IVGPU_PAGE, IVGPU_PAGE, both, MAP_SHARED), EACCES);
  CHECK_ERROR(map(any.fd, 0, IVGPU_HEADER_AREA_BYTES + IVGPU_PAGE, PROT_READ, MAP_SHARED), EINVAL);
  CHECK_ERROR(map(any.fd, IVGPU_HEADER_AREA_BYTES - IVGPU_PAGE, 2 * IVGPU_PAGE, PROT_READ, MAP_SHARED), EINVAL);
  CHECK_ERROR(map(any.fd, IVGPU_HEADER_AREA_BYTES, IVGPU_PAGE, PROT_READ, MAP_SHARED), EINVAL);
  CHECK_ERROR(mprotect((void*)(uintptr_t)any.header, IVGPU_PAGE, both), EACCES);
  CHECK_ERROR(mprotect((void*)(uintptr_t)any.header, IVGPU_PAGE, PROT_READ | PROT_EXEC), EACCES);
  CHECK_ERROR(mprotect((void*)(uintptr_t)any.gpus, IVGPU_VM_GPUS_BYTES, both), EACCES);
  const uint64_t more = IVGPU_HEADER_AREA_BYTES + IVGPU_PAGE;
  CHECK_ERROR(mremap((void*)(uintptr_t)any.header, IVGPU_HEADER_AREA_BYTES, more, MREMAP_MAYMOVE), EFAULT);
  CHECK_ERROR(mremap((void*)(uintptr_t)any.header, 0, more, MREMAP_MAYMOVE), EFAULT);
  CHECK(any.gpus[IVGPU_MAX_DEVICES - 1].state == IVGPU_GPU_THERE, "the last of the GPUs, as the host has it");
  // An older library maps only the header, for which a read-only descriptor suffices.
  CHECK(map(any.fd, 0, IVGPU_HEADER_BYTES, PROT_READ, MAP_SHARED) != MAP_FAILED, "the header alone");
  const int reader = open(NODE, O_RDONLY);
  CHECK(map(reader, 0, IVGPU_HEADER_AREA_BYTES, PROT_READ, MAP_SHARED) != MAP_FAILED, "by a reader");
}

static void own_slot_alone(void) {
  struct Opened one = open_session(), other = open_session();
  const int both = PROT_READ | PROT_WRITE;
  const uint64_t own = start_of(&one, one.slot), bytes = one.info.slot_bytes;
  memset(one.at, 1, IVGPU_PAGE);
  memset(other.at, 2, IVGPU_PAGE);
  CHECK(one.slot != other.slot && one.at[0] == 1, "two slots");
  for (uint32_t k = 0; k < one.info.slot_count; ++k)
    if (k != one.slot) CHECK_ERROR(map(one.fd, start_of(&one, k), IVGPU_PAGE, PROT_READ, MAP_SHARED), EACCES);
  CHECK_ERROR(map(one.fd, own, bytes + IVGPU_PAGE, both, MAP_SHARED), EINVAL);
  CHECK_ERROR(map(one.fd, own - IVGPU_PAGE, 2 * IVGPU_PAGE, both, MAP_SHARED), EINVAL);
  CHECK_ERROR(map(one.fd, own + bytes - IVGPU_PAGE, 2 * IVGPU_PAGE, both, MAP_SHARED), EINVAL);
  CHECK_ERROR(map(one.fd, 0, one.info.region_bytes, both, MAP_SHARED), EINVAL);
  CHECK_ERROR(map(one.fd, one.info.region_bytes, IVGPU_PAGE, both, MAP_SHARED), EINVAL);
  CHECK_ERROR(map(one.fd, 1ULL << 62, IVGPU_PAGE, both, MAP_SHARED), EINVAL);
  CHECK_ERROR(map(one.fd, own, bytes, both, MAP_PRIVATE), EINVAL);
  CHECK_ERROR(map(one.fd, own, bytes, both | PROT_EXEC, MAP_SHARED), EACCES);
  CHECK_ERROR(mremap(one.at, bytes, bytes + IVGPU_PAGE, MREMAP_MAYMOVE), EFAULT);
  CHECK_ERROR(mremap(one.at, 0, bytes, MREMAP_MAYMOVE), EFAULT);
  CHECK_ERROR(mprotect(one.at, bytes, PROT_READ | PROT_EXEC), EACCES);
  CHECK(mprotect(one.at, bytes, PROT_READ) == 0 && mprotect(one.at, bytes, both) == 0, "read-only and back");
  // After the mapping was moved and shrunk, it must still show the same page.
  char* moved = mremap(one.at, bytes, IVGPU_PAGE, MREMAP_MAYMOVE);
  CHECK(moved != MAP_FAILED && moved[0] == 1, "smaller");
  const int reader = open(NODE, O_RDONLY);
  CHECK_ERROR(map(reader, own, IVGPU_PAGE, PROT_READ, MAP_SHARED), EACCES);
}

static void after_release(void) {
  struct Opened one = open_session();
  one.at[5] = 7;
  CHECK(signal_of_read(one.at + 5) == 0, "while it is held");
  CHECK(ioctl(one.fd, IVGPU_IOC_RELEASE) == 0, "release");
  CHECK(shows_end(&one, one.at + 5, 1), "afterwards");
  CHECK(shows_end(&one, one.at + IVGPU_QUIET_BYTES - 1, 1), "afterwards, the last that a library reads");
  CHECK(shows_end(&one, one.at + IVGPU_QUIET_BYTES, 0), "afterwards, a program's memory");
  CHECK(shows_end(&one, one.at + one.info.slot_bytes - 1, 0), "afterwards, never touched");
  CHECK(signal_of_read((const char*)one.header) == 0, "the header stays");
}

// The descriptor gets the same slot again. An earlier mapping must not show the slot's new contents, whether the
// mapping was accessed or not.
static void claimed_again(void) {
  struct Opened one = open_session();
  const struct Opened before = one;
  struct IvgpuModuleClaim got;
  const int quiet = (one.info.flags & IVGPU_MODULE_WRITE_BACK) != 0;
  for (uint32_t k = 1; k < one.info.slot_count; ++k) open_session();
  CHECK(ioctl(one.fd, IVGPU_IOC_RELEASE) == 0, "release");
  if (quiet) before.at[5] = 1;
  CHECK(claim(one.fd, deadline_ms(), "", &got) == 0 && got.slot == before.slot, "the same slot");
  map_session(&one);
  memset(one.at, 7, 2 * IVGPU_PAGE);
  CHECK(shows_end(&one, before.at, 0) || (quiet && before.at[0] == 0), "a page that was touched");
  CHECK(shows_end(&one, before.at + IVGPU_PAGE, 1), "a page that was not");
  if (quiet) before.at[IVGPU_PAGE] = 1;
  CHECK(one.at[5] == 7 && one.at[IVGPU_PAGE] == 7, "what is written to the old mapping is lost");
}

// Zero pages are allocated and freed; the script checks the kernel's log at the end.
#define ZEROS (64 * IVGPU_PAGE)
struct Zeros {
  char* at;
  double until;
};

static void* touches_zeros(void* argument) {
  const struct Zeros* zeros = argument;
  while (now_us() < zeros->until)
    for (unsigned k = 0; k < ZEROS; k += IVGPU_PAGE) *(volatile char*)(zeros->at + k) = 1;
  return NULL;
}

static void* drops_zeros(void* argument) {
  const struct Zeros* zeros = argument;
  while (now_us() < zeros->until) madvise(zeros->at, ZEROS, MADV_DONTNEED);
  return NULL;
}

static void zeros_dropped(void) {
  struct Opened one = open_session();
  if (!(one.info.flags & IVGPU_MODULE_WRITE_BACK)) return;
  CHECK(ioctl(one.fd, IVGPU_IOC_RELEASE) == 0, "release");
  struct Zeros zeros = {one.at, now_us() + 1.5e6};
  void* (*const ways[4])(void*) = {touches_zeros, touches_zeros, drops_zeros, drops_zeros};
  pthread_t threads[4];
  for (unsigned k = 0; k < 4; ++k) CHECK(pthread_create(&threads[k], NULL, ways[k], &zeros) == 0, "thread");
  for (unsigned k = 0; k < 4; ++k) pthread_join(threads[k], NULL);
  CHECK(madvise(zeros.at, ZEROS, MADV_DONTNEED) == 0 && shows_end(&one, zeros.at, 1), "zeros again");
}

static void not_inherited(void* argument) {
  struct Opened* parent = argument;
  CHECK(signal_of_read(parent->at) == SIGSEGV, "a child has the mapping");
  struct IvgpuModuleClaim got;
  CHECK_ERROR(claim(parent->fd, 0, "", &got), EBUSY);
  for (uint32_t k = 0; k < parent->info.slot_count; ++k)
    if (k != parent->slot) CHECK_ERROR(map(parent->fd, start_of(parent, k), IVGPU_PAGE, PROT_READ, MAP_SHARED), EACCES);
  const char* same = map(parent->fd, start_of(parent, parent->slot), IVGPU_PAGE, PROT_READ, MAP_SHARED);
  CHECK(same != MAP_FAILED && same[0] == 3, "the parent's slot by its descriptor");
}

static void inherited(void* argument) {
  struct Opened* parent = argument;
  CHECK(parent->at[0] == 3, "the parent's page");
  // The parent's session ends, and another process gets its slot.
  CHECK(ioctl(parent->fd, IVGPU_IOC_RELEASE) == 0, "release");
  open_session();
  CHECK(shows_end(parent, parent->at, 1), "a slot that was given back");
  if (parent->info.flags & IVGPU_MODULE_WRITE_BACK) parent->at[0] = 5;
}

static void forked(void) {
  struct Opened one = open_session();
  memset(one.at, 3, IVGPU_PAGE);
  const struct Opened inheritable = one;
  map_session(&one);
  CHECK(madvise(one.at, one.info.slot_bytes, MADV_DONTFORK) == 0, "MADV_DONTFORK");
  CHECK(child(not_inherited, &one) == 0, "as asked for");
  one = inheritable;
  CHECK(child(inherited, &one) == 0, "by default");
  CHECK(shows_end(&one, one.at, 1), "the parent's, too, and nothing of its child's");
}

// A passed descriptor accesses its own slot, not the receiver's slot.
static void passed(void) {
  int ends[2], fd;
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
  fflush(stdout);
  if (fork() == 0) {
    struct Opened giver = open_session();
    giver.at[0] = 9;
    give(ends[1], giver.fd);
    char byte;
    (void)!read(ends[1], &byte, 1);
    _exit(0);
  }
  receive(ends[0], 0, &fd);
  struct Opened own = open_session();
  struct IvgpuModuleInfo info;
  CHECK(ioctl(fd, IVGPU_IOC_INFO, &info) == 0 && info.slot != own.slot, "its slot");
  const char* its = map(fd, start_of(&own, info.slot), IVGPU_PAGE, PROT_READ, MAP_SHARED);
  CHECK(its != MAP_FAILED && its[0] == 9, "the giver's slot");
  CHECK_ERROR(map(fd, start_of(&own, own.slot), IVGPU_PAGE, PROT_READ, MAP_SHARED), EACCES);
  CHECK_ERROR(map(own.fd, start_of(&own, info.slot), IVGPU_PAGE, PROT_READ, MAP_SHARED), EACCES);
  CHECK(write(ends[0], "x", 1) == 1, "done");
  // The sender exits, and its slot ends although this process holds its descriptor.
  CHECK(wait(NULL) > 0 && shows_end(&own, its, 1), "the giver has ended");
  CHECK_ERROR(wait_word(fd, 0, 0, 0), ENODEV);
}

// ---- faults while their slot ends ----------------------------------------------------------------------------------

// One slot alternates between two descriptors. Other processes keep mappings made through the first descriptor, and
// continually fault in their pages. They must never read the bytes of the second descriptor's session, nor write to its
// memory.
#define RACE_PAGES 16
#define RACE_SCRUBBED 9  // the first RACE_PAGES that the test's host clears between two claims
struct Race {
  double until, deadline;
  uint64_t touched, ended, own, others;
};
static struct Race* race;

static char* mark(char* at, unsigned k) { return at + k * (uint64_t)IVGPU_HUGE_PAGE + 3 * IVGPU_PAGE; }
// Runs for a while, and until races have happened.
static int was_race(void) { return race->own > 5 && race->others > 5 && race->touched > 20 && race->ended > 5; }
static int races(void) { return now_us() < (was_race() ? race->until : race->deadline); }

static void touch_until_ended(char* at) {
  for (unsigned n = 0; n < 100 * RACE_PAGES && races(); ++n) {
    char before;
    if (n % RACE_PAGES == 0) madvise(at, RACE_PAGES * IVGPU_HUGE_PAGE, MADV_DONTNEED);
    const int signal = signal_of_exchange(mark(at, n % RACE_PAGES), 'o', &before);
    if (signal != 0) {
      CHECK(signal == SIGBUS, "signal %d", signal);
      count(&race->ended);
      return;
    }
    CHECK(before == 0 || before == 'o', "page %u has the other's %d", n % RACE_PAGES, before);
    count(&race->touched);
  }
}

static void* touches(void* descriptor) {
  const int fd = *(int*)descriptor;
  while (races()) {
    struct IvgpuModuleInfo now;
    CHECK(ioctl(fd, IVGPU_IOC_INFO, &now) == 0, "INFO");
    if (now.slot == IVGPU_NO_SLOT) continue;
    char* at = map(fd, now.first_slot + now.slot * now.slot_bytes, RACE_PAGES * IVGPU_HUGE_PAGE, PROT_READ | PROT_WRITE,
                   MAP_SHARED);
    if (at == MAP_FAILED) continue;  // the slot has ended meanwhile
    touch_until_ended(at);
    munmap(at, RACE_PAGES * IVGPU_HUGE_PAGE);
  }
  return NULL;
}

static void owner(int socket) {
  struct Opened own = open_module();
  struct IvgpuModuleClaim got;
  pthread_t thread;
  give(socket, own.fd);
  CHECK(pthread_create(&thread, NULL, touches, &own.fd) == 0, "thread");
  for (unsigned n = 0; races(); ++n) {
    if (claim(own.fd, 20, "owner", &got) != 0) continue;
    sleep_us(200 + n % 8 * 400);
    CHECK(ioctl(own.fd, IVGPU_IOC_RELEASE) == 0, "release");
    count(&race->own);
  }
  pthread_join(thread, NULL);
}

static void other(void) {
  struct Opened own = open_module();
  struct IvgpuModuleClaim got;
  while (races()) {
    if (claim(own.fd, 20, "other", &got) != 0) continue;
    own.slot = got.slot;
    map_session(&own);
    for (unsigned k = 0; k < RACE_PAGES; ++k) {
      const char before = __atomic_exchange_n(mark(own.at, k), 'x', __ATOMIC_SEQ_CST);
      CHECK(k >= RACE_SCRUBBED || before == 0, "page %u has the owner's %d", k, before);
    }
    sleep_us(1000);
    for (unsigned k = 0; k < RACE_PAGES; ++k) {
      const char after = __atomic_exchange_n(mark(own.at, k), 0, __ATOMIC_SEQ_CST);
      CHECK(after == 'x', "page %u became %d", k, after);
    }
    munmap(own.at, own.info.slot_bytes);
    CHECK(ioctl(own.fd, IVGPU_IOC_RELEASE) == 0, "release");
    count(&race->others);
  }
}

static void raced(void) {
  int ends[2], fd;
  race = mmap(NULL, IVGPU_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(race != MAP_FAILED && socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "a race");
  for (unsigned k = open_module().info.slot_count; k > 1; --k) open_session();
  race->until = now_us() + 1.5e6;
  race->deadline = now_us() + deadline_us();
  fflush(stdout);
  for (unsigned k = 0; k < 3; ++k)
    if (fork() == 0) {
      if (k == 0 && receive(ends[0], 0, &fd)) touches(&fd);
      if (k == 1) owner(ends[1]);
      if (k == 2) other();
      fflush(stdout);
      _exit(0);
    }
  for (int status; wait(&status) > 0;) CHECK(status == 0, "one of the three ended with %x", (unsigned)status);
  printf("    %u claims by the owner and %u by another, %u pages touched meanwhile, %u mappings at their end\n",
         (unsigned)race->own, (unsigned)race->others, (unsigned)race->touched, (unsigned)race->ended);
  CHECK(was_race(), "no race");
}

static long minor_faults(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

static void large_entries(void) {
  struct Opened one = open_session();
  const long before = minor_faults();
  const double start = now_us();
  for (uint64_t at = 0; at < one.info.slot_bytes; at += IVGPU_PAGE) one.at[at] = 1;
  const long faults = minor_faults() - before, wanted = (long)(one.info.slot_bytes / IVGPU_HUGE_PAGE);
  printf("    %llu MiB touched in %.1f ms with %ld faults\n", (unsigned long long)one.info.slot_bytes >> 20,
         (now_us() - start) / 1e3, faults);
  if (one.info.flags & IVGPU_MODULE_WRITE_BACK) CHECK(faults <= 2 * wanted + 8, "%ld for %ld entries", faults, wanted);
}

// ---- I/O to the pages ----------------------------------------------------------------------------------------------

static void direct_io(void) {
  struct Opened one = open_session();
  char *from = one.at + IVGPU_ARENA_OFFSET, *to = from + (1 << 20);
  const int disk = open("/dev/ram0", O_RDWR | O_DIRECT);
  CHECK(disk >= 0, "the disk");
  const size_t bytes = 256 << 10;
  for (size_t k = 0; k < bytes; ++k) from[k] = (char)(k * 7 + k / 4096);
  if (!(one.info.flags & IVGPU_MODULE_WRITE_BACK)) {
    CHECK_ERROR(pwrite(disk, from, bytes, 0), EFAULT);
    return;
  }
  CHECK(pwrite(disk, from, bytes, 0) == (ssize_t)bytes, "from the slot");
  CHECK(pread(disk, to, bytes, 0) == (ssize_t)bytes && memcmp(from, to, bytes) == 0, "to the slot");
}

static void other_io(void) {
  struct Opened one = open_session();
  char *from = one.at + IVGPU_ARENA_OFFSET, back[64];
  int pipes[2];
  const int has_pages = (one.info.flags & IVGPU_MODULE_WRITE_BACK) != 0;
  memset(from, 0x5a, 64);
  struct iovec slot = {from, 64}, here = {back, 64};
  CHECK(pipe(pipes) == 0, "pipe");
  CHECK(vmsplice(pipes[1], &slot, 1, 0) == (has_pages ? 64 : -1), "vmsplice");
  if (has_pages) CHECK(read(pipes[0], back, 64) == 64 && memcmp(from, back, 64) == 0, "through a pipe");
  CHECK(process_vm_readv(getpid(), &here, 1, &slot, 1, 0) == (has_pages ? 64 : -1), "process_vm_readv");
  CHECK(write(pipes[1], from, 64) == 64 && read(pipes[0], from + 64, 64) == 64, "copies");
  CHECK(memcmp(from, from + 64, 64) == 0, "copied");
}

const struct Case mapping_cases[] = {{"front", front},
                                     {"own_slot_alone", own_slot_alone},
                                     {"after_release", after_release},
                                     {"claimed_again", claimed_again},
                                     {"zeros_dropped", zeros_dropped},
                                     {"forked", forked},
                                     {"passed", passed},
                                     {"raced", raced},
                                     {"large_entries", large_entries},
                                     {"direct_io", direct_io},
                                     {"other_io", other_io},
                                     {NULL, NULL}};
