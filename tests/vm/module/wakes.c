// Sleeping and waking by WAIT, read, poll and eventfd, and every other way in which a sleep can end.
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

#include "test.h"

#define WORD (IVGPU_FIRST_CHANNEL + 320)  // guest_asleep of channel 0
#define MS 1000000ULL

static void times(const char* what, double* us, unsigned count) {
  const double middle = percentile(us, count, .5);
  printf("    %s: p50 %.0f us, p99 %.0f us\n", what, middle, percentile(us, count, .99));
}

static int wakes(const struct Opened* one) {
  if (one->info.flags & IVGPU_MODULE_WAKES) return 1;
  printf("    nobody wakes this VM's programs\n");
  return 0;
}

static void at_once(void) {
  struct Opened one = open_session();
  *word_at(&one, WORD) = 5;
  CHECK_ERROR(wait_word(one.fd, WORD, 4, IVGPU_FOREVER), EAGAIN);
  CHECK_ERROR(wait_word(one.fd, WORD, 5, 0), ETIMEDOUT);
  CHECK_ERROR(wait_word(one.fd, WORD + 1, 5, 0), EINVAL);
  CHECK_ERROR(wait_word(one.fd, IVGPU_ARENA_OFFSET, 0, 0), EINVAL);
  CHECK_ERROR(wait_word(one.fd, ~3ULL, 0, 0), EINVAL);
  CHECK_ERROR(wait_word(one.fd, one.info.slot_bytes, 0, 0), EINVAL);
  struct IvgpuModuleWait bad = {.offset = WORD, .expected = 4, .reserved = 1};
  CHECK_ERROR(ioctl(one.fd, IVGPU_IOC_WAIT, &bad), EINVAL);
  CHECK_ERROR(ioctl(one.fd, IVGPU_IOC_WAIT, 8), EFAULT);
  CHECK(wait_word(one.fd, IVGPU_ARENA_OFFSET - 4, 1, 0) == -1 && errno == EAGAIN, "the last word");
}

static void time_limit(void) {
  struct Opened one = open_session();
  double worst = 0;
  *word_at(&one, WORD) = 1;
  for (unsigned k = 0; k < 5; ++k) {
    const double start = now_us();
    CHECK_ERROR(wait_word(one.fd, WORD, 1, 20 * MS), ETIMEDOUT);
    const double us = now_us() - start;
    CHECK(us >= 20e3, "%.0f us", us);
    if (us > worst) worst = us;
  }
  printf("    20 ms took %.1f ms at most\n", worst / 1e3);
}

// The time from ringing the host until the sleeping thread runs: the host wakes, changes the word, and rings back.
static double round_trip(const struct Opened* one, unsigned delay_us) {
  *word_at(one, WORD) = 1;
  const double start = now_us();
  ask(one, REQUEST_WAKE, WORD, 0, delay_us);
  const int result = wait_word(one->fd, WORD, 1, deadline_ms() * MS);
  CHECK(result == 0 || errno == EAGAIN, "not woken: word %u", *word_at(one, WORD));
  CHECK(*word_at(one, WORD) == 0, "the word");
  const double us = now_us() - start;
  // Waits until the worker has counted the request.
  while (__atomic_load_n(&request_of(one)->kind, __ATOMIC_SEQ_CST) != 0) continue;
  return us;
}

static void woken(void) {
  struct Opened one = open_session();
  double us[300];
  if (!wakes(&one)) return;
  // Under TCG the worker may answer before the guest sleeps.
  for (unsigned k = 0; k < 300; ++k) us[k] = round_trip(&one, 0);
  times("a ring there and the word back, at once", us, 300);
  for (unsigned k = 0; k < 300; ++k) us[k] = round_trip(&one, 200) - 200;
  times("a ring there and a wake-up back, 200 us of sleep taken away", us, 300);
  for (unsigned k = 0; k < 50; ++k) us[k] = round_trip(&one, 3000) - 3000;
  times("the same with 3 ms of sleep", us, 50);
}

