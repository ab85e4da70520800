// A worker's start up to Ready (host/worker/start.cc), while a guest writes to the slot. Order and memory are real; the
// jail is fake (tests/fuzz/played_jail.h). The input decides which layers fail, and how the driver describes its
// devices.
//
// The guest writes through its own mapping: at each layer, at each question to the driver, and around each access to
// the slot. The target expects the following. The worker does not access the slot before the last layer is in force,
// since the access would fault. It reads each byte at most once. Bytes that the guest did not overwrite come from
// private memory. `magic` is the last word written. The worker reports Ready once, afterwards, with the layers in
// force. A refused start leaves the slot unchanged and reports nothing.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "host/base/process/control.h"
#include "host/session/device_page.h"
#include "host/worker/start.h"
#include "ring/api/known_ids.h"
#include "ring/ops/telemetry.h"
#include "ring/shared/observed.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/played_jail.h"
#include "tests/other_side.h"

namespace {

using host::worker::JailMode;

constexpr std::size_t slot_bytes = ring::min_slot_bytes;
// The bytes that a start writes: the header and the device page.
constexpr std::size_t told_bytes = ring::device_page_offset + sizeof(ring::DevicePage);

class Start;
Start* start = nullptr;  // the current one

// ---- the driver's description of its devices -----------------------------------------------------------------------

struct Description {
  int devices = 1;
  CUresult init = CUDA_SUCCESS;
  std::vector<char> text;     // names and bus ids, up to the buffer's size
  std::uint32_t special = 0;  // the attribute with a special value
  int value = 0;
} description;

void guest_acts();

template <class... P>
CUresult say_nothing(P...) {
  return guest_acts(), CUDA_ERROR_NOT_SUPPORTED;
}
CUresult write_text(char* to, int room, CUdevice) {
  guest_acts();
  const std::size_t bytes = std::min(description.text.size(), static_cast<std::size_t>(room));
  std::copy_n(description.text.begin(), bytes, to);  // without a NUL
  return CUDA_SUCCESS;
}

host::Driver describing() {
  host::Driver d;
  d.cuDriverGetVersion = [](int* version) { return guest_acts(), *version = 13000, CUDA_SUCCESS; };
  d.cuDeviceGetCount = [](int* count) { return guest_acts(), *count = description.devices, CUDA_SUCCESS; };
  d.cuDeviceGet = [](CUdevice* device, int ordinal) { return *device = ordinal, CUDA_SUCCESS; };
  d.cuDeviceGetName = write_text;
  d.cuDeviceGetPCIBusId = write_text;
  d.cuDeviceGetUuid = say_nothing;
  d.cuDeviceGetUuid_v2 = say_nothing;
  d.cuDeviceTotalMem_v2 = [](std::size_t* bytes, CUdevice) { return *bytes = ~std::size_t{0}, CUDA_SUCCESS; };
  d.cuCtxGetStreamPriorityRange = [](int* a, int* b) { return *a = description.value, *b = -1, CUDA_SUCCESS; };
  d.cuCtxGetLimit = [](std::size_t* value, CUlimit) { return *value = 7, CUDA_ERROR_UNSUPPORTED_LIMIT; };
  d.cuDeviceGetAttribute = [](int* value, CUdevice_attribute attribute, CUdevice) {
    *value = static_cast<std::uint32_t>(attribute) == description.special ? description.value : 0;
    return CUDA_SUCCESS;
  };
  return d;
}

// ---- a start -------------------------------------------------------------------------------------------------------

class Start {
 public:
  explicit Start(fuzz::Input& in) : in_(in) {
    start = this;
    fuzz::played_jail = {.missing = [](host::jail::Layer layer) { return start->layer(layer); }};
    ring::observer = [](const void* at, std::size_t bytes) { start->before_read(at, bytes); };
    ring::write_observer = [](const void* at, std::size_t bytes) { start->before_write(at, bytes); };
    describe();
    open_descriptors();
  }
  ~Start() {
    ring::observer = ring::write_observer = nullptr;
    for (const auto& [at, bytes] : mapped_) munmap(at, bytes);
    munmap(guest_, slot_bytes);
    for (const int fd : control_) close(fd);
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);  // needed by the leak checker, which inspects this process
    start = nullptr;
  }

