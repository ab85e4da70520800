// The host of a VM that tests the module: an ivshmem server that stands in for the broker and its workers, and prints
// what happens. It reads the directory only after a doorbell, so it reports a process's death only if the module has
// reported it.
//
// usage: host [--vectors N] [--slots N] [--mib N] [--wrong magic|layout|slots] SOCKET
//        host --plain [--slots N] [--mib N] FILE: for an ivshmem-plain device, with FILE as its memory
//        host --relay SOCKET SOCKET: forwards bytes in both directions
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "request.h"
#include "ring/layout/vm_page_c.h"

#define FIRST_GUEST_PEER (1 + IVGPU_MAX_SLOTS)

static unsigned vectors = 1, slots = 4;
static int plain;
static char* region;
static struct IvgpuRegionHeader* header;
static struct IvgpuSlotEntry* entries;
static struct IvgpuVmPage* vm_page;
static int memory, broker, doorbell[IVGPU_MAX_SLOTS], vector[IVGPU_MAX_SLOTS];

static void die(const char* what) {
  fprintf(stderr, "host: %s: %s\n", what, strerror(errno));
  exit(1);
}

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void ring(int fd) {
  const uint64_t one = 1;
  if (write(fd, &one, sizeof one) != sizeof one) die("a ring");
}

// ---- workers -------------------------------------------------------------------------------------------------------

static void* serve(void* argument) {
  const unsigned k = (unsigned)(uintptr_t)argument;
  char* slot = region + header->first_slot + k * header->slot_bytes;
  struct Request* request = (struct Request*)(slot + REQUEST_OFFSET);
  // QEMU makes these descriptors non-blocking.
  struct pollfd rung = {.fd = doorbell[k], .events = POLLIN};
  for (uint64_t count; poll(&rung, 1, -1) >= 0;) {
    if (read(doorbell[k], &count, sizeof count) != sizeof count) continue;
    __atomic_add_fetch(&request->rings, 1, __ATOMIC_SEQ_CST);
    const struct Request asked = *request;
    if (asked.kind == 0) continue;
    request->kind = 0;
    // Spins, so that this machine's wake-up time is not part of the guest's measurement.
    for (const double start = now_ms(); now_ms() - start < asked.delay_us / 1e3;) continue;
    if (asked.kind == REQUEST_REGION)
      header->slot_count = asked.value;
    else if (asked.kind != REQUEST_RING)
      __atomic_store_n((uint32_t*)(slot + asked.offset % IVGPU_ARENA_OFFSET), asked.value, __ATOMIC_SEQ_CST);
    if (asked.kind == REQUEST_WAKE) ring(vector[k % vectors]);
    if (asked.kind == REQUEST_RING) ring(vector[asked.value % slots % vectors]);
    __atomic_add_fetch(&request->done, 1, __ATOMIC_SEQ_CST);
  }
  return NULL;
}

// ---- the broker ----------------------------------------------------------------------------------------------------

static uint32_t known[IVGPU_MAX_SLOTS];

static void look_at(unsigned k) {
  struct IvgpuSlotEntry* entry = &entries[k];
  const uint32_t seen = __atomic_load_n(&entry->state, __ATOMIC_SEQ_CST), state = seen & 0xff;
  const uint32_t pinned = __atomic_load_n(&entry->pinned, __ATOMIC_SEQ_CST);
  if (seen != known[k] && state == IVGPU_SLOT_CLAIMED)
    printf("%.3f slot %u claimed by %u of peer %u\n", now_ms(), k, entry->owner.pid, entry->owner.peer);
  if (seen != known[k] && state == IVGPU_SLOT_RELEASED)
    printf("%.3f slot %u released by %.24s%s\n", now_ms(), k, entry->program, pinned ? ", pinned" : "");
  known[k] = seen;
  if (state != IVGPU_SLOT_RELEASED || pinned) return;
  printf("%.3f slot %u scrubbed\n", now_ms(), k);
  memset(region + header->first_slot + k * header->slot_bytes, 0, IVGPU_ARENA_OFFSET + IVGPU_HUGE_PAGE);
  memset(&entry->owner, 0, sizeof entry->owner);
  known[k] = ((seen >> 8) + 1) << 8 | IVGPU_SLOT_READY;
  __atomic_store_n(&entry->state, known[k], __ATOMIC_SEQ_CST);
}