// Without an interrupt, or with an interrupt for another slot, the thread keeps sleeping, whatever its word contains.
static void not_meant(void) {
  struct Opened one = open_session();
  *word_at(&one, WORD) = 1;
  ask(&one, REQUEST_RING, 0, one.slot, 5000);
  CHECK_ERROR(wait_word(one.fd, WORD, 1, 30 * MS), ETIMEDOUT);
  ask(&one, REQUEST_RING, 0, (one.slot + 1) % one.info.slot_count, 5000);
  CHECK_ERROR(wait_word(one.fd, WORD, 1, 30 * MS), ETIMEDOUT);
  if (!wakes(&one)) return;
  // A change without an interrupt wakes no thread. On a busy machine the change may precede the sleep; the next attempt
  // delays it more.
  for (unsigned delay_us = 5000;; delay_us *= 2) {
    const uint32_t done = __atomic_load_n(&request_of(&one)->done, __ATOMIC_SEQ_CST);
    *word_at(&one, WORD) = 1;
    ask(&one, REQUEST_POKE, WORD, 0, delay_us);
    const int result = wait_word(one.fd, WORD, 1, delay_us * 12000ULL), error = errno;
    while (__atomic_load_n(&request_of(&one)->done, __ATOMIC_SEQ_CST) == done) continue;
    if (result == -1 && error == ETIMEDOUT) break;
    CHECK(result == -1 && error == EAGAIN && delay_us < 5000000, "unrung: %d, %s", result, strerror(error));
  }
}

static void interrupted_by(int signal) { (void)signal; }

static void signalled(void) {
  struct Opened one = open_session();
  const struct sigaction action = {.sa_handler = interrupted_by};
  sigaction(SIGALRM, &action, NULL);
  ualarm(20000, 20000);  // repeated, since on a busy machine a single signal may come too early
  CHECK_ERROR(wait_word(one.fd, 0, 0, IVGPU_FOREVER), EINTR);
}

// ---- several threads -----------------------------------------------------------------------------------------------

struct Sleeper {
  const struct Opened* session;
  uint64_t offset;
  pthread_t thread;
  pid_t id;
  int result, error;
};

// True if the thread sleeps in the kernel or has finished its wait.
static int waits_or_has_waited(struct Sleeper* sleeper) {
  if (*(volatile int*)&sleeper->result != -2) return 1;
  const pid_t id = __atomic_load_n(&sleeper->id, __ATOMIC_SEQ_CST);
  char path[64], text[128] = "";
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)id);
  const int fd = id == 0 ? -1 : open(path, O_RDONLY);
  if (fd < 0) return 0;
  const ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  const char* state = strrchr(text, ')');
  return n > 0 && state != NULL && state[2] == 'S';
}

static void* polls(void* argument) {
  struct Sleeper* self = argument;
  struct pollfd poller = {.fd = self->session->fd, .events = POLLIN};
  self->result = poll(&poller, 1, (int)deadline_ms());
  self->error = poller.revents;
  return NULL;
}

static void* sleep_there(void* argument) {
  struct Sleeper* self = argument;
  __atomic_store_n(&self->id, (pid_t)syscall(SYS_gettid), __ATOMIC_SEQ_CST);
  self->result = wait_word(self->session->fd, self->offset, 1, deadline_ms() * MS);
  self->error = errno;
  return NULL;
}

static void start(struct Sleeper* sleepers, unsigned count, const struct Opened* session) {
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 64 << 10);
  for (unsigned k = 0; k < count; ++k) {
    sleepers[k] = (struct Sleeper){.session = session, .offset = IVGPU_FIRST_CHANNEL + 4096 + 64 * k, .result = -2};
    *word_at(session, sleepers[k].offset) = 1;
    CHECK(pthread_create(&sleepers[k].thread, &small, sleep_there, &sleepers[k]) == 0, "thread %u", k);
  }
  for (unsigned k = 0; k < count; ++k)
    while (!waits_or_has_waited(&sleepers[k])) sleep_us(1000);
}

static void each_its_own(void) {
  struct Opened one = open_session();
  struct Sleeper sleepers[40];
  if (!wakes(&one)) return;
  start(sleepers, 40, &one);
  for (unsigned k = 40; k-- > 0;) {
    const uint32_t done = request_of(&one)->done;
    ask(&one, REQUEST_WAKE, sleepers[k].offset, 0, 0);
    pthread_join(sleepers[k].thread, NULL);
    CHECK(sleepers[k].result == 0, "sleeper %u: %s", k, strerror(sleepers[k].error));
    for (unsigned other = 0; other < k; ++other) CHECK(sleepers[other].result == -2, "%u woke for %u", other, k);
    while (__atomic_load_n(&request_of(&one)->done, __ATOMIC_SEQ_CST) == done) continue;
  }
}

