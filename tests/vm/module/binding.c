// Removal and return of the device: unbinding, unplugging, sleep; also, that a module in use cannot be unloaded. These
// cases end other sessions, so they run alone.
#include <dirent.h>
#include <linux/reboot.h>
#include <linux/suspend_ioctls.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

#include "test.h"

#define DRIVER "/sys/bus/pci/drivers/ivgpu/"

static void put(const char* path, const char* text) {
  const int fd = open(path, O_WRONLY);
  CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), "%s", path);
  close(fd);
}

static void device_of_driver(char name[64]) {
  DIR* folder = opendir(DRIVER);
  name[0] = 0;
  CHECK(folder != NULL, DRIVER);
  for (const struct dirent* entry; (entry = readdir(folder)) != NULL;)
    if (entry->d_name[0] == '0') snprintf(name, 64, "%.63s", entry->d_name);
  closedir(folder);
  CHECK(name[0] != 0, "no device is bound");
}

static void not_unloaded(void) {
  const int fd = open(NODE, O_RDWR);
  CHECK(fd >= 0, "open");
  CHECK_ERROR(syscall(SYS_delete_module, "ivgpu", O_NONBLOCK), EAGAIN);
}

// Only the group of the device node gives a user access.
static void opens_as(void* group) {
  const gid_t its = *(const gid_t*)group;
  become_user(its);
  if (its == 0) CHECK_ERROR(open(NODE, O_RDONLY), EACCES);
  if (its != 0) CHECK(open(NODE, O_RDWR) >= 0, "open");
}

static void not_everybodys(void) {
  gid_t groups[] = {0, TEST_GROUP};
  for (unsigned k = 0; k < 2; ++k) CHECK(child(opens_as, &groups[k]) == 0, "group %u", groups[k]);
}

// The module does not bind to foreign devices, which lack our region or have another layout.
static void others_left_alone(void) {
  DIR* folder = opendir("/sys/bus/pci/devices");
  unsigned all = 0, bound = 0;
  CHECK(folder != NULL, "sysfs");
  for (const struct dirent* entry; (entry = readdir(folder)) != NULL;) {
    char path[300], id[16] = "";
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/device", entry->d_name);
    const int fd = open(path, O_RDONLY);
    if (fd < 0 || read(fd, id, sizeof id - 1) <= 0 || strncmp(id, "0x1110", 6) != 0) continue;
    close(fd);
    ++all;
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/driver", entry->d_name);
    bound += access(path, F_OK) == 0;
  }
  printf("    %u ivshmem devices, %u bound\n", all, bound);
  CHECK(all > 1 && bound == 1 && access("/dev/ivgpu1", F_OK) != 0, "bound");
}

// ---- the device's removal, as a user of the device sees it
// ---------------------------------------------------------------

struct User {
  const struct Opened* session;
  int result, error;
};

static void* waits(void* argument) {
  struct User* user = argument;
  user->result = wait_word(user->session->fd, 0, *word_at(user->session, 0), IVGPU_FOREVER);
  user->error = errno;
  return NULL;
}

static void* reads(void* argument) {
  struct User* user = argument;
  uint64_t count;
  while ((user->result = (int)read(user->session->fd, &count, sizeof count)) > 0) continue;
  user->error = errno;
  return NULL;
}

static void* polls(void* argument) {
  struct User* user = argument;
  struct pollfd poller = {.fd = user->session->fd};
  user->result = poll(&poller, 1, (int)deadline_ms());
  user->error = poller.revents;
  return NULL;
}

// Polls as a library does: reads a page, then checks whether the slot has ended. Whichever page becomes zeros first,
// the check must show the end.
static void* spins(void* argument) {
  struct User* user = argument;
  const char* at = user->session->at;
  const double until = now_us() + deadline_us();
  user->error = 1;
  for (uint64_t k = 0; user->error != 0 && now_us() < until; k = (k + 1) % 1024)
    for (unsigned look = 0; user->error != 0 && look < 64; ++look, k = (k + 7) % 1024) {
      user->error = __atomic_load_n(at + k * IVGPU_PAGE + 8, __ATOMIC_ACQUIRE);
      user->result = __atomic_load_n(at, __ATOMIC_ACQUIRE);
    }
  return NULL;
}