static void look_at_all(void) {
  for (unsigned k = 0; k < slots; ++k) look_at(k);
  const uint32_t asked = __atomic_load_n(&header->gpu_questions, __ATOMIC_SEQ_CST);
  __atomic_store_n(&vm_page->answered, asked, __ATOMIC_SEQ_CST);
}

static void make_region(uint64_t bytes, const char* wrong, const char* path) {
  memory = plain ? open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : memfd_create("region", MFD_CLOEXEC);
  if (memory < 0 || ftruncate(memory, (off_t)bytes) != 0) die("the region");
  region = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  if (region == MAP_FAILED) die("the region");
  header = (struct IvgpuRegionHeader*)region;
  entries = (struct IvgpuSlotEntry*)(region + IVGPU_DIRECTORY_OFFSET);
  vm_page = (struct IvgpuVmPage*)(region + IVGPU_VM_PAGE_OFFSET);
  // Marks the end of the header area for the guest.
  ((struct IvgpuVmGpu*)(region + IVGPU_VM_GPUS_OFFSET))[IVGPU_MAX_DEVICES - 1].state = IVGPU_GPU_THERE;
  const int wrong_slots = strcmp(wrong, "slots") == 0;
  *header = (struct IvgpuRegionHeader){
      .version = IVGPU_LAYOUT_VERSION + (strcmp(wrong, "layout") == 0),
      .slot_count = slots + (wrong_slots ? 1 : 0),
      .region_bytes = bytes,
      .first_slot = IVGPU_FIRST_SLOT_OFFSET,
      .slot_bytes = (bytes - IVGPU_FIRST_SLOT_OFFSET) / slots / IVGPU_HUGE_PAGE * IVGPU_HUGE_PAGE,
      .vm = "test",
      .no_doorbell = (uint32_t)plain,
  };
  for (unsigned k = 0; k < slots; ++k) entries[k].state = known[k] = 1 << 8 | IVGPU_SLOT_READY;
  // Makes the slot look as if a program without the module had held it under an earlier kernel of this VM.
  entries[slots - 1].state = 1 << 8 | IVGPU_SLOT_CLAIMED;
  entries[slots - 1].owner.peer = plain ? 0 : FIRST_GUEST_PEER;
  strcpy(entries[slots - 1].program, "orphan");
  header->magic = IVGPU_REGION_MAGIC + (strcmp(wrong, "magic") == 0);
}

// ---- the ivshmem server --------------------------------------------------------------------------------------------

static void send_message(int client, int64_t value, int fd) {
  struct iovec data = {&value, sizeof value};
  char control[CMSG_SPACE(sizeof fd)] = {0};
  struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    struct cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
  }
  if (sendmsg(client, &message, MSG_NOSIGNAL) != sizeof value) die("a message to QEMU");
}

static void admit(int client) {
  send_message(client, 0, -1);
  send_message(client, FIRST_GUEST_PEER, -1);
  send_message(client, -1, memory);
  send_message(client, 0, broker);
  for (unsigned k = 0; k < slots; ++k) send_message(client, 1 + k, doorbell[k]);
  for (unsigned v = 0; v < vectors; ++v) send_message(client, FIRST_GUEST_PEER, vector[v]);
  printf("%.3f QEMU has connected\n", now_ms());
}

static struct sockaddr_un address(const char* path) {
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof at.sun_path) die("a socket's path is too long");
  strcpy(at.sun_path, path);
  return at;
}