  void run() {
    stderr = nowhere();  // hides the reasons of refusals
    running_ = true;
    const int code = host::worker::run(options_, backend());
    running_ = false;
    stderr = errors_;
    promise(fuzz::played_jail.in_order, "each layer is closed once, and seccomp is the last");
    if (served_) {
      promise(code == served_code, "the exit code is the session's");
    } else {
      promise(code == host::worker::exit_jail_missing, "only a missing layer refuses a start");
      promise(options_.jail == JailMode::Required, "only a jail that is required refuses a start");
      promise(!written_, "a refused start leaves the slot untouched");
    }
    promise(told() == (served_ ? 1 : 0), "Ready is told once, by a worker that serves");
  }

  void guest_acts() {
    if (!in_.once_in(4)) return;
    const std::uint64_t value = in_.any();
    const std::size_t at = in_.once_in(2) ? in_.below(sizeof(ring::SlotHeader)) : in_.below(told_bytes);
    const std::size_t bytes = std::min(sizeof value, told_bytes - at);
    std::memcpy(guest_ + at, &value, bytes);
    std::memcpy(wanted_.data() + at, &value, bytes);
  }

  // Records the mappings of run(), to unmap them later. The slot stays inaccessible until the jail is complete.
  void mapped(void* at, std::size_t bytes, int fd) {
    if (!running_) return;
    mapped_.push_back({at, bytes});
    if (fd != options_.region_fd) return;
    slot_ = static_cast<std::byte*>(at);
    mprotect(slot_, slot_bytes, PROT_NONE);
  }

 private:
  static constexpr int served_code = 77;
  static constexpr std::uint32_t guest_spin_us = 11;

  // Same as fuzz::require(), but restores stderr first, since run() redirects it.
  void promise(bool holds, const char* what) const {
    if (!holds) stderr = errors_;
    fuzz::require(holds, "%s", what);
  }
  static FILE* nowhere() {
    static FILE* const file = std::fopen("/dev/null", "w");
    return file;
  }

  void describe() {
    description = {};
    description.devices = static_cast<int>(in_.once_in(4) ? in_.any() : in_.below(4));
    if (in_.once_in(8)) description.init = CUDA_ERROR_NO_DEVICE;
    description.text.assign(in_.once_in(4) ? 512 : in_.below(40), static_cast<char>('a' + in_.below(26)));
    description.special = static_cast<std::uint32_t>(in_.once_in(2) ? 88 : in_.below(ring::max_attributes));
    description.value = static_cast<int>(in_.any());
  }

  void open_descriptors() {
    socketpair(AF_UNIX, SOCK_SEQPACKET, 0, control_);
    options_.control_fd = control_[0];
    options_.region_fd = memfd_create("fuzz-region", 0);
    options_.telemetry_fd = memfd_create("fuzz-telemetry", 0);
    const bool sized = ftruncate(options_.region_fd, slot_bytes) == 0 &&
                       ftruncate(options_.telemetry_fd, static_cast<off_t>(ring::telemetry_bytes)) == 0;
    promise(sized, "the memory for a start is there");
    options_.slot_bytes = slot_bytes;
    options_.guest_spin_us = guest_spin_us;
    options_.library = "/proc/self/exe";
    options_.jail = in_.once_in(2) ? JailMode::Required : JailMode::BestEffort;
    guest_ =
        static_cast<std::byte*>(mmap(nullptr, slot_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, options_.region_fd, 0));
  }

  std::string layer(host::jail::Layer layer) {
    guest_acts();
    if (layer == host::jail::Layer::Seccomp) mprotect(slot_, slot_bytes, PROT_READ | PROT_WRITE);
    return in_.once_in(8) ? std::string(in_.below(200), 'm') : std::string();
  }

  host::worker::Backend backend() {
    return {[this](const std::string&) { return guest_acts(), host::Result<void>(); },
            [this](ring::DevicePage& page) {
              host::fill_device_page(driver_, description.init, page);
              make(page);
              guest_acts();
            },
            [this](ring::SlotView slot, const host::worker::Shared&) { return serve(slot); }};
  }

  // ---- the slot ----------------------------------------------------------------------------------------------------