static const volatile char* last_of_header_area(const struct Opened* any) {
  return (const volatile char*)&any->gpus[IVGPU_MAX_DEVICES - 1].state;
}

// The header area is removed last, after the node, when the slots' programs know of the removal.
static int comes_to_its_end(const struct Opened* any, const volatile char* at) {
  const double until = now_us() + deadline_us();
  while (!shows_end(any, at, 1) && now_us() < until) sleep_us(1000);
  return shows_end(any, at, 1);
}

static void takes_away(const char* how, void (*take)(void)) {
  struct Opened session = open_session(), idle = open_module();
  struct User users[4] = {{.session = &session}, {.session = &session}, {.session = &idle}, {.session = &session}};
  void* (*const ways[4])(void*) = {waits, reads, polls, spins};
  // Without zero pages, an access to an ended mapping raises SIGBUS.
  const unsigned count = session.info.flags & IVGPU_MODULE_WRITE_BACK ? 4 : 3;
  pthread_t threads[4];
  struct IvgpuModuleInfo info;
  memset(session.at, 1, 4 << 20);
  // Only a page that is in the page table can show that the module removes it from the table.
  CHECK(*last_of_header_area(&session) == IVGPU_GPU_THERE, "the front's end");
  for (unsigned k = 0; k < count; ++k) CHECK(pthread_create(&threads[k], NULL, ways[k], &users[k]) == 0, "thread");
  sleep_us(100000);
  const double start = now_us();
  take();
  while (access(NODE, F_OK) == 0 && now_us() - start < deadline_us()) sleep_us(1000);
  for (unsigned k = 0; k < count; ++k) pthread_join(threads[k], NULL);
  printf("    %s: over after %.0f ms\n", how, (now_us() - start) / 1e3);
  CHECK(access(NODE, F_OK) != 0, "the node is there");
  CHECK(users[0].result == -1 && users[0].error == ENODEV, "WAIT: %s", strerror(users[0].error));
  CHECK(users[1].result == -1 && users[1].error == ENODEV, "read: %s", strerror(users[1].error));
  CHECK(users[2].result == 1 && (users[2].error & POLLHUP), "poll: %x", users[2].error);
  if (count == 4) CHECK(users[3].error == 0 && users[3].result == 0, "polling: %d %d", users[3].error, users[3].result);
  CHECK(shows_end(&session, session.at, 1), "the slot's mapping");
  CHECK(comes_to_its_end(&session, (const char*)session.header), "the header");
  CHECK(comes_to_its_end(&session, last_of_header_area(&session)), "the front's end");
  CHECK(shows_end(&session, session.at + IVGPU_QUIET_BYTES, 0), "a program's memory");
  CHECK_ERROR(ioctl(session.fd, IVGPU_IOC_INFO, &info), ENODEV);
  CHECK_ERROR(ioctl(session.fd, IVGPU_IOC_RING, IVGPU_RING_BROKER), ENODEV);
  CHECK_ERROR(ioctl(session.fd, IVGPU_IOC_RING, IVGPU_RING_GPUS), ENODEV);
  CHECK_ERROR(mmap(NULL, IVGPU_PAGE, PROT_READ, MAP_SHARED, session.fd, 0), ENODEV);
}

static char device[64];
static void unbind(void) { put(DRIVER "unbind", device); }

static void unbound(void) {
  device_of_driver(device);
  takes_away("unbind", unbind);
  put(DRIVER "bind", device);
  struct Opened again = open_session();
  CHECK(again.at[0] == 0, "the host has scrubbed it");
}