static int listen_at(const char* path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const struct sockaddr_un at = address(path);
  if (fd < 0 || bind(fd, (const struct sockaddr*)&at, sizeof at) != 0 || listen(fd, 4) != 0) die(path);
  return fd;
}

// Serves guests that ring by bits in the header.
static void serve_bits(void) {
  for (;; usleep(500)) {
    uint64_t bits[IVGPU_DOORBELL_WORDS];
    for (unsigned k = 0; k < IVGPU_DOORBELL_WORDS; ++k)
      bits[k] = __atomic_exchange_n(&header->doorbell_bits[k], 0, __ATOMIC_SEQ_CST);
    for (unsigned k = 0; k < slots; ++k)
      if (bits[(1 + k) / 64] >> (1 + k) % 64 & 1) ring(doorbell[k]);
    if (bits[0] & 1) look_at_all();
  }
}

static void serve_all(int listener) {
  struct pollfd watched[2] = {{.fd = listener, .events = POLLIN}, {.fd = broker, .events = POLLIN}};
  uint64_t count;
  while (poll(watched, 2, -1) >= 0 || errno == EINTR) {
    if (watched[0].revents != 0) admit(accept(listener, NULL, NULL));
    if (watched[1].revents == 0 || read(broker, &count, sizeof count) != sizeof count) continue;
    look_at_all();
  }
}

// ---- the relay -----------------------------------------------------------------------------------------------------

static int connect_to(const char* path) {
  const struct sockaddr_un at = address(path);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, (const struct sockaddr*)&at, sizeof at) != 0) die(path);
  return fd;
}

static int relay(const char* one, const char* other) {
  struct pollfd ends[2] = {{.fd = connect_to(one), .events = POLLIN}, {.fd = connect_to(other), .events = POLLIN}};
  char text[4096];
  while (poll(ends, 2, -1) >= 0)
    for (int k = 0; k < 2; ++k) {
      if (ends[k].revents == 0) continue;
      const ssize_t n = read(ends[k].fd, text, sizeof text);
      if (n <= 0) return 0;
      // The monitor's text goes to our output, since the guest's terminal would treat it as input.
      if (write(k == 0 ? ends[1].fd : STDOUT_FILENO, text, (size_t)n) != n) return 1;
    }
  return 0;
}

int main(int argc, char** argv) {
  uint64_t mib = 256;
  const char* wrong = "";
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (argc == 4 && strcmp(argv[1], "--relay") == 0) return relay(argv[2], argv[3]);
  int k = 1;
  plain = argc > 1 && strcmp(argv[1], "--plain") == 0;
  for (k += plain; k + 1 < argc; k += 2) {
    if (strcmp(argv[k], "--vectors") == 0) vectors = (unsigned)atoi(argv[k + 1]);
    if (strcmp(argv[k], "--slots") == 0) slots = (unsigned)atoi(argv[k + 1]);
    if (strcmp(argv[k], "--mib") == 0) mib = (uint64_t)atoi(argv[k + 1]);
    if (strcmp(argv[k], "--wrong") == 0) wrong = argv[k + 1];
  }
  if (k + 1 != argc || slots == 0 || slots > IVGPU_MAX_SLOTS || vectors == 0 || vectors > IVGPU_MAX_SLOTS) {
    fprintf(stderr, "usage: host [--vectors N] [--slots N] [--mib N] [--wrong magic|layout|slots] SOCKET\n");
    return 2;
  }
  make_region(mib << 20, wrong, argv[k]);
  broker = eventfd(0, EFD_CLOEXEC);
  for (unsigned v = 0; v < vectors; ++v) vector[v] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  for (unsigned s = 0; s < slots; ++s) {
    pthread_t worker;
    doorbell[s] = eventfd(0, EFD_CLOEXEC);
    if (pthread_create(&worker, NULL, serve, (void*)(uintptr_t)s) != 0) die("a worker");
  }
  if (plain) serve_bits();
  serve_all(listen_at(argv[k]));
  return 1;
}
