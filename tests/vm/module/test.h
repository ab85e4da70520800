// What the cases of the module's test share. Each case runs in a process of its own, and ends it when a check fails.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "request.h"
#include "ring/layout/module_c.h"
#include "ring/layout/vm_page_c.h"

#define NODE "/dev/ivgpu0"

// Who runs the cases, in the group that the job has given the node to (../module.sh), as the udev rule does.
#define TEST_USER 1000
#define TEST_GROUP 44

#define CHECK(condition, ...)                                            \
  do {                                                                   \
    if (!(condition)) fail(__FILE__, __LINE__, #condition, __VA_ARGS__); \
  } while (0)
// The call fails, and with that error.
#define CHECK_ERROR(call, error)                                                                    \
  do {                                                                                              \
    errno = 0;                                                                                      \
    const long got_ = (long)(call);                                                                 \
    CHECK(got_ == -1 && errno == (error), "got %ld, %s, wanted %s", got_, strerror(errno), #error); \
  } while (0)

struct Opened {
  int fd;
  struct IvgpuModuleInfo info;  // as it was before a claim
  uint32_t slot, word;
  const struct IvgpuRegionHeader* header;
  const struct IvgpuSlotEntry* entries;
  const struct IvgpuVmPage* vm_page;
  const struct IvgpuVmGpu* gpus;
  char* at;  // the whole slot
};

struct Case {
  const char* name;
  void (*run)(void);
};
extern const struct Case claim_cases[], mapping_cases[], wake_cases[], death_cases[], binding_cases[], hold_cases[];

__attribute__((noreturn, format(printf, 4, 5))) void fail(const char* file, int line, const char* what,
                                                          const char* format, ...);
double now_us(void);
// How many times longer than otherwise a test waits for what must happen: IVGPU_TEST_SLOWNESS, by default 1.
double slowness(void);
// How long a test waits for what must happen: a minute, times slowness(). It only ends a test that hangs.
double deadline_us(void);
uint32_t deadline_ms(void);
void nap_us(unsigned us);
// Root no more, for good: a user with no other group than `group`; with 0, in none that may open the node.
void become_user(gid_t group);
struct Opened open_module(void);
// Opens, claims, maps.
struct Opened open_session(void);
void map_session(struct Opened* session);
int claim(int fd, uint32_t timeout_ms, const char* name, struct IvgpuModuleClaim* got);
uint32_t state_of(const struct Opened* any, uint32_t slot);
// When the entry of `slot` comes to differ from `word`, in microseconds, or -1 after deadline_us().
double until_not(const struct Opened* any, uint32_t slot, uint32_t word);
double until_state(const struct Opened* any, uint32_t slot, uint32_t state);
void all_ready(const struct Opened* any);
uint32_t* word_at(const struct Opened* session, uint64_t offset);
int wait_word(int fd, uint64_t offset, uint32_t expected, uint64_t timeout_ns);
struct Request* request_of(const struct Opened* session);
void ask(const struct Opened* session, enum RequestKind kind, uint64_t offset, uint32_t value, uint32_t delay_us);
// The signal that reading a byte there ends with, 0 for none.
int signal_of_read(const volatile char* at);
// The same of writing one; what was there before is in *before, if it ends with 0.
int signal_of_exchange(char* at, char value, char* before);
// Whether a mapping of a slot that has ended shows that there: zeros where only a library reads (`quiet`), else SIGBUS;
// without pages SIGBUS everywhere.
int shows_end(const struct Opened* any, const volatile char* at, int quiet);
// A descriptor over a socket. Whoever receives may wait, or not: then 0 says that there was none.
void give(int socket, int fd);
int receive(int socket, int flags, int* fd);
// In memory that processes share.
void count(uint64_t* what);
// How a child that runs `body` ended, as waitpid() says.
int child(void (*body)(void*), void* argument);
// Sorts; the value below which `share` of them lie.
double percentile(double* values, unsigned count, double share);