// A pipe holds pages of a dead process. The device stays until the pages are released.
static void unbound_pinned(void) {
  int pages[2], ready[2];
  char byte;
  {
    const struct Opened any = open_module();
    munmap((void*)(uintptr_t)any.header, IVGPU_HEADER_AREA_BYTES);
    close(any.fd);
    if (!(any.info.flags & IVGPU_MODULE_WRITE_BACK)) return;
  }
  CHECK(pipe(pages) == 0 && pipe(ready) == 0, "pipes");
  device_of_driver(device);
  fflush(stdout);
  if (fork() == 0) {
    struct Opened session = open_session();
    struct iovec part = {session.at + IVGPU_ARENA_OFFSET, IVGPU_PAGE};
    memset(part.iov_base, 7, part.iov_len);
    vmsplice(pages[1], &part, 1, 0);
    (void)!write(ready[1], "x", 1);
    _exit(0);
  }
  CHECK(read(ready[0], &byte, 1) == 1 && wait(NULL) > 0, "the child");
  const pid_t pid = fork();
  if (pid == 0) {
    // unbind() would wait for this process itself.
    close(pages[0]);
    close(pages[1]);
    unbind();
    _exit(0);
  }
  for (const double start = now_us(); access(NODE, F_OK) == 0; sleep_us(1000))
    CHECK(now_us() - start < deadline_us(), "the node stays");
  sleep_us(300000);
  CHECK(waitpid(pid, NULL, WNOHANG) == 0, "unbinding does not wait");
  CHECK(read(pages[0], &byte, 1) == 1 && byte == 7, "the page is as it was");
  close(pages[1]);
  close(pages[0]);
  CHECK(waitpid(pid, NULL, 0) == pid, "unbinding");
  put(DRIVER "bind", device);
  struct Opened after = open_module();
  for (uint32_t k = 0; k < after.info.slot_count; ++k)
    CHECK(until_state(&after, k, IVGPU_SLOT_READY) >= 0, "slot %u: %u", k, state_of(&after, k));
}

// Sessions begin, access pages and end while the device is repeatedly removed and returned.
static void rebound_in_use(void) {
  pid_t users[3];
  unsigned sessions = 0;
  int counts[2];
  CHECK(pipe(counts) == 0, "pipe");
  fflush(stdout);
  for (unsigned k = 0; k < 3; ++k) {
    users[k] = fork();
    for (unsigned n = 0; users[k] == 0; ++n) {
      struct IvgpuModuleClaim got;
      const int fd = open(NODE, O_RDWR);
      if (fd < 0 || claim(fd, 20, "racer", &got) != 0) {
        if (fd >= 0) close(fd);
        sleep_us(500);
        continue;
      }
      struct IvgpuModuleInfo info;
      if (ioctl(fd, IVGPU_IOC_INFO, &info) == 0) {
        char* at = mmap(NULL, info.slot_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                        (off_t)(info.first_slot + got.slot * info.slot_bytes));
        for (uint64_t offset = 0; at != MAP_FAILED && offset < info.slot_bytes; offset += IVGPU_HUGE_PAGE)
          if (signal_of_read(at + offset) != 0) break;
        wait_word(fd, 0, 0, 1000000);
        if (at != MAP_FAILED) munmap(at, info.slot_bytes);
        (void)!write(counts[1], "x", 1);
      }
      close(fd);
    }
  }
  device_of_driver(device);
  char text[65536];
  fcntl(counts[0], F_SETFL, O_NONBLOCK);
  unsigned rounds = 0;
  for (const double start = now_us(); rounds < 20 || (sessions == 0 && now_us() - start < deadline_us()); ++rounds) {
    put(DRIVER "unbind", device);
    put(DRIVER "bind", device);
    sleep_us(20000 + rounds * 1000);
    for (ssize_t n; (n = read(counts[0], text, sizeof text)) > 0;) sessions += (unsigned)n;
  }
  for (unsigned k = 0; k < 3; ++k) kill(users[k], SIGKILL);
  for (unsigned k = 0; k < 3; ++k) waitpid(users[k], NULL, 0);
  printf("    %u times unbound and bound, %u sessions meanwhile\n", rounds, sessions);
  CHECK(sessions > 0, "no session");
  struct Opened after = open_module();
  for (uint32_t k = 0; k < after.info.slot_count; ++k)
    CHECK(until_state(&after, k, IVGPU_SLOT_READY) >= 0, "slot %u: %u", k, state_of(&after, k));
}

