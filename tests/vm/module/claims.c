// Claims: which slot a process gets, the directory's contents, and refused claims.
#include "test.h"

static void info(void) {
  struct Opened any = open_module();
  CHECK(any.info.interface == IVGPU_MODULE_INTERFACE && any.info.layout == IVGPU_LAYOUT_VERSION, "versions");
  CHECK(any.info.slot_count == any.header->slot_count && any.info.slot_bytes == any.header->slot_bytes, "slots");
  CHECK(any.info.slot == IVGPU_NO_SLOT && any.info.reserved == 0, "no slot yet");
  printf("    module %s: %u slots of %llu MiB, peer %u, %u of %u vectors, flags %x\n", any.info.release,
         any.info.slot_count, (unsigned long long)any.info.slot_bytes >> 20, any.info.peer, any.info.vectors,
         any.info.device_vectors, any.info.flags);
}

static void orphan(void) {
  struct Opened any = open_module();
  CHECK(until_state(&any, any.info.slot_count - 1, IVGPU_SLOT_READY) >= 0, "an earlier kernel's slot is not free");
}

static void claim_and_release(void) {
  struct Opened any = open_module();
  struct IvgpuModuleClaim got;
  struct IvgpuModuleInfo info;
  CHECK(claim(any.fd, deadline_ms(), "its name", &got) == 0, "claim");
  const struct IvgpuSlotEntry* entry = &any.entries[got.slot];
  CHECK(entry->state == got.word && (got.word & 0xff) == IVGPU_SLOT_CLAIMED, "word %x", entry->state);
  CHECK(entry->owner.pid == (uint32_t)getpid() && entry->owner.peer == any.info.peer, "owner %u", entry->owner.pid);
  CHECK(entry->owner.boot != 0 && entry->owner.start_time != 0, "owner");
  CHECK(strcmp(entry->program, "its name") == 0, "name %s", entry->program);
  CHECK(ioctl(any.fd, IVGPU_IOC_INFO, &info) == 0 && info.slot == got.slot && info.word == got.word, "INFO");
  CHECK_ERROR(claim(any.fd, 0, "", &got), EBUSY);
  CHECK(ioctl(any.fd, IVGPU_IOC_RELEASE) == 0, "release");
  CHECK_ERROR(ioctl(any.fd, IVGPU_IOC_RELEASE), ENODEV);
  const double us = until_state(&any, info.slot, IVGPU_SLOT_READY);
  CHECK(us >= 0 && any.entries[info.slot].state >> 8 == (info.word >> 8) + 1, "the host has not heard");
  CHECK(claim(any.fd, deadline_ms(), "", &got) == 0, "again");
  CHECK(strcmp(any.entries[got.slot].program, "module_test") == 0, "name %s", any.entries[got.slot].program);
}

// Measures the time that the begin and the end of a session cost a program.
static void times(void) {
  struct Opened any = open_module();
  struct IvgpuModuleClaim got;
  double begin[20], end[20], touched[20];
  for (unsigned k = 0; k < 40; ++k) {
    double start = now_us();
    CHECK(claim(any.fd, deadline_ms(), "", &got) == 0, "claim");
    begin[k % 20] = now_us() - start;
    any.slot = got.slot;
    map_session(&any);
    for (uint64_t at = 0; k >= 20 && at < any.info.slot_bytes; at += IVGPU_PAGE) any.at[at] = 1;
    start = now_us();
    CHECK(ioctl(any.fd, IVGPU_IOC_RELEASE) == 0, "release");
    (k < 20 ? end : touched)[k % 20] = now_us() - start;
    munmap(any.at, any.info.slot_bytes);
    CHECK(until_state(&any, got.slot, IVGPU_SLOT_READY) >= 0, "the host");
  }
  printf("    p50: claim %.0f us, release %.0f us, release of a touched slot %.0f us\n", percentile(begin, 20, .5),
         percentile(end, 20, .5), percentile(touched, 20, .5));
}

static void release_later(int fd) {
  sleep_us(50000);
  ioctl(fd, IVGPU_IOC_RELEASE);
}

