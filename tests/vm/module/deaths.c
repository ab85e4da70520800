// Ends of processes. The host must learn of each end without the process's help, whichever process shares the
// descriptor. Also tests pages that outlive their process.
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/uio.h>

#include "test.h"

#define ROUNDS 10

static void touch(const struct Opened* session) {
  for (uint64_t at = 0; at < session->info.slot_bytes; at += IVGPU_PAGE) session->at[at] = 1;
}

// A child that has a session, and a grandchild that survives the child. The child sends its slot through the pipe.
struct Held {
  pid_t holder, heir;
  uint32_t slot, word;
};

static struct Held hold(void) {
  int pipes[2];
  struct Held held = {0};
  CHECK(pipe(pipes) == 0, "pipe");
  fflush(stdout);
  held.holder = fork();
  if (held.holder == 0) {
    struct Opened session = open_session();
    touch(&session);
    held.heir = fork();
    if (held.heir == 0) {
      for (;;) pause();
    }
    held.slot = session.slot;
    held.word = session.word;
    if (write(pipes[1], &held, sizeof held) != sizeof held) _exit(1);
    for (;;) pause();
  }
  const pid_t holder = held.holder;
  CHECK(read(pipes[0], &held, sizeof held) == sizeof held, "no session");
  held.holder = holder;
  close(pipes[0]);
  close(pipes[1]);
  return held;
}

static void killed(void) {
  struct Opened any = open_module();
  double us[ROUNDS];
  for (unsigned k = 0; k < ROUNDS; ++k) {
    struct Held held = hold();
    sleep_us(20000);
    const double start = now_us();
    kill(held.holder, SIGKILL);
    CHECK(until_not(&any, held.slot, held.word) >= 0, "slot %u stays claimed", held.slot);
    us[k] = now_us() - start;
    CHECK(kill(held.heir, 0) == 0, "the child of the dead one lives");
    CHECK(until_state(&any, held.slot, IVGPU_SLOT_READY) >= 0, "the host has not heard");
    kill(held.heir, SIGKILL);
    waitpid(held.holder, NULL, 0);
  }
  const double middle = percentile(us, ROUNDS, .5);
  printf("    kill -9 until Released, %llu MiB touched, a child lives on: p50 %.1f ms, most %.1f ms\n",
         (unsigned long long)any.info.slot_bytes >> 20, middle / 1e3, us[ROUNDS - 1] / 1e3);
}

static void exits(void* word) {
  struct Opened session = open_session();
  *(uint32_t*)word = session.slot;
}

// The grandchild inherits the descriptor and survives.
static void executes(void* word) {
  struct Opened session = open_session();
  const pid_t parent = getpid();
  if (fork() == 0) {
    while (getppid() == parent) sleep_us(10000);
    _exit(0);
  }
  *(uint32_t*)word = session.slot;
  execl("/bin/busybox", "sleep", "1000", NULL);
  CHECK(0, "exec");
}