// Checks that interrupts still wake the session.
static void is_woken(const struct Opened* session) {
  if (!(session->info.flags & IVGPU_MODULE_WAKES)) return;
  for (unsigned delay_us = 5000; delay_us < 10000000; delay_us *= 2) {
    *word_at(session, 64) = 1;
    ask(session, REQUEST_WAKE, 64, 0, delay_us);
    if (wait_word(session->fd, 64, 1, deadline_ms() * 1000000ULL) == 0) return;
    CHECK(errno == EAGAIN, "no interrupts after a sleep");
  }
  CHECK(0, "it never slept");
}

// The machine's total time asleep.
static double asleep_us(void) {
  struct timespec all;
  clock_gettime(CLOCK_BOOTTIME, &all);
  return (double)all.tv_sec * 1e6 + (double)all.tv_nsec / 1e3 - now_us();
}

static void asleep(void) {
  struct Opened session = open_session();
  session.at[100] = 42;
  if (access("/sys/class/rtc/rtc0/wakealarm", W_OK) != 0) {
    printf("    no clock to wake this machine\n");
    return;
  }
  // An alarm that expires before the machine sleeps does not wake it.
  char seconds[16];
  snprintf(seconds, sizeof seconds, "+%u", (unsigned)(5 * slowness()));
  put("/sys/class/rtc/rtc0/wakealarm", seconds);
  const double slept = -asleep_us();
  put("/sys/power/state", "mem");
  CHECK(session.at[100] == 42 && state_of(&session, session.slot) == IVGPU_SLOT_CLAIMED, "the session");
  is_woken(&session);
  // ../module.sh reads this line; it knows which kernels can sleep.
  printf("asleep for %.1f s\n", (slept + asleep_us()) / 1e6);
  CHECK(slept + asleep_us() > 0, "the clock of sleeps stood still");
}