static void every_slot(void) {
  struct Opened all[IVGPU_MAX_SLOTS], late = open_module();
  struct IvgpuModuleClaim got;
  uint64_t seen = 0;
  const uint32_t count = late.info.slot_count, wanted = late.header->wanted;
  for (uint32_t k = 0; k < count; ++k) {
    all[k] = open_session();
    CHECK(!(seen >> all[k].slot & 1), "slot %u twice", all[k].slot);
    seen |= 1ULL << all[k].slot;
  }
  double start = now_us();
  CHECK_ERROR(claim(late.fd, 50, "", &got), ETIMEDOUT);
  const double waited = now_us() - start;
  CHECK(waited >= 50e3, "%.0f us", waited);
  CHECK(late.header->wanted == wanted + 1, "wanted %u", late.header->wanted);
  fflush(stdout);
  if (fork() == 0) {
    release_later(all[1].fd);
    _exit(0);
  }
  start = now_us();
  CHECK(claim(late.fd, deadline_ms(), "", &got) == 0 && got.slot == all[1].slot, "the freed one");
  printf("    a claim that waits has a slot %.1f ms after the release\n", (now_us() - start - 50e3) / 1e3);
  // The slot belonged to the descriptor, whichever process released the slot.
  CHECK(shows_end(&late, all[1].at, 1), "the slot's old mapping");
  CHECK(signal_of_read(all[0].at) == 0, "another's mapping");
}

static void nothing(int signal) { (void)signal; }

static void signalled(void) {
  struct Opened all[IVGPU_MAX_SLOTS], late = open_module();
  struct IvgpuModuleClaim got;
  const struct sigaction action = {.sa_handler = nothing};
  for (uint32_t k = 0; k < late.info.slot_count; ++k) all[k] = open_session();
  (void)all;
  sigaction(SIGALRM, &action, NULL);
  ualarm(20000, 20000);  // repeated, since on a busy machine a single signal may come too early
  CHECK_ERROR(claim(late.fd, deadline_ms(), "", &got), EINTR);
}

// A descriptor without a slot asks about GPUs. The module increments the counter of questions, which a program may not
// write, and rings the host.
static void asked_about_gpus(void) {
  struct Opened any = open_module();
  const uint32_t before = any.header->gpu_questions, wanted = any.header->wanted;
  for (uint32_t k = 1; k <= 3; ++k) {
    CHECK(ioctl(any.fd, IVGPU_IOC_RING, IVGPU_RING_GPUS) == 0, "the question");
    CHECK(any.header->gpu_questions == before + k, "%u after %u", any.header->gpu_questions, before);
  }
  CHECK(any.header->wanted == wanted, "no slot is wanted");
  const double start = now_us();
  while (__atomic_load_n(&any.vm_page->answered, __ATOMIC_SEQ_CST) != before + 3) {
    CHECK(now_us() - start < deadline_us(), "the host has answered %u of %u", any.vm_page->answered, before + 3);
    sleep_us(200);
  }
}

static void refused(void) {
  struct Opened any = open_module();
  struct IvgpuModuleClaim bad = {.reserved = 1};
  CHECK_ERROR(ioctl(any.fd, IVGPU_IOC_CLAIM, &bad), EINVAL);
  CHECK_ERROR(ioctl(any.fd, IVGPU_IOC_CLAIM, 1), EFAULT);
  CHECK_ERROR(ioctl(any.fd, IVGPU_IOC_INFO, 1), EFAULT);
  CHECK_ERROR(ioctl(any.fd, _IO(0xbd, 99)), ENOTTY);
  CHECK_ERROR(ioctl(any.fd, IVGPU_IOC_RING, IVGPU_RING_GPUS + 1), EINVAL);
  CHECK_ERROR(ioctl(any.fd, IVGPU_IOC_RING, -1L), EINVAL);
  CHECK_ERROR(ioctl(any.fd, IVGPU_IOC_RING, IVGPU_RING_WORKER), ENODEV);
  CHECK_ERROR(ioctl(any.fd, IVGPU_IOC_EVENTFD, -2), EINVAL);
  CHECK_ERROR(ioctl(any.fd, IVGPU_IOC_EVENTFD, 0), EINVAL);
  CHECK_ERROR(ioctl(any.fd, IVGPU_IOC_EVENTFD, 1000), EBADF);
  CHECK(ioctl(any.fd, IVGPU_IOC_RING, IVGPU_RING_BROKER) == 0, "the broker");
  const int reader = open(NODE, O_RDONLY);
  struct IvgpuModuleClaim got;
  CHECK(reader >= 0, "read-only");
  CHECK_ERROR(claim(reader, 0, "", &got), EBADF);
  CHECK_ERROR(ioctl(reader, IVGPU_IOC_RING, IVGPU_RING_BROKER), EBADF);
  CHECK_ERROR(ioctl(reader, IVGPU_IOC_RING, IVGPU_RING_GPUS), EBADF);
  CHECK_ERROR(read(reader, &got, 4), EINVAL);
  CHECK_ERROR(read(reader, &got, 8), ENODEV);
}

const struct Case claim_cases[] = {{"info", info},
                                   {"orphan", orphan},
                                   {"claim_and_release", claim_and_release},
                                   {"times", times},
                                   {"every_slot", every_slot},
                                   {"signalled", signalled},
                                   {"asked_about_gpus", asked_about_gpus},
                                   {"refused", refused},
                                   {NULL, NULL}};
