// Shared functions of the module's tests in the guest (test.h).
#include <grp.h>
#include <sys/socket.h>
#include <time.h>

#include "test.h"

void fail(const char* file, int line, const char* what, const char* format, ...) {
  const int error = errno;
  va_list arguments;
  va_start(arguments, format);
  printf("    %s:%d: %s: ", file, line, what);
  vprintf(format, arguments);
  printf(" (errno: %s)\n", strerror(error));
  fflush(stdout);
  _exit(1);
}

double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

double slowness(void) {
  const char* said = getenv("IVGPU_TEST_SLOWNESS");
  const double factor = said == NULL ? 1 : atof(said);
  return factor < 1 ? 1 : factor;
}

double deadline_us(void) { return 60e6 * slowness(); }
uint32_t deadline_ms(void) { return (uint32_t)(deadline_us() / 1e3); }

void sleep_us(unsigned us) {
  const struct timespec nap = {us / 1000000, us % 1000000 * 1000L};
  nanosleep(&nap, NULL);
}

void become_user(gid_t group) {
  CHECK(setgroups(group != 0, &group) == 0 && setgid(TEST_USER) == 0 && setuid(TEST_USER) == 0, "another user");
  CHECK(geteuid() == TEST_USER && setuid(0) == -1, "still root");
}

struct Opened open_module(void) {
  struct Opened opened = {.fd = open(NODE, O_RDWR | O_CLOEXEC), .slot = IVGPU_NO_SLOT};
  CHECK(opened.fd >= 0, "open");
  CHECK(ioctl(opened.fd, IVGPU_IOC_INFO, &opened.info) == 0, "INFO");
  const char* at = mmap(NULL, IVGPU_HEADER_AREA_BYTES, PROT_READ, MAP_SHARED, opened.fd, 0);
  CHECK(at != MAP_FAILED, "the front");
  opened.header = (const struct IvgpuRegionHeader*)at;
  opened.entries = (const struct IvgpuSlotEntry*)(at + IVGPU_DIRECTORY_OFFSET);
  opened.vm_page = (const struct IvgpuVmPage*)(at + IVGPU_VM_PAGE_OFFSET);
  opened.gpus = (const struct IvgpuVmGpu*)(at + IVGPU_VM_GPUS_OFFSET);
  return opened;
}

int claim(int fd, uint32_t timeout_ms, const char* name, struct IvgpuModuleClaim* got) {
  *got = (struct IvgpuModuleClaim){.timeout_ms = timeout_ms};
  strncpy(got->name, name, sizeof got->name - 1);
  return ioctl(fd, IVGPU_IOC_CLAIM, got);
}

void map_session(struct Opened* session) {
  const off_t start = (off_t)(session->info.first_slot + session->slot * session->info.slot_bytes);
  session->at = mmap(NULL, session->info.slot_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, session->fd, start);
  CHECK(session->at != MAP_FAILED, "the slot %u", session->slot);
}

struct Opened open_session(void) {
  struct Opened session = open_module();
  struct IvgpuModuleClaim got;
  CHECK(claim(session.fd, deadline_ms(), "module_test", &got) == 0, "claim");
  session.slot = got.slot;
  session.word = got.word;
  map_session(&session);
  return session;
}

uint32_t state_of(const struct Opened* any, uint32_t slot) {
  return __atomic_load_n(&any->entries[slot].state, __ATOMIC_SEQ_CST) & 0xff;
}

double until_not(const struct Opened* any, uint32_t slot, uint32_t word) {
  const double start = now_us();
  while (__atomic_load_n(&any->entries[slot].state, __ATOMIC_SEQ_CST) == word)
    if (now_us() - start > deadline_us()) return -1;
  return now_us() - start;
}

double until_state(const struct Opened* any, uint32_t slot, uint32_t state) {
  const double start = now_us();
  while (state_of(any, slot) != state) {
    if (now_us() - start > deadline_us()) return -1;
    sleep_us(200);
  }
  return now_us() - start;
}

