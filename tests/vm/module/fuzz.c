// A fuzzer of the module. A few processes of an ordinary user (test.h) make random calls on /dev/ivgpu0 and its
// mappings, and pass their descriptors to each other. Half of the calls are valid or nearly valid. The other half have
// arbitrary bytes in their structures and arbitrary numbers as arguments; some use numbers of the module's kind that no
// call has. A quarter of these are made as a 32-bit program makes them, if the kernel supports that. Mistakes show in
// the kernel's log, or at the end: every slot must be free again, and each kind of call must have been made.
// usage: module_fuzz [--seed N] [--seconds N] [--processes N]
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "test.h"

#define DESCRIPTORS 6
#define MAPPINGS 8

static int descriptors[DESCRIPTORS];
static struct {
  char* at;
  uint64_t bytes;
} mappings[MAPPINGS];
static struct IvgpuModuleInfo info;
static int pages[2];  // a pipe that receives pages of slots
static int post[2];   // a socket pair that passes descriptors between processes
// Totals of all processes: calls, random ioctls, unknown ioctls, calls of a 32-bit program, received descriptors.
static struct { uint64_t calls, arbitrary, unknown, narrow, received; } * made;
static int serves_narrow;  // whether the kernel serves 32-bit programs

static __thread uint64_t state;
static uint64_t any(void) {  // xorshift64*
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return state * 0x2545f4914f6cdd1dULL;
}
static uint64_t below(uint64_t n) { return any() % n; }

// Mostly a valid or nearly valid offset.
static uint64_t offset(void) {
  const uint64_t slot = info.first_slot + below(info.slot_count + 1) * info.slot_bytes;
  switch (below(8)) {
    case 0: return any();
    case 1: return below(9) * IVGPU_PAGE;  // the header area and the bytes behind it
    case 2: return slot + below(info.slot_bytes);
    case 3: return slot - IVGPU_PAGE;
    case 4: return slot + below(9) * IVGPU_HUGE_PAGE;
    default: return slot;
  }
}

static uint64_t length(void) {
  const uint64_t some[] = {IVGPU_PAGE,       2 * IVGPU_PAGE,      3 * IVGPU_PAGE,  IVGPU_HEADER_AREA_BYTES,
                           IVGPU_HUGE_PAGE,  3 * IVGPU_HUGE_PAGE, info.slot_bytes, info.slot_bytes + IVGPU_PAGE,
                           info.region_bytes};
  return below(12) == 0 ? any() : some[below(sizeof some / sizeof *some)];
}

static void map_something(int fd) {
  const unsigned k = (unsigned)below(MAPPINGS);
  const int protections[] = {PROT_READ, PROT_READ | PROT_WRITE, PROT_READ | PROT_WRITE, PROT_NONE,
                             PROT_READ | PROT_EXEC};
  const int flags = below(10) == 0 ? MAP_PRIVATE : below(10) == 0 ? MAP_SHARED | MAP_POPULATE : MAP_SHARED;
  uint64_t bytes = length(), from = offset();
  if (below(2) == 0) {
    // An offset within the descriptor's own slot, if the descriptor has one.
    struct IvgpuModuleInfo now;
    if (ioctl(fd, IVGPU_IOC_INFO, &now) == 0 && now.slot < now.slot_count) {
      from = now.first_slot + now.slot * now.slot_bytes;
      bytes = now.slot_bytes;
    }
  }
  if (mappings[k].at != NULL) munmap(mappings[k].at, mappings[k].bytes);
  mappings[k].at = NULL;
  char* at = mmap(NULL, bytes, protections[below(5)], flags, fd, (off_t)from);
  if (at == MAP_FAILED) return;
  mappings[k].at = at;
  mappings[k].bytes = bytes;
}