static void ended(void) {
  struct Opened one = open_session();
  struct Sleeper sleepers[8];
  start(sleepers, 8, &one);
  struct Sleeper poller = {.session = &one};
  CHECK(pthread_create(&poller.thread, NULL, polls, &poller) == 0, "a thread that polls");
  sleep_us(100000);
  CHECK(ioctl(one.fd, IVGPU_IOC_RELEASE) == 0, "release");
  for (unsigned k = 0; k < 8; ++k) {
    pthread_join(sleepers[k].thread, NULL);
    CHECK(sleepers[k].result == -1 && sleepers[k].error == ENODEV, "sleeper %u: %s", k, strerror(sleepers[k].error));
  }
  pthread_join(poller.thread, NULL);
  CHECK(poller.result == 1 && poller.error == POLLIN, "poll: %d %x", poller.result, (unsigned)poller.error);
  uint64_t count;
  CHECK_ERROR(read(one.fd, &count, sizeof count), ENODEV);
  CHECK_ERROR(wait_word(one.fd, WORD, 0, 0), ENODEV);
}

static void too_many(void) {
  struct Opened one = open_session();
  static struct Sleeper sleepers[IVGPU_MAX_SLEEPERS + 1];
  start(sleepers, IVGPU_MAX_SLEEPERS + 1, &one);
  CHECK(ioctl(one.fd, IVGPU_IOC_RELEASE) == 0, "release");
  unsigned refused = 0;
  for (unsigned k = 0; k <= IVGPU_MAX_SLEEPERS; ++k) {
    pthread_join(sleepers[k].thread, NULL);
    refused += sleepers[k].error == ENOSPC;
  }
  CHECK(refused == 1, "%u refused", refused);
}

// ---- other ways to wait --------------------------------------------------------------------------------------------

static void by_read_and_poll(void) {
  struct Opened one = open_session();
  double by_read[100], by_poll[100];
  uint64_t count;
  CHECK(fcntl(one.fd, F_SETFL, O_NONBLOCK) == 0, "O_NONBLOCK");
  CHECK_ERROR(read(one.fd, &count, 8), EAGAIN);
  struct pollfd poller = {.fd = one.fd, .events = POLLIN};
  CHECK(poll(&poller, 1, 20) == 0, "nothing yet: %x", poller.revents);
  if (!wakes(&one)) return;
  for (unsigned k = 0; k < 100; ++k) {
    double start = now_us();
    ask(&one, REQUEST_WAKE, WORD, 0, 0);
    CHECK(poll(&poller, 1, (int)deadline_ms()) == 1 && poller.revents == POLLIN, "poll: %x", poller.revents);
    by_poll[k] = now_us() - start;
    CHECK(read(one.fd, &count, 8) == 8 && count >= 1, "read after poll");
  }
  CHECK(fcntl(one.fd, F_SETFL, 0) == 0, "O_NONBLOCK");
  for (unsigned k = 0; k < 100; ++k) {
    double start = now_us();
    ask(&one, REQUEST_WAKE, WORD, 0, 0);
    CHECK(read(one.fd, &count, 8) == 8 && count >= 1, "read");
    by_read[k] = now_us() - start;
  }
  times("poll, there and back", by_poll, 100);
  times("read, there and back", by_read, 100);
}

static void by_eventfd(void) {
  struct Opened one = open_session();
  double us[100];
  uint64_t count;
  const int event = eventfd(0, 0), other = eventfd(0, EFD_NONBLOCK);
  CHECK(ioctl(one.fd, IVGPU_IOC_EVENTFD, event) == 0, "EVENTFD");
  if (!wakes(&one)) return;
  for (unsigned k = 0; k < 100; ++k) {
    double start = now_us();
    ask(&one, REQUEST_WAKE, WORD, 0, 0);
    CHECK(read(event, &count, 8) == 8 && count >= 1, "signalled");
    us[k] = now_us() - start;
  }
  times("an eventfd, there and back", us, 100);
  CHECK(ioctl(one.fd, IVGPU_IOC_EVENTFD, other) == 0, "another");
  CHECK(ioctl(one.fd, IVGPU_IOC_EVENTFD, -1) == 0, "none");
  round_trip(&one, 0);
  CHECK_ERROR(read(other, &count, 8), EAGAIN);
}

const struct Case wake_cases[] = {{"at_once", at_once},
                                  {"time_limit", time_limit},
                                  {"woken", woken},
                                  {"not_meant", not_meant},
                                  {"signalled", signalled},
                                  {"each_its_own", each_its_own},
                                  {"ended", ended},
                                  {"too_many", too_many},
                                  {"by_read_and_poll", by_read_and_poll},
                                  {"by_eventfd", by_eventfd},
                                  {NULL, NULL}};
