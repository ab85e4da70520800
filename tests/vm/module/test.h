// Shared declarations of the module's tests. Each case runs in its own process. A failed check ends the process.
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

// The user of the cases, in the group to which the job gives the node (../module.sh), as the udev rule does.
#define TEST_USER 1000
#define TEST_GROUP 44

#define CHECK(condition, ...)                                            \
  do {                                                                   \
    if (!(condition)) fail(__FILE__, __LINE__, #condition, __VA_ARGS__); \
  } while (0)
// Expects that the call fails with this error.
#define CHECK_ERROR(call, error)                                                                    \
  do {                                                                                              \
    errno = 0;                                                                                      \
    const long got_ = (long)(call);                                                                 \
    CHECK(got_ == -1 && errno == (error), "got %ld, %s, wanted %s", got_, strerror(errno), #error); \
  } while (0)

struct Opened {
  int fd;
  struct IvgpuModuleInfo info;  // as before a claim
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
// The factor by which a test waits longer for an expected event: IVGPU_TEST_SLOWNESS, by default 1.
double slowness(void);
// How long a test waits for an expected event: a minute times slowness(). It only ends a hanging test.
double deadline_us(void);
uint32_t deadline_ms(void);
void sleep_us(unsigned us);
// Drops root permanently: becomes a user whose only group is `group`. With 0, the user may not open the node.
void become_user(gid_t group);
struct Opened open_module(void);
// Opens the node, claims a slot and maps the slot.
struct Opened open_session(void);
void map_session(struct Opened* session);
int claim(int fd, uint32_t timeout_ms, const char* name, struct IvgpuModuleClaim* got);
uint32_t state_of(const struct Opened* any, uint32_t slot);
// The time in microseconds until the entry of `slot` differs from `word`; -1 after deadline_us().
double until_not(const struct Opened* any, uint32_t slot, uint32_t word);
double until_state(const struct Opened* any, uint32_t slot, uint32_t state);
void all_ready(const struct Opened* any);
uint32_t* word_at(const struct Opened* session, uint64_t offset);
int wait_word(int fd, uint64_t offset, uint32_t expected, uint64_t timeout_ns);
struct Request* request_of(const struct Opened* session);
void ask(const struct Opened* session, enum RequestKind kind, uint64_t offset, uint32_t value, uint32_t delay_us);
// The signal that reading this byte raises; 0 if none.
int signal_of_read(const volatile char* at);
// The signal that writing this byte raises. If it is 0, *before receives the old value.
int signal_of_exchange(char* at, char value, char* before);
// True if this address of an ended slot's mapping shows the end: zeros where only a library reads (`quiet`), SIGBUS
// elsewhere; without zero pages SIGBUS everywhere.
int shows_end(const struct Opened* any, const volatile char* at, int quiet);
// give() passes a descriptor over a socket. A non-blocking receive() returns 0 if no descriptor is queued.
void give(int socket, int fd);
int receive(int socket, int flags, int* fd);
// Increments a counter in shared memory.
void count(uint64_t* what);
// Runs `body` in a child, and returns its waitpid() status.
int child(void (*body)(void*), void* argument);
// Sorts the values, and returns the value at this quantile.
double percentile(double* values, unsigned count, double share);