static void ended_otherwise(void) {
  struct Opened any = open_module();
  uint32_t* slot = mmap(NULL, IVGPU_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  *slot = 0;
  CHECK(child(exits, slot) == 0, "a child");
  CHECK(until_state(&any, *slot, IVGPU_SLOT_READY) >= 0, "exit");
  *slot = IVGPU_NO_SLOT;
  fflush(stdout);
  const pid_t pid = fork();
  if (pid == 0) executes(slot);
  while (*(volatile uint32_t*)slot == IVGPU_NO_SLOT) sleep_us(1000);
  CHECK(until_state(&any, *slot, IVGPU_SLOT_READY) >= 0 && kill(pid, 0) == 0, "exec");
  kill(pid, SIGKILL);
  waitpid(pid, NULL, 0);
}

static void duplicate_closed(void) {
  struct Opened session = open_session();
  close(dup(session.fd));
  CHECK(state_of(&session, session.slot) == IVGPU_SLOT_CLAIMED && signal_of_read(session.at) == 0,
        "a duplicate's close");
  fflush(stdout);
  const pid_t pid = fork();
  if (pid == 0) _exit(0);  // the exit also closes the child's copy
  waitpid(pid, NULL, 0);
  CHECK(state_of(&session, session.slot) == IVGPU_SLOT_CLAIMED && signal_of_read(session.at) == 0, "a child's end");
  // The mapping keeps the file open, so the session ends with the mapping.
  close(session.fd);
  CHECK(state_of(&session, session.slot) == IVGPU_SLOT_CLAIMED && signal_of_read(session.at) == 0, "still mapped");
  munmap(session.at, session.info.slot_bytes);
  munmap((void*)(uintptr_t)session.header, IVGPU_HEADER_AREA_BYTES);
  struct Opened any = open_module();
  CHECK(until_state(&any, session.slot, IVGPU_SLOT_READY) >= 0, "the last reference");
}

// ---- a claimer whose threads have different tables of descriptors --------------------------------------------------

struct Apart {
  int fd, closes, ready[2], go[2];
};

static void* has_old_table(void* argument) {
  struct Apart* apart = argument;
  char byte;
  (void)!write(apart->ready[1], "x", 1);
  CHECK(read(apart->go[0], &byte, 1) == 1, "the word");
  if (apart->closes) close(apart->fd);
  return NULL;
}

// The claiming thread ends, and its descriptor table with it. The process continues with a copy of the descriptor, and
// its child has the descriptor, too.
static void goes_on_apart(int closes, int told) {
  struct Opened session = open_session();
  struct Apart apart = {.fd = session.fd, .closes = closes};
  struct Held held = {.slot = session.slot, .word = session.word};
  pthread_t thread;
  char byte;
  CHECK(pipe(apart.ready) == 0 && pipe(apart.go) == 0, "pipes");
  held.heir = fork();
  if (held.heir == 0) {
    close(told);
    for (;;) pause();
  }
  CHECK(pthread_create(&thread, NULL, has_old_table, &apart) == 0, "thread");
  CHECK(read(apart.ready[0], &byte, 1) == 1 && unshare(CLONE_FILES) == 0, "a table of its own");
  CHECK(write(apart.go[1], "x", 1) == 1 && pthread_join(thread, NULL) == 0, "the thread");
  sleep_us(200000);  // the kernel frees the table a moment after the join
  CHECK(state_of(&session, session.slot) == IVGPU_SLOT_CLAIMED && signal_of_read(session.at) == 0, "a thread's end");
  CHECK(write(told, &held, sizeof held) == sizeof held, "what it holds");
  for (;;) pause();
}

static void tables_apart(void) {
  struct Opened any = open_module();
  for (int closes = 0; closes < 2; ++closes) {
    int pipes[2];
    struct Held held;
    CHECK(pipe(pipes) == 0, "pipe");
    fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) goes_on_apart(closes, pipes[1]);
    close(pipes[1]);
    CHECK(read(pipes[0], &held, sizeof held) == sizeof held, "no session");
    kill(pid, SIGKILL);
    CHECK(until_not(&any, held.slot, held.word) >= 0, "slot %u stays claimed (%d)", held.slot, closes);
    CHECK(kill(held.heir, 0) == 0, "the child of the dead one lives");
    kill(held.heir, SIGKILL);
    waitpid(pid, NULL, 0);
    close(pipes[0]);
  }
}

// ---- a user who forks without end ----------------------------------------------------------------------------------

struct Bomb {
  uint64_t processes, refused, claims;
};

// Each process inherits all its ancestors' descriptors, opens another one, and claims a slot if a slot is free.
__attribute__((noreturn)) static void explode(struct Bomb* bomb) {
  for (;;) {
    const pid_t pid = fork();
    if (pid != 0) {
      if (pid < 0) count(&bomb->refused);
      sleep_us(2000);
      continue;
    }
    struct IvgpuModuleClaim got;
    struct IvgpuModuleInfo info;
    const int fd = open(NODE, O_RDWR);
    count(&bomb->processes);
    if (fd < 0 || claim(fd, 0, "bomb", &got) != 0 || ioctl(fd, IVGPU_IOC_INFO, &info) != 0) continue;
    count(&bomb->claims);
    char* at = mmap(NULL, IVGPU_HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                    (off_t)(info.first_slot + got.slot * info.slot_bytes));
    if (at != MAP_FAILED) at[0] = 1;
  }
}