// Hibernates: takes the machine's image and resumes from it, as after a power-off. Returns 0 if the kernel cannot
// hibernate.
static int hibernate(void) {
  const int machine = open("/dev/snapshot", O_RDONLY);
  int taken = 0;
  if (machine < 0) {
    printf("    this kernel does not hibernate\n");
    return 0;
  }
  CHECK(ioctl(machine, SNAPSHOT_FREEZE, 0) == 0, "freeze");
  CHECK(ioctl(machine, SNAPSHOT_CREATE_IMAGE, &taken) == 0, "an image");
  if (taken) {
    const size_t most = 256 << 20;
    size_t bytes = 0, back = 0;
    char* image = mmap(NULL, most, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (ssize_t n; bytes < most && (n = read(machine, image + bytes, IVGPU_PAGE)) > 0;) bytes += (size_t)n;
    CHECK(bytes > 0 && bytes < most && close(machine) == 0, "reading the image");
    const int next = open("/dev/snapshot", O_WRONLY);
    for (ssize_t n; back < bytes && (n = write(next, image + back, IVGPU_PAGE)) > 0;) back += (size_t)n;
    CHECK(back == bytes && ioctl(next, SNAPSHOT_FREEZE, 0) == 0, "writing the image");
    ioctl(next, SNAPSHOT_ATOMIC_RESTORE, 0);
    CHECK(0, "the image is not taken");
  }
  CHECK(ioctl(machine, SNAPSHOT_UNFREEZE, 0) == 0 && close(machine) == 0, "unfreeze");
  // This run was resumed from the image. The run that took the image has `taken` 1 and does not get to this line.
  printf("hibernated\n");
  return 1;
}

static void hibernated(void) {
  struct Opened session = open_session();
  struct IvgpuModuleInfo info;
  session.at[100] = 42;
  if (!hibernate()) return;
  CHECK(ioctl(session.fd, IVGPU_IOC_INFO, &info) == 0 && info.slot == IVGPU_NO_SLOT, "the slot %u", info.slot);
  CHECK_ERROR(wait_word(session.fd, 0, 0, 0), ENODEV);
  CHECK(shows_end(&session, session.at + 100, 1), "the mapping");
  const struct Opened next = open_session();
  is_woken(&next);
}

static void hibernated_elsewhere(void) {
  struct Opened session = open_session();
  struct IvgpuModuleInfo info;
  const uint32_t slots = session.info.slot_count - 1;
  ask(&session, REQUEST_REGION, 0, slots, 0);
  if (!hibernate()) return;
  CHECK_ERROR(ioctl(session.fd, IVGPU_IOC_INFO, &info), ENODEV);
  CHECK(shows_end(&session, session.at, 1) && shows_end(&session, (const char*)session.header, 1), "mappings");
  CHECK_ERROR(open(NODE, O_RDWR), ENODEV);
  device_of_driver(device);
  unbind();
  put(DRIVER "bind", device);
  CHECK(open_session().info.slot_count == slots, "the region of now");
}

// ttyS2 is connected to this VM's monitor.
static void unplug(void) { put("/dev/ttyS2", "device_del ivgpu-ours\n"); }
static void unplugged(void) { takes_away("unplugged", unplug); }

// Boots the same kernel by kexec while a program holds a slot and sleeps on it.
static void kexecs(void) {
  struct Opened session = open_module();
  struct IvgpuModuleClaim got;
  char line[4096] = "";
  int pipes[2];
  CHECK(pipe(pipes) == 0, "pipe");
  fflush(stdout);
  if (fork() == 0) {
    CHECK(claim(session.fd, deadline_ms(), "kexeced", &got) == 0, "claim");
    session.slot = got.slot;
    map_session(&session);
    (void)!write(pipes[1], "x", 1);
    wait_word(session.fd, 0, *word_at(&session, 0), IVGPU_FOREVER);
    _exit(0);
  }
  CHECK(read(pipes[0], line, 1) == 1, "the child");
  sleep_us(300000);  // most likely the program is asleep by then
  const int kernel = open("/vmlinuz", O_RDONLY), initramfs = open("/next", O_RDONLY),
            own = open("/proc/cmdline", O_RDONLY);
  ssize_t bytes = read(own, line, sizeof line - 16);
  CHECK(bytes > 1, "the command line");
  strcpy(line + bytes - 1, " second");
  CHECK(syscall(SYS_kexec_file_load, kernel, initramfs, strlen(line) + 1, line, 0UL) == 0, "kexec_file_load");
  printf("    kexec\n");
  fflush(stdout);
  syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2, LINUX_REBOOT_CMD_KEXEC, NULL);
  CHECK(0, "no kexec");
}

// Holds a slot until the machine shuts down.
static void held(void) {
  struct Opened any = open_module();
  struct IvgpuModuleClaim got;
  CHECK(claim(any.fd, deadline_ms(), "held", &got) == 0, "claim");
  printf("held\n");
  pause();
}
const struct Case hold_cases[] = {{"held", held}, {NULL, NULL}};

const struct Case binding_cases[] = {{"not_unloaded", not_unloaded},
                                     {"not_everybodys", not_everybodys},
                                     {"others_left_alone", others_left_alone},
                                     {"unbound", unbound},
                                     {"unbound_pinned", unbound_pinned},
                                     {"rebound_in_use", rebound_in_use},
                                     {"asleep", asleep},
                                     {"hibernated", hibernated},
                                     {"hibernated_elsewhere", hibernated_elsewhere},
                                     {"unplugged", unplugged},
                                     {"kexecs", kexecs},
                                     {NULL, NULL}};