static void use_mapping(void) {
  const unsigned k = (unsigned)below(MAPPINGS);
  char* const at = mappings[k].at;
  const uint64_t bytes = mappings[k].bytes;
  if (at == NULL || bytes == 0) return;
  const uint64_t part = below(bytes) & ~4095ULL;
  struct iovec piece = {at + part, below(3) * IVGPU_PAGE + 64}, here = {(char[64]){0}, 64};
  const int advice[] = {MADV_DONTNEED,
                        MADV_DOFORK,
                        MADV_DONTFORK,
                        MADV_COLD,
                        MADV_PAGEOUT,
                        MADV_HUGEPAGE,
                        MADV_NOHUGEPAGE,
                        MADV_REMOVE,
                        MADV_POPULATE_READ,
                        MADV_POPULATE_WRITE,
                        MADV_WILLNEED,
                        MADV_FREE,
                        25 /* COLLAPSE */};
  switch (below(9)) {
    case 0: madvise(at + part, length(), advice[below(sizeof advice / sizeof *advice)]); break;
    case 1: mprotect(at + part, length(), (int)below(8)); break;
    case 2: mlock(at + part, IVGPU_HUGE_PAGE); break;
    case 3: (void)!vmsplice(pages[1], &piece, 1, SPLICE_F_NONBLOCK); break;
    case 4: process_vm_readv(getpid(), &here, 1, &piece, 1, 0); break;
    case 5: (void)!write(pages[1], at + part, 64); break;
    case 6: msync(at + part, IVGPU_PAGE, MS_SYNC); break;
    case 7: {
      const uint64_t size = below(2) ? bytes : length();
      char* moved = mremap(at, bytes, size, below(2) ? MREMAP_MAYMOVE : 0);
      if (moved == MAP_FAILED) break;
      mappings[k].at = moved;
      mappings[k].bytes = size;
      break;
    }
    default: signal_of_read(at + part);
  }
}

static void fill(void* at, size_t bytes) {
  for (size_t k = 0; k < bytes; ++k) ((char*)at)[k] = (char)any();
}

// Mostly a small number, as valid numbers are, or an extreme of some type.
static uint64_t any_number(void) {
  const uint64_t ends[] = {0, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, 1ULL << 63, ~0ULL};
  switch (below(4)) {
    case 0: return any();
    case 1: return ends[below(sizeof ends / sizeof *ends)] + below(3) - 1;
    default: return below(300);
  }
}

// A request of the module's type: one of its numbers or some others, with any direction and size.
static unsigned any_request(void) {
  const unsigned numbers[] = {(unsigned)IVGPU_IOC_INFO, (unsigned)IVGPU_IOC_CLAIM,   (unsigned)IVGPU_IOC_RELEASE,
                              (unsigned)IVGPU_IOC_RING, (unsigned)IVGPU_IOC_EVENTFD, (unsigned)IVGPU_IOC_WAIT};
  const unsigned known = sizeof numbers / sizeof *numbers, number = (unsigned)(below(4) ? below(known + 3) : any());
  const unsigned size = (unsigned)(below(2) ? below(128) : any());
  if (below(2)) return numbers[below(known)];
  count(&made->unknown);
  return _IOC((unsigned)below(4), 0xbd, number & 0xff, size & _IOC_SIZEMASK);
}