void all_ready(const struct Opened* any) {
  for (uint32_t k = 0; k < any->info.slot_count; ++k)
    CHECK(until_state(any, k, IVGPU_SLOT_READY) >= 0, "slot %u is %u", k, state_of(any, k));
}

uint32_t* word_at(const struct Opened* session, uint64_t offset) { return (uint32_t*)(session->at + offset); }

int wait_word(int fd, uint64_t offset, uint32_t expected, uint64_t timeout_ns) {
  struct IvgpuModuleWait wait = {.offset = offset, .timeout_ns = timeout_ns, .expected = expected};
  return ioctl(fd, IVGPU_IOC_WAIT, &wait);
}

struct Request* request_of(const struct Opened* session) {
  return (struct Request*)(session->at + REQUEST_OFFSET);
}

void ask(const struct Opened* session, enum RequestKind kind, uint64_t offset, uint32_t value, uint32_t delay_us) {
  struct Request* request = request_of(session);
  request->delay_us = delay_us;
  request->offset = offset;
  request->value = value;
  __atomic_store_n(&request->kind, kind, __ATOMIC_SEQ_CST);
  CHECK(ioctl(session->fd, IVGPU_IOC_RING, IVGPU_RING_WORKER) == 0, "ring");
}

static __thread sigjmp_buf after_signal;
static void on_signal(int signal) { siglongjmp(after_signal, signal); }

static void catch_faults(void (*handler)(int)) {
  const struct sigaction action = {.sa_handler = handler};
  sigaction(SIGBUS, &action, NULL);
  sigaction(SIGSEGV, &action, NULL);
}

int signal_of_read(const volatile char* at) {
  catch_faults(on_signal);
  const int got = sigsetjmp(after_signal, 1);
  if (got == 0) (void)*at;
  catch_faults(SIG_DFL);
  return got;
}

int signal_of_exchange(char* at, char value, char* before) {
  catch_faults(on_signal);
  const int got = sigsetjmp(after_signal, 1);
  if (got == 0) *before = __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);
  catch_faults(SIG_DFL);
  return got;
}

int shows_end(const struct Opened* any, const volatile char* at, int quiet) {
  const int got = signal_of_read(at);
  if (!quiet || !(any->info.flags & IVGPU_MODULE_WRITE_BACK)) return got == SIGBUS;
  return got == 0 && *at == 0;
}

void give(int socket, int fd) {
  char control[CMSG_SPACE(sizeof fd)] = {0};
  struct iovec data = {"x", 1};
  struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  struct cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(head), &fd, sizeof fd);
  const ssize_t sent = sendmsg(socket, &message, MSG_NOSIGNAL);
  // A non-blocking send may fail: the fuzzer's descriptor may be invalid, or the queue full.
  CHECK(sent == 1 || (fcntl(socket, F_GETFL) & O_NONBLOCK), "sendmsg");
}

int receive(int socket, int flags, int* fd) {
  char byte, control[CMSG_SPACE(sizeof *fd)];
  struct iovec data = {&byte, 1};
  struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  const ssize_t got = recvmsg(socket, &message, flags);
  if (flags & MSG_DONTWAIT && (got != 1 || CMSG_FIRSTHDR(&message) == NULL)) return 0;
  CHECK(got == 1 && CMSG_FIRSTHDR(&message) != NULL, "recvmsg");
  memcpy(fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof *fd);
  return 1;
}

void count(uint64_t* what) { __atomic_add_fetch(what, 1, __ATOMIC_SEQ_CST); }

int child(void (*body)(void*), void* argument) {
  int status = -1;
  fflush(stdout);
  const pid_t pid = fork();
  if (pid == 0) {
    body(argument);
    fflush(stdout);
    _exit(0);
  }
  CHECK(pid > 0 && waitpid(pid, &status, 0) == pid, "fork");
  return status;
}

static int less(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

double percentile(double* values, unsigned count, double share) {
  qsort(values, count, sizeof *values, less);
  return values[(unsigned)(share * (count - 1))];
}