static void fork_bomb(void) {
  const struct rlimit limit = {64, 64};
  struct Opened any = open_module();
  struct Bomb* bomb = mmap(NULL, IVGPU_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(bomb != MAP_FAILED && prctl(PR_SET_CHILD_SUBREAPER, 1) == 0, "a bomb");
  CHECK(setrlimit(RLIMIT_NPROC, &limit) == 0, "the limit of processes");
  all_ready(&any);
  fflush(stdout);
  const pid_t first = fork();
  if (first == 0) {
    setpgid(0, 0);
    explode(bomb);
  }
  setpgid(first, first);
  for (const double start = now_us(); __atomic_load_n(&bomb->refused, __ATOMIC_SEQ_CST) < 200; sleep_us(10000))
    CHECK(now_us() - start < deadline_us(), "%u processes, %u refused", (unsigned)bomb->processes,
          (unsigned)bomb->refused);
  const double start = now_us();
  CHECK(kill(-first, SIGKILL) == 0, "kill");
  unsigned ended = 0;
  while (wait(NULL) > 0) ++ended;
  all_ready(&any);
  printf("    %u processes with %u claims, %u forks refused; all slots Ready %.0f ms after the kill\n", ended,
         (unsigned)bomb->claims, (unsigned)bomb->refused, (now_us() - start) / 1e3);
  CHECK(ended > 40 && ended <= limit.rlim_cur && bomb->claims == any.info.slot_count, "no bomb");
  for (uint32_t k = 0; k < any.info.slot_count; ++k) open_session();
}

// A pipe holds pages of a dead process. The slot is dead at once, but is reused only when the pipe is empty.
static void pinned(void) {
  struct Opened any = open_module();
  int pages[2], words[2];
  uint32_t slot;
  char byte;
  if (!(any.info.flags & IVGPU_MODULE_WRITE_BACK)) return;
  CHECK(pipe(pages) == 0 && pipe(words) == 0, "pipes");
  fflush(stdout);
  const pid_t pid = fork();
  if (pid == 0) {
    struct Opened session = open_session();
    struct iovec part = {session.at + IVGPU_ARENA_OFFSET, 2 * IVGPU_PAGE};
    memset(part.iov_base, 0x42, part.iov_len);
    CHECK(vmsplice(pages[1], &part, 1, 0) == 2 * IVGPU_PAGE, "vmsplice");
    (void)!write(words[1], &session.slot, sizeof session.slot);
    for (;;) pause();
  }
  CHECK(read(words[0], &slot, sizeof slot) == sizeof slot, "the child");
  kill(pid, SIGKILL);
  const double dead = until_state(&any, slot, IVGPU_SLOT_RELEASED);
  CHECK(dead >= 0 && any.entries[slot].pinned == 1, "pinned %u", any.entries[slot].pinned);
  sleep_us(300000);
  CHECK(state_of(&any, slot) == IVGPU_SLOT_RELEASED && any.entries[slot].pinned == 1, "given away with pages in use");
  CHECK(read(pages[0], &byte, 1) == 1 && byte == 0x42, "the page is as it was");
  close(pages[1]);
  close(pages[0]);
  const double us = until_state(&any, slot, IVGPU_SLOT_READY);
  CHECK(us >= 0 && any.entries[slot].pinned == 0, "not taken back");
  printf("    Ready %.1f ms after the last page was let go\n", us / 1e3);
}

const struct Case death_cases[] = {{"killed", killed},
                                   {"ended_otherwise", ended_otherwise},
                                   {"duplicate_closed", duplicate_closed},
                                   {"tables_apart", tables_apart},
                                   {"fork_bomb", fork_bomb},
                                   {"pinned", pinned},
                                   {NULL, NULL}};