// Makes a call as a 32-bit program does: by interrupt 0x80, with the numbers of 32-bit calls.
static long narrow_call(long number, uint32_t first, uint32_t second, uint32_t third) {
  long result = number;
  __asm__ volatile("int $0x80"
                   : "+a"(result)
                   : "b"(first), "c"(second), "d"(third)
                   : "memory", "r8", "r9", "r10", "r11");
  return result;
}
static void narrow_ioctl(int fd, unsigned request, uint64_t argument) {
  enum { narrow_nr_ioctl = 54 };
  narrow_call(narrow_nr_ioctl, (uint32_t)fd, request, (uint32_t)argument);
  count(&made->narrow);
}
// A kernel without support for interrupt 0x80 kills the process.
static int are_narrow_served(void) {
  enum { narrow_nr_getpid = 20 };
  int status = 0;
  const pid_t pid = fork();
  if (pid == 0) _exit(narrow_call(narrow_nr_getpid, 0, 0, 0) == getpid() ? 0 : 1);
  return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

// A recurring signal ends any sleep, whatever the sleep's time limit.
static void call_with_anything(int fd) {
  enum { most = 1 << 14 };  // the maximum in a request's number
  static char* bytes;       // below 4 GiB, for 32-bit pointers
  if (bytes == NULL) bytes = mmap(NULL, most, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  if (bytes == MAP_FAILED) _exit(1);
  const unsigned request = any_request();
  const int by_value = _IOC_DIR(request) == _IOC_NONE || below(20) == 0;
  fill(bytes, below(64) ? 64 : most);
  if (below(3) == 0) memset(bytes + below(40), 0, 24);  // valid `reserved` and `name` fields
  ualarm(2000, 2000);
  const uint64_t argument = by_value ? any_number() : (uint64_t)(uintptr_t)bytes;
  if (serves_narrow && below(4) == 0)
    narrow_ioctl(fd, request, argument);
  else
    ioctl(fd, request, argument);
  ualarm(0, 0);
  count(&made->arbitrary);
}

static void call_sensibly(int fd) {
  struct IvgpuModuleClaim claim = {.timeout_ms = (uint32_t)below(4)};
  struct IvgpuModuleWait wait = {.offset = below(2) ? below(64) * 4 : any(),
                                 .timeout_ns = below(8)   ? below(2000000)
                                               : below(2) ? 0
                                                          : 1ULL << 60,
                                 .expected = (uint32_t)below(2)};
  struct IvgpuModuleInfo got;
  uint64_t count;
  struct pollfd poller = {.fd = fd, .events = POLLIN};
  switch (below(12)) {
    case 0:
    case 1:
    case 2: ioctl(fd, IVGPU_IOC_CLAIM, below(30) ? (void*)&claim : (void*)any()); break;
    case 3: ioctl(fd, IVGPU_IOC_RELEASE); break;
    case 4: ioctl(fd, IVGPU_IOC_RING, below(4)); break;
    case 5: ioctl(fd, IVGPU_IOC_INFO, below(10) ? (void*)&got : (void*)any()); break;
    case 6: ioctl(fd, IVGPU_IOC_EVENTFD, below(3) ? eventfd(0, EFD_NONBLOCK) : (int)below(20) - 3); break;
    case 7:
    case 8:
      if (wait.timeout_ns > 1ULL << 40) ualarm(1000, 0);
      ioctl(fd, IVGPU_IOC_WAIT, below(30) ? (void*)&wait : (void*)any());
      break;
    case 9: (void)!read(fd, &count, below(10)); break;
    case 10: poll(&poller, 1, (int)below(3)); break;
    default: ioctl(fd, (unsigned)any(), any());
  }
}

static void call_module(int fd) { below(2) ? call_sensibly(fd) : call_with_anything(fd); }

static void send_or_receive(int* fd) {
  int received;
  if (below(2)) {
    give(post[0], *fd);
  } else if (receive(post[1], MSG_DONTWAIT, &received)) {
    close(*fd);
    *fd = received;
    count(&made->received);
  }
}

static void change_descriptors(void) {
  int* fd = &descriptors[below(DESCRIPTORS)];
  char drain[8192];
  switch (below(8)) {
    case 0:
      close(*fd);
      *fd = open(NODE, below(5) ? O_RDWR | O_NONBLOCK : O_RDONLY | O_NONBLOCK);
      break;
    case 1:
      close(*fd);
      *fd = dup(descriptors[below(DESCRIPTORS)]);
      break;
    case 2: (void)!read(pages[0], drain, sizeof drain); break;
    case 3: close((int)(20 + below(40))); break;  // earlier eventfds
    case 4: {
      const pid_t pid = fork();
      if (pid == 0) {
        for (unsigned k = 0; k < 20; ++k) below(2) ? use_mapping() : call_module(descriptors[below(DESCRIPTORS)]);
        _exit(0);
      }
      if (pid > 0) below(2) ? kill(pid, SIGKILL) : 0, waitpid(pid, NULL, 0);
      break;
    }
    default: send_or_receive(fd);
  }
}

static void interrupted(int signal) { (void)signal; }

static void run(uint64_t seed, double until) {
  const struct sigaction action = {.sa_handler = interrupted};
  state = seed;
  become_user(TEST_GROUP);
  sigaction(SIGALRM, &action, NULL);
  signal(SIGUSR1, SIG_IGN);
  if (pipe2(pages, O_NONBLOCK) != 0) _exit(1);
  for (unsigned k = 0; k < DESCRIPTORS; ++k) descriptors[k] = open(NODE, O_RDWR | O_NONBLOCK);
  for (; now_us() < until; count(&made->calls)) {
    const uint64_t what = below(10);
    const int fd = descriptors[below(DESCRIPTORS)];
    if (what == 0)
      change_descriptors();
    else if (what < 3)
      map_something(fd);
    else if (what < 6)
      use_mapping();
    else
      call_module(fd);
  }
}

__attribute__((noreturn)) static void live(uint64_t seed, double until) {
  for (uint64_t life = 0; now_us() < until; ++life) {
    const pid_t pid = fork();
    if (pid == 0) {
      run(seed + life + 1, until);
      _exit(0);
    }
    waitpid(pid, NULL, 0);
  }
  _exit(0);
}

// Makes the kernel log the stacks of blocked processes.
static void tell_blocked(void) {
  const int fd = open("/proc/sysrq-trigger", O_WRONLY);
  if (fd >= 0 && write(fd, "w", 1) == 1 && write(fd, "l", 1) == 1) close(fd);
}

int main(int argc, char** argv) {
  uint64_t seed = 1, seconds = 5, processes = 4;
  for (int k = 1; k + 1 < argc; k += 2) {
    const uint64_t value = strtoull(argv[k + 1], NULL, 0);
    if (strcmp(argv[k], "--seed") == 0) seed = value;
    if (strcmp(argv[k], "--seconds") == 0) seconds = value;
    if (strcmp(argv[k], "--processes") == 0) processes = value;
  }
  serves_narrow = are_narrow_served();
  struct Opened watcher = open_module();
  info = watcher.info;
  made = mmap(NULL, IVGPU_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(made != MAP_FAILED && socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, post) == 0, "what they share");
  const double until = now_us() + (double)seconds * 1e6;
  pid_t groups[64];
  if (processes > 64) processes = 64;
  // Restarts a process that a random call ended, for example by a mapping over its own code.
  for (uint64_t k = 0; k < processes; ++k) {
    groups[k] = fork();
    if (groups[k] == 0) {
      setpgid(0, 0);
      live(seed * 1000003 + k * 1009, until);
    }
    setpgid(groups[k], groups[k]);
  }
  while (now_us() < until) sleep_us(10000);
  // Some processes are asleep at this time. A process that SIGKILL does not end hangs in the kernel.
  for (uint64_t k = 0; k < processes; ++k) kill(-groups[k], SIGKILL);
  const double patience = now_us() + deadline_us();
  for (uint64_t k = 0; k < processes; ++k)
    while (kill(-groups[k], 0) == 0) {
      while (waitpid(-1, NULL, WNOHANG) > 0) continue;
      if (now_us() > patience) tell_blocked();
      CHECK(now_us() <= patience, "processes hang");
      sleep_us(1000);
    }
  close(post[0]);
  close(post[1]);
  printf(
      "fuzz: seed %llu, %llu calls in %llu s, %llu with anything, %llu of them unknown, %llu by 32 bits, "
      "%llu descriptors passed\n",
      (unsigned long long)seed, (unsigned long long)made->calls, (unsigned long long)seconds,
      (unsigned long long)made->arbitrary, (unsigned long long)made->unknown, (unsigned long long)made->narrow,
      (unsigned long long)made->received);
  CHECK(made->calls > 100 && made->arbitrary > 0 && made->unknown > 0 && made->received > 0, "it did too little");
  CHECK(made->narrow > 0 || !serves_narrow, "no call of 32 bits");
  all_ready(&watcher);
  return 0;
}