  // Offset and length of these bytes in the header and device page; {0, 0} for other memory.
  std::pair<std::size_t, std::size_t> part(const void* at, std::size_t bytes) const {
    const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(at) - slot_);
    if (slot_ == nullptr || offset >= told_bytes) return {0, 0};
    return {offset, std::min(offset + bytes, told_bytes)};
  }

  void before_read(const void* at, std::size_t bytes) {
    if (served_) return;
    const auto [from, to] = part(at, bytes);
    for (const auto& [begin, end] : read_) promise(from >= end || to <= begin, "a byte of shared memory is read once");
    read_.push_back({from, to});
    guest_acts();
  }

  void before_write(const void* at, std::size_t bytes) {
    if (served_) return;
    guest_acts();
    const auto [from, to] = part(at, bytes);
    promise(fuzz::played_jail.closed(), "the slot is written in the finished jail");
    promise(!ready_, "magic is written last");
    promise(told() == 0, "Ready is told at the end");
    std::copy(made_.begin() + static_cast<std::ptrdiff_t>(from), made_.begin() + static_cast<std::ptrdiff_t>(to),
              wanted_.begin() + static_cast<std::ptrdiff_t>(from));
    written_ = true;
    ready_ = from == 0 && to == sizeof(ring::SlotHeader::magic);
  }

  int serve(ring::SlotView slot) {
    served_ = true;
    promise(ready_ && slot.base() == slot_ && slot.bytes() == slot_bytes, "what is served is the whole slot");
    promise(std::memcmp(guest_, wanted_.data(), told_bytes) == 0, "the guest finds what was made, or its own");
    host::worker::ReadyMessage ready{};
    const ssize_t bytes = recv(control_[1], &ready, sizeof ready, MSG_DONTWAIT | MSG_PEEK);
    promise(bytes == sizeof ready && ready.kind == host::worker::ready_kind, "Ready is told before the session");
    promise(ready.layers == fuzz::played_jail.holding, "the broker is told the layers that hold");
    promise(ready.text[sizeof ready.text - 1] == '\0', "the text of what is missing ends");
    return served_code;
  }

  // Makes the contents that a guest should find: a header, and this page.
  void make(const ring::DevicePage& page) {
    const ring::SlotHeader header{.magic = ring::slot_magic,
                                  .version = ring::layout_version,
                                  .channels = ring::max_channels,
                                  .arena_offset = ring::arena_offset,
                                  .arena_bytes = slot_bytes - ring::arena_offset,
                                  .spin_us = guest_spin_us,
                                  .driver_calls = api::known_ids.driver,
                                  .session_calls = api::known_ids.session,
                                  .fault = 0,
                                  .output = 0,
                                  .opened = 0};
    std::memcpy(made_.data(), &header, sizeof header);
    std::memcpy(made_.data() + ring::device_page_offset, &page, sizeof page);
    promise(page.device_count <= ring::max_devices, "no more devices are told of than the page has");
    for (const ring::DeviceInfo& info : page.device)
      promise(info.name[sizeof info.name - 1] == 0 && info.bus_id[sizeof info.bus_id - 1] == 0, "texts end");
  }

  // The number of messages to the broker.
  int told() {
    int bytes[64], count = 0;
    while (recv(control_[1], bytes, sizeof bytes, MSG_DONTWAIT) > 0) ++count;
    return count;
  }

  fuzz::Input& in_;
  FILE* const errors_ = stderr;
  host::worker::Options options_;
  const host::Driver driver_ = describing();
  int control_[2] = {-1, -1};
  std::vector<std::pair<void*, std::size_t>> mapped_;
  std::byte *slot_ = nullptr, *guest_ = nullptr;  // the worker's mapping, and the guest's
  // The private copy, and the expected contents, which are the copy and all later writes of the guest.
  std::vector<std::byte> made_ = std::vector<std::byte>(told_bytes), wanted_ = made_;
  std::vector<std::pair<std::size_t, std::size_t>> read_;
  bool running_ = false, written_ = false, ready_ = false, served_ = false;
};

void guest_acts() { start->guest_acts(); }

}  // namespace

extern "C" void* __real_mmap(void* at, std::size_t bytes, int protection, int flags, int fd, off_t offset);
extern "C" void* __wrap_mmap(void* at, std::size_t bytes, int protection, int flags, int fd, off_t offset) {
  void* const got = __real_mmap(at, bytes, protection, flags, fd, offset);
  if (got != MAP_FAILED && start != nullptr) start->mapped(got, bytes, fd);
  return got;
}

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input in(data, size);
  Start(in).run();
  return 0;
}
