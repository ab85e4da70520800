// The guest library with a hostile worker. The worker fills the device page with invalid values, replies with any
// length and content, and writes to every word of the slot during calls.
//
// There is no second thread. The worker always claims to sleep, so the library rings the doorbell in each call, and the
// doorbell runs the worker. The program is honest: its buffers have exactly the stated sizes, and AddressSanitizer
// reports a write past a buffer. The clock advances only when it is read, so time-outs take no time.
#include <sys/mman.h>

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>

#include "guest/calls/calls.h"
#include "guest/calls/stub.h"
#include "guest/process/process.h"
#include "guest/process/thread.h"
#include "ring/api/records.h"
#include "tests/fuzz/clock.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/moving.h"
#include "tests/fuzz/reply_by_list.h"
#include "tests/other_side.h"

extern "C" int nanosleep(const timespec* time, timespec*) {
  fuzz::clock_ns +=
      static_cast<std::uint64_t>(time->tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time->tv_nsec);
  return 0;
}

namespace {

constexpr std::size_t arena_bytes = 16 << 20;
constexpr std::size_t region_bytes = ring::first_slot_offset + ring::arena_offset + arena_bytes;
constexpr std::uint64_t device_memory = 0x7d00'0000'0000;

// ---- the worker ----------------------------------------------------------------------------------------------------

class Worker {
 public:
  Worker(std::byte* region, fuzz::Input& in)
      : in_(in), region_(region), slot_(region + ring::first_slot_offset, ring::arena_offset + arena_bytes) {
    fill();
  }

  ring::RegionHeader& header() { return other_side::region(region_); }
  ring::SlotEntry& entry() { return other_side::entry(region_, 0); }

  // After this call the watched memory changes before reads. scribble() covers the words that a session polls.
  void move(fuzz::Moving& moving) {
    moving_ = &moving;
    moving.watch(region_ + sizeof(std::uint64_t), offsetof(ring::RegionHeader, heartbeat) - sizeof(std::uint64_t));
    watch_slot();
  }

  // Starts a released slot again, as the broker does. Returns false after two epochs.
  bool start_again() {
    if (++epoch_ > 2) return false;
    madvise(region_, region_bytes, MADV_DONTNEED);  // all zeros again
    taken_[0] = taken_[1] = 0, stalls_ = false;
    fill();
    if (moving_ != nullptr) moving_->forget(), watch_slot();
    return true;
  }

  // The doorbell: the guest has published a record or opened a channel.
  void turn() {
    for (std::uint32_t c = 0; c < 2; ++c) {
      ring::ChannelControl& control = other_side::control(slot_, c);
      if (control.tail != taken_[c]) serve(c);
      control.worker_asleep = 1;  // makes the next record ring the doorbell, too
    }
  }

 private:
  // The words with a reply's length and result.
  static constexpr std::size_t reply_words_bytes = 8;
  std::byte* reply_words(std::uint32_t channel) {
    return slot_.base() + ring::channel_offset(channel) + offsetof(ring::ChannelControl, reply_length);
  }
  void watch_slot() {
    constexpr std::size_t magic = sizeof(std::uint64_t);
    moving_->watch(slot_.base() + magic, offsetof(ring::SlotHeader, fault) - magic);
    moving_->watch(slot_.base() + ring::device_page_offset, sizeof(ring::DevicePage));
    for (std::uint32_t c = 0; c < 2; ++c) {
      moving_->watch(slot_.base() + ring::reply_offset(c), ring::reply_bytes);
      moving_->watch(reply_words(c), reply_words_bytes);
    }
  }

  void fill() {
    header().version = ring::layout_version, header().slot_count = 1;
    header().region_bytes = region_bytes, header().first_slot = ring::first_slot_offset;
    header().slot_bytes = slot_.bytes();
    header().magic = ring::region_magic;
    ring::SlotHeader& s = other_side::header(slot_);
    s.version = ring::layout_version, s.channels = ring::max_channels;
    s.arena_offset = ring::arena_offset, s.arena_bytes = arena_bytes;
    s.magic = ring::slot_magic;
    entry().state = ring::SlotWord{epoch_, ring::SlotState::Ready}.word();
    ring::DevicePage& page = other_side::device_page(slot_);
    page.driver_version = CUDA_VERSION, page.device_count = 2;
    for (ring::DeviceInfo& info : page.device) {
      std::strcpy(info.name, "a worker's word");
      for (auto& attribute : info.attribute) attribute = 1024;
      info.least_priority = 0, info.greatest_priority = -5;
    }
    for (std::uint32_t c = 0; c < 2; ++c) other_side::control(slot_, c).worker_asleep = 1;
    while (in_.once_in(4)) scribble();
  }

  // Writes random values to some words that the worker owns. Does not change the region's header, which the broker owns
  // and the guest checks only once.
  void scribble() {
    const auto value = in_.any();
    ring::ChannelControl& c = other_side::control(slot_, 0);
    switch (in_.below(14)) {
      case 0: c.head = static_cast<std::uint32_t>(value); break;
      case 1: c.executed = value; break;
      case 2: c.deferred_count = static_cast<std::uint32_t>(value); break;
      case 3: c.deferred_result = static_cast<std::uint32_t>(value); break;
      case 4: c.guest_asleep = static_cast<std::uint32_t>(value); break;
      case 5: other_side::header(slot_).fault = in_.once_in(4) ? static_cast<std::uint32_t>(value) : 0; break;
      case 6: other_side::header(slot_).output = static_cast<std::uint32_t>(value); break;
      case 7: other_side::header(slot_).channels = static_cast<std::uint32_t>(value); break;
      case 8: other_side::header(slot_).opened = static_cast<std::uint32_t>(value); break;
      case 9: std::memset(other_side::reply(slot_, 0).data() + in_.below(4096), in_.number(), 1 + in_.number()); break;
      case 10: set_attribute(static_cast<std::int32_t>(value)); break;
      case 11:
        std::memset(&other_side::device_page(slot_).device[in_.below(2)], in_.number(), sizeof(ring::DeviceInfo));
        break;
      case 12: other_side::device_page(slot_).device_count = static_cast<std::uint32_t>(value); break;
      default: header().heartbeat += 1; break;
    }
  }
  // Sets an attribute that the library uses in its computations, or any other attribute.
  void set_attribute(std::int32_t value) {
    constexpr CUdevice_attribute used[] = {CU_DEVICE_ATTRIBUTE_WARP_SIZE, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                                           CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
                                           CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X};
    ring::DeviceInfo& info = other_side::device_page(slot_).device[0];
    const std::size_t which =
        in_.once_in(2) ? in_.below(ring::max_attributes) : static_cast<std::size_t>(in_.pick(used));
    info.attribute[which] = value;
    if (in_.once_in(4)) info.greatest_priority = value;
  }

  void serve(std::uint32_t channel) {
    ring::ChannelControl& control = other_side::control(slot_, channel);
    ring::RecordHeader record;
    const std::byte* at = other_side::requests(slot_, channel).data() + (taken_[channel] & (ring::request_bytes - 1));
    std::memcpy(&record, at, sizeof record);
    if (record.call == ring::padding_call) {
      taken_[channel] += record.bytes;
      at = other_side::requests(slot_, channel).data();
      std::memcpy(&record, at, sizeof record);
    }
    taken_[channel] = control.tail;
    control.head = taken_[channel];
    if (record.flags & ring::flag_wants_reply) answer(control, channel, record, at + sizeof record);
    control.executed = record.position;
    if (in_.once_in(8)) control.deferred_count += 1;
    while (in_.once_in(4)) scribble();
    if (stalls_ || in_.once_in(64)) entry().state = ring::SlotWord{epoch_, ring::SlotState::Dead}.word();
  }

  void answer(ring::ChannelControl& control, std::uint32_t channel, const ring::RecordHeader& record,
              const std::byte* payload) {
    if (moving_ != nullptr) {
      moving_->renew(slot_.base() + ring::reply_offset(channel));
      moving_->renew(reply_words(channel));
    }
    const std::size_t length = reply(other_side::reply(slot_, channel), record.call, payload);
    control.reply_length = static_cast<std::uint32_t>(in_.once_in(16) ? in_.any() : length);
    control.reply_result = in_.once_in(8) ? static_cast<std::int32_t>(in_.any()) : 0;
    stalls_ = in_.once_in(64);
    control.reply_position = stalls_ ? in_.any() : record.position;
  }

  // Writes the beginning of the call's real reply, followed by bytes of the input.
  std::size_t reply(std::span<std::byte> to, std::uint16_t call, const std::byte* record) {
    ring::Writer w(to);
    switch (call) {
      case api::id_of::hello: w.slot(reinterpret_cast<std::uint64_t>(region_)); return w.used();
      case api::id_of::cuMemAlloc_v2:
      case api::id_of::cuMemAllocPitch_v2: put_memory(w, true); return w.used();
      case api::id_of::cuModuleGetGlobal_v2:
      case api::id_of::cuLibraryGetGlobal:
      case api::id_of::cuLibraryGetManaged:
        put_memory(w, false);
        if (!in_.once_in(8)) w.slot(in_.below(2));  // whether the memory is managed; an older worker omits this slot
        return w.used();
      case api::id_of::cuModuleGetFunction: put_found<api::FindFunctionRecord>(w, record); return w.used();
      case api::id_of::cuModuleGetTexRef: put_found<api::FindTextureReferenceRecord>(w, record); return w.used();
      case api::id_of::cuModuleGetSurfRef: put_found<api::FindSurfaceReferenceRecord>(w, record); return w.used();
      case api::id_of::cuLibraryGetKernel: put_found<api::FindKernelRecord>(w, record); return w.used();
      case api::id_of::cuKernelGetFunction: put_found<api::KernelsFunctionRecord>(w, record); return w.used();
      case api::id_of::cuLibraryGetModule: put_found<api::LibrarysModuleRecord>(w, record); return w.used();
      case api::id_of::take_output: put_text(w), put_text(w); break;
      case api::id_of::cuLinkComplete: w.slot(in_.once_in(8) ? in_.any() : in_.below(64)); break;
      case api::id_of::take_image: put_text(w); break;
      default:
        if (put_of_graphs(w, call)) return w.used();
        break;
    }
    const auto bytes = in_.take(in_.number());
    if (!bytes.empty()) w.bytes(bytes.data(), bytes.size());
    // More bytes than the reply has: the rest is what the mailbox contained before.
    return in_.once_in(2) ? ring::reply_bytes - in_.below(64) : w.used();
  }
  // Writes the reply to a call about captures and graphs. Returns false if the call is another one, or if its reply has
  // no list.
  bool put_of_graphs(ring::Writer& w, std::uint16_t call) {
    switch (call) {
#define CALL(...)
#define CUSTOM(id, ...) \
  case id:              \
    return put_by_list<typename api::Call<id>::Record>(w);
#define GUEST(...) CUSTOM(__VA_ARGS__)
#define LOCAL(...)
#define VARIANT(...)
#define ABSENT(...)
#include "ring/api/capture.def"
#include "ring/api/graph.def"
#undef CALL
#undef CUSTOM
#undef GUEST
#undef LOCAL
#undef VARIANT
#undef ABSENT
      default: return false;
    }
  }
  template <class Record>
  bool put_by_list(ring::Writer& w) {
    if constexpr (requires { typename Record::Reply; }) {
      fuzz::ReplyByList<typename Record::Reply>(in_, 0).write(w);
      return true;
    }
    return false;
  }
  // Writes the reply to a call that proposes an id.
  template <class Record>
  void put_found(ring::Writer& w, const std::byte* at) {
    Record record;
    std::memcpy(&record, at, sizeof record);
    fuzz::ReplyByList<typename Record::Reply>(in_, record.id).write(w);
  }
  void put_text(ring::Writer& w) {
    w.slot(in_.once_in(8) ? in_.any() : in_.below(32));
    const auto bytes = in_.take(in_.number());
    if (!bytes.empty()) w.bytes(bytes.data(), bytes.size());
  }
  void put_memory(ring::Writer& w, bool pitched) {
    w.slot(in_.once_in(8) ? in_.any() : device_memory + in_.number() * std::uint64_t{1 << 20});
    if (pitched) w.slot(in_.any());
    w.slot(in_.once_in(8) ? in_.any() : 1 << 20);
  }
  fuzz::Input& in_;
  std::byte* region_;
  ring::SlotView slot_;
  std::uint32_t taken_[2] = {};
  std::uint32_t epoch_ = 1;
  bool stalls_ = false;
  fuzz::Moving* moving_ = nullptr;
};

// The region as the library sees it: private memory, and a doorbell that is a function call.
class Region final : public guest::Region {
 public:
  Region(std::byte* base, Worker& worker) : base_(base), worker_(worker) {}
  std::byte* map(std::uint64_t offset, std::size_t bytes, void* address) override {
    return address == nullptr && offset <= region_bytes && bytes <= region_bytes - offset ? base_ + offset : nullptr;
  }
  void ring(std::uint32_t peer) override {
    if (peer == ring::peer_of_slot(0)) worker_.turn();
  }
  std::uint64_t size() const override { return region_bytes; }
  std::uint32_t peer() const override { return ring::first_guest_peer; }
  Broker broker() override {
    const ring::SlotState state = ring::SlotWord::of(worker_.entry().state).state;
    return state != ring::SlotState::Released || worker_.start_again() ? Broker::Unknown : Broker::Gone;
  }
  bool same_kernel() const override { return false; }
  bool same_address_space() const override { return true; }
  void forget() override {}

 private:
  std::byte* base_;
  Worker& worker_;
};

// ---- the program ---------------------------------------------------------------------------------------------------

// The handles and addresses that a program has received so far.
struct Known {
  std::uint64_t handles[api::handle_kinds] = {};
  CUdeviceptr memory = 0, reserved = 0;
  void* pinned = nullptr;
};

template <class T>
void remember(Known& known, T handle, api::Handle kind = api::handle_of<T>) {
  known.handles[static_cast<std::size_t>(kind)] = api::number_of(handle);
}
template <class T>
T some(const Known& known, fuzz::Input& in, api::Handle kind = api::handle_of<T>) {
  const std::uint64_t value = known.handles[static_cast<std::size_t>(kind)];
  return api::from_number<T>(in.once_in(32) ? in.any() : value);
}

// Makes the call of a CALL line with plausible parameters.
template <class S>
class AnyCall;
template <class... P, api::Arg... A>
class AnyCall<api::Shape<CUresult(P...), A...>> {
  static constexpr std::array<api::Arg, sizeof...(A)> args{A...};
  using Params = std::tuple<P...>;

 public:
  AnyCall(Known& known, fuzz::Input& in) : known_(known), in_(in) {}
  void make(CUresult (*call)(P...)) {
    each([&]<std::size_t I>() { by_value<I>(); });
    each([&]<std::size_t I>() { by_pointer<I>(); });
    if (std::apply(call, params_) == CUDA_SUCCESS) each([&]<std::size_t I>() { keep<I>(); });
  }

 private:
  template <class F>
  static void each(F f) {
    [&]<std::size_t... I>(std::index_sequence<I...>) { (f.template operator()<I>(), ...); }
    (std::make_index_sequence<sizeof...(P)>{});
  }
  template <std::size_t I>
  using Param = std::tuple_element_t<I, Params>;
  template <std::size_t I>
  static constexpr api::Handle kind = api::kind_of_param<Param<I>, args[I]>;
  // True if the parameter points to a handle or an address that the call returns.
  template <std::size_t I>
  static constexpr bool is_answer = args[I].dir == api::Dir::Creates || args[I].dir == api::Dir::Finds ||
                                    args[I].dir == api::Dir::Knows || args[I].dir == api::Dir::Memory;

  template <std::size_t I>
  void by_value() {
    using T = Param<I>;
    constexpr api::Dir dir = args[I].dir;
    constexpr bool address = dir == api::Dir::Device || dir == api::Dir::Frees;
    constexpr bool reserved = dir == api::Dir::Reserved || dir == api::Dir::Inside;
    if constexpr (address || reserved)
      std::get<I>(params_) =
          api::from_number<T>((reserved ? known_.reserved : known_.memory) + (in_.once_in(8) ? in_.any() : 0));
    else if constexpr (dir != api::Dir::Value)
      std::get<I>(params_) = nullptr;
    else if constexpr (kind<I> != api::Handle::None)
      std::get<I>(params_) = some<T>(known_, in_, kind<I>);
    else
      std::get<I>(params_) = static_cast<T>(in_.number());  // small, since it may be the length of a buffer
  }
  template <std::size_t I>
  void by_pointer() {
    constexpr api::Arg a = args[I];
    if constexpr (a.dir == api::Dir::In || a.dir == api::Dir::Out || a.dir == api::Dir::Ids || is_answer<I>) {
      using T = api::Pointee<Param<I>>;
      std::size_t bytes = sizeof(T);
      if constexpr (a.extent == api::Extent::Valued) bytes = sizeof(std::uint64_t);
      if constexpr (a.extent == api::Extent::Row) bytes *= static_cast<std::size_t>(a.count);
      if constexpr (a.extent == api::Extent::Counted && a.dir != api::Dir::Memory)
        bytes *= static_cast<std::size_t>(std::get<static_cast<std::size_t>(a.count)>(params_));
      if (in_.once_in(16)) return;  // a null pointer
      buffers_[I].reset(new std::byte[bytes]{});
      std::get<I>(params_) = reinterpret_cast<Param<I>>(buffers_[I].get());
    }
  }
  template <std::size_t I>
  void keep() {
    if constexpr (args[I].dir == api::Dir::Memory)
      (args[I].range == api::Range::Made ? known_.reserved : known_.memory) = *std::get<I>(params_);
    else if constexpr (is_answer<I>)
      remember(known_, *std::get<I>(params_), kind<I>);
  }

  Known& known_;
  fuzz::Input& in_;
  Params params_{};
  std::unique_ptr<std::byte[]> buffers_[sizeof...(P) + 1];
};

using Step = void (*)(Known&, fuzz::Input&);
constexpr const char* ptx = ".version 7.5\n.target sm_75\n";

void load(Known& k, fuzz::Input& in) {
  CUjit_option names[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_WALL_TIME};
  const std::size_t room = 1 + in.number();
  const std::unique_ptr<char[]> text(new char[room]);
  void* values[] = {text.get(), reinterpret_cast<void*>(room), nullptr};
  const unsigned count = static_cast<unsigned>(in.below(4));
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  if (in.once_in(2)) {
    if (guest::calls::cuLibraryLoadData(&library, ptx, names, values, count, nullptr, nullptr, 0) == CUDA_SUCCESS)
      remember(k, library);
  } else if (guest::calls::cuModuleLoadDataEx(&module, ptx, count, names, values) == CUDA_SUCCESS) {
    remember(k, module);
  }
}

// Creates, uses and destroys a link. No later call uses the link, so no call writes to its buffers afterwards.
void link(Known&, fuzz::Input& in) {
  CUjit_option names[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_WALL_TIME};
  const std::size_t room = 1 + in.number();
  const std::unique_ptr<char[]> text(new char[room]);
  void* values[] = {text.get(), reinterpret_cast<void*>(room), nullptr};
  std::string input = ptx;
  CUlinkState state = nullptr;
  void* image = nullptr;
  std::size_t bytes = 0;
  if (guest::calls::cuLinkCreate_v2(static_cast<unsigned>(in.below(4)), names, values, &state) != CUDA_SUCCESS) return;
  guest::calls::cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, input.data(), input.size(), "input", 0, nullptr, nullptr);
  if (guest::calls::cuLinkComplete(state, &image, &bytes) == CUDA_SUCCESS && bytes != 0)
    fuzz::require(std::count(static_cast<char*>(image), static_cast<char*>(image) + bytes, 'x') >= 0,
                  "it is all there");
  guest::calls::cuLinkDestroy(state);
}

void look_up(Known& k, fuzz::Input& in) {
  CUfunction f = nullptr;
  CUkernel kernel = nullptr;
  CUmodule m = nullptr;
  CUtexref texture = nullptr;
  CUsurfref surface = nullptr;
  CUdeviceptr at = 0;
  std::size_t bytes = 0;
  switch (in.below(9)) {
    case 0:
      if (guest::calls::cuModuleGetFunction(&f, some<CUmodule>(k, in), "f") == CUDA_SUCCESS) remember(k, f);
      break;
    case 1:
      if (guest::calls::cuLibraryGetKernel(&kernel, some<CUlibrary>(k, in), "k") == CUDA_SUCCESS) remember(k, kernel);
      break;
    case 2:
      if (guest::calls::cuKernelGetFunction(&f, some<CUkernel>(k, in)) == CUDA_SUCCESS) remember(k, f);
      break;
    case 3:
      if (guest::calls::cuLibraryGetModule(&m, some<CUlibrary>(k, in)) == CUDA_SUCCESS) remember(k, m);
      break;
    case 4: guest::calls::cuModuleGetGlobal_v2(&at, &bytes, some<CUmodule>(k, in), "g"); break;
    case 5:
      if (guest::calls::cuModuleGetTexRef(&texture, some<CUmodule>(k, in), "t") == CUDA_SUCCESS) remember(k, texture);
      break;
    case 6:
      if (guest::calls::cuModuleGetSurfRef(&surface, some<CUmodule>(k, in), "s") == CUDA_SUCCESS) remember(k, surface);
      break;
    case 7: guest::calls::cuLibraryGetManaged(&at, &bytes, some<CUlibrary>(k, in), "m"); break;
    default: guest::calls::cuLibraryGetGlobal(&at, &bytes, some<CUlibrary>(k, in), "g"); break;
  }
  if (at != 0) k.memory = at;
}

void launch(Known& k, fuzz::Input& in) {
  // A launch reads as many bytes per parameter as the worker has claimed, so this program's buffers have the maximum
  // size.
  static std::vector<std::byte> longest(ring::max_record);
  static std::vector<void*> params(ring::reply_bytes / 8, longest.data());
  const unsigned block = in.once_in(8) ? static_cast<unsigned>(in.any()) : 32;
  guest::calls::cuLaunchKernel(some<CUfunction>(k, in), 1, 1, 1, block, 1 + in.number() % 2u, 1, 0,
                               some<CUstream>(k, in), params.data(), nullptr);
}

void copy(Known& k, fuzz::Input& in) {
  constexpr std::size_t lengths[] = {1, 8, 64, 4096, 32 << 10, (32 << 10) + 1, 1 << 20};
  const std::size_t bytes = in.pick(lengths);
  const std::unique_ptr<std::byte[]> memory(new std::byte[bytes]{});
  void* const host = k.pinned != nullptr && bytes <= 4096 && in.once_in(2) ? k.pinned : memory.get();
  switch (in.below(4)) {
    case 0: guest::calls::cuMemcpyHtoD_v2(k.memory, host, bytes); break;
    case 1: guest::calls::cuMemcpyDtoH_v2(host, k.memory, bytes); break;
    case 2: guest::calls::cuMemcpyHtoDAsync_v2(k.memory, host, bytes, some<CUstream>(k, in)); break;
    default: guest::calls::cuMemcpyDtoHAsync_v2(host, k.memory, bytes, some<CUstream>(k, in)); break;
  }
}

void memory(Known& k, fuzz::Input& in) {
  std::size_t pitch = 0;
  switch (in.below(5)) {
    case 0: guest::calls::cuMemAlloc_v2(&k.memory, 1 + in.number()); break;
    case 1: guest::calls::cuMemAllocPitch_v2(&k.memory, &pitch, 16, 16, 4); break;
    case 2: guest::calls::cuMemFree_v2(k.memory); break;
    case 3: guest::calls::cuMemHostAlloc(&k.pinned, 4096 << in.below(11), 0); break;
    default:
      if (guest::calls::cuMemFreeHost(k.pinned) == CUDA_SUCCESS) k.pinned = nullptr;
      break;
  }
}

void devices(Known&, fuzz::Input& in) {
  const CUdevice device = static_cast<CUdevice>(in.below(3));
  const int room = in.number();
  const std::unique_ptr<char[]> text(new char[static_cast<std::size_t>(room) + 1]{});
  int value = 0, second = 0;
  if (guest::calls::cuDeviceGetName(text.get(), room, device) == CUDA_SUCCESS)
    fuzz::require(std::strlen(text.get()) <= sizeof(ring::DeviceInfo::name), "a name ends where its field does");
  if (guest::calls::cuDeviceGetPCIBusId(text.get(), room, device) == CUDA_SUCCESS)
    fuzz::require(std::strlen(text.get()) <= sizeof(ring::DeviceInfo::bus_id), "a bus id ends where its field does");
  guest::calls::cuDeviceGetByPCIBusId(&value, "0000:01:00.0");
  guest::calls::cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(in.number<std::uint16_t>()), device);
  guest::calls::cuDeviceComputeCapability(&value, &second, device);
  guest::calls::cuCtxGetStreamPriorityRange(&value, &second);
}

void questions(Known& k, fuzz::Input& in) {
  int value = 0, second = 0;
  const char* name = nullptr;
  std::size_t offset = 0, bytes = 0;
  CUdeviceptr at = 0;
  guest::calls::cuStreamGetPriority(some<CUstream>(k, in), &value);
  guest::calls::cuFuncGetName(&name, some<CUfunction>(k, in));
  guest::calls::cuKernelGetName(&name, some<CUkernel>(k, in));
  guest::calls::cuFuncGetParamInfo(some<CUfunction>(k, in), in.number(), &offset, &bytes);
  guest::calls::cuMemGetAddressRange_v2(&at, &bytes, k.memory);
  guest::calls::cuPointerGetAttribute(&at, static_cast<CUpointer_attribute>(in.below(24)), k.memory);
  if (in.once_in(4))
    guest::calls::cuOccupancyMaxPotentialBlockSize(&value, &second, some<CUfunction>(k, in), nullptr, 0, in.number());
}

// Calls with buffers of exactly the stated size.
void lists(Known& k, fuzz::Input& in) {
  std::size_t count = in.below(8);
  const std::unique_ptr<CUgraphNode[]> nodes(new CUgraphNode[count]{}), ends(new CUgraphNode[count]{});
  const std::unique_ptr<CUgraphEdgeData[]> data(new CUgraphEdgeData[count]{});
  CUgraphNode* const to = in.once_in(4) ? nullptr : nodes.get();
  const std::size_t room = count;
  CUresult result = CUDA_ERROR_UNKNOWN;
  switch (in.below(5)) {
    case 0: result = guest::calls::cuGraphGetNodes(some<CUgraph>(k, in), to, &count); break;
    case 1: result = guest::calls::cuGraphGetRootNodes(some<CUgraph>(k, in), to, &count); break;
    case 2:
      result = guest::calls::cuGraphGetEdges_v2(some<CUgraph>(k, in), to, to == nullptr ? nullptr : ends.get(),
                                                data.get(), &count);
      break;
    case 3:
      result = guest::calls::cuGraphNodeGetDependencies_v2(some<CUgraphNode>(k, in), to, data.get(), &count);
      break;
    default:
      result = guest::calls::cuGraphNodeGetDependentNodes_v2(some<CUgraphNode>(k, in), to, data.get(), &count);
      break;
  }
  if (result != CUDA_SUCCESS || to == nullptr) return;
  fuzz::require(count <= room, "a list is not longer than its room");
  for (std::size_t i = 0; i < count; ++i)
    if (nodes[i] != nullptr) remember(k, nodes[i]);
}

void nodes(Known& k, fuzz::Input& in) {
  static std::vector<std::byte> longest(ring::max_record);
  static std::vector<void*> params(ring::reply_bytes / 8, longest.data());
  CUgraphNode node = nullptr;
  CUDA_KERNEL_NODE_PARAMS_v2 kernel{};
  CUDA_MEMCPY3D copy{};
  CUDA_HOST_NODE_PARAMS function{};
  CUkernelNodeAttrValue value{};
  CUgraphNodeParams any{};
  CUgraphConditionalHandle condition = 0;
  const auto graph = some<CUgraph>(k, in);
  switch (in.below(7)) {
    case 0:
      kernel.func = some<CUfunction>(k, in), kernel.kernelParams = params.data();
      kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = 1;
      kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1;
      if (guest::calls::cuGraphAddKernelNode_v2(&node, graph, nullptr, 0, &kernel) == CUDA_SUCCESS) remember(k, node);
      break;
    case 1: guest::calls::cuGraphKernelNodeGetParams_v2(some<CUgraphNode>(k, in), &kernel); break;
    case 2: guest::calls::cuGraphMemcpyNodeGetParams(some<CUgraphNode>(k, in), &copy); break;
    case 3: guest::calls::cuGraphHostNodeGetParams(some<CUgraphNode>(k, in), &function); break;
    case 4:
      guest::calls::cuGraphKernelNodeGetAttribute(some<CUgraphNode>(k, in), CU_LAUNCH_ATTRIBUTE_PRIORITY, &value);
      break;
    case 5:
      copy.dstMemoryType = copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
      copy.dstDevice = copy.srcDevice = k.memory;
      copy.WidthInBytes = copy.Height = copy.Depth = 1;
      if (guest::calls::cuGraphAddMemcpyNode(&node, graph, nullptr, 0, &copy, nullptr) == CUDA_SUCCESS)
        remember(k, node);
      break;
    default:
      if (guest::Stub<api::id_of::cuGraphConditionalHandleCreate>::call(&condition, graph, guest::primary(0).handle, 0,
                                                                        0) != CUDA_SUCCESS)
        break;
      any.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
      any.conditional.handle = condition, any.conditional.type = CU_GRAPH_COND_TYPE_SWITCH;
      any.conditional.size = static_cast<unsigned>(in.below(4));
      if (guest::calls::cuGraphAddNode_v2(&node, graph, nullptr, nullptr, 0, &any) != CUDA_SUCCESS) break;
      for (unsigned i = 0; i < any.conditional.size; ++i)
        if (any.conditional.phGraph_out[i] != nullptr) remember(k, any.conditional.phGraph_out[i]);
      break;
  }
}

void captures(Known& k, fuzz::Input& in) {
  [[maybe_unused]] static volatile unsigned char read;
  auto status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t number = 0;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  const CUgraphNode* nodes = nullptr;
  const CUgraphEdgeData* edges = nullptr;
  std::size_t count = 0;
  CUDA_GRAPH_INSTANTIATE_PARAMS how{};
  CUgraphExecUpdateResultInfo info{};
  const auto stream = some<CUstream>(k, in);
  switch (in.below(4)) {
    case 0:
      if (guest::calls::cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS && graph != nullptr) remember(k, graph);
      break;
    case 1:
      if (guest::calls::cuStreamGetCaptureInfo_v3(stream, &status, &number, &graph, &nodes, &edges, &count) !=
              CUDA_SUCCESS ||
          status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        break;
      for (std::size_t i = 0; i < count; ++i) read = edges[i].type;  // AddressSanitizer checks the access
      if (count != 0 && nodes[count - 1] != nullptr) remember(k, nodes[count - 1]);
      break;
    case 2:
      if (guest::calls::cuGraphInstantiateWithParams(&exec, some<CUgraph>(k, in), &how) == CUDA_SUCCESS)
        remember(k, exec);
      break;
    default: guest::calls::cuGraphExecUpdate_v2(some<CUgraphExec>(k, in), some<CUgraph>(k, in), &info); break;
  }
}

void ends(Known& k, fuzz::Input& in) {
  switch (in.below(4)) {
    case 0: guest::Stub<api::id_of::cuModuleUnload>::call(some<CUmodule>(k, in)); break;
    case 1: guest::Stub<api::id_of::cuLibraryUnload>::call(some<CUlibrary>(k, in)); break;
    case 2: guest::calls::cuDevicePrimaryCtxReset_v2(0), guest::primary(0).uses = 1; break;
    default: guest::this_thread().per_thread = in.once_in(2); break;
  }
}

constexpr Step steps[] = {
    load,   look_up, launch, copy, memory, devices, questions, ends,  load,  look_up,
    launch, copy,    memory, link, lists,  nodes,   captures,  lists, nodes, captures,
#define CALL(id, ...) \
  [](Known& k, fuzz::Input& in) { AnyCall<api::Call<id>::Shape>(k, in).make(guest::Stub<id>::call); },
#define CUSTOM(...)
#define LOCAL(...)
#define VARIANT(...)
#define ABSENT(...)
#include "ring/api/driver.def"
};

// ---- one program, from start to end ---------------------------------------------------------------------------------

std::byte* the_region() {
  static std::byte* const at = static_cast<std::byte*>(
      mmap(nullptr, region_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  // Maps zeros again, since the library unmaps the first pages of a region that it refuses.
  void* const again =
      mmap(at, region_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  fuzz::require(again == at, "the region is mapped again");
  return at;
}

// A process normally has one session. Here each input has its own session, in a thread without state.
void begin(guest::Session* session) {
  static const bool adopted = guest::initialize_with(session) == CUDA_SUCCESS;
  fuzz::require(adopted, "the first session is taken");
  guest::set_session(session);
  guest::Thread& thread = guest::this_thread();
  thread.channel = nullptr, thread.per_thread = false;
  thread.own_stream(guest::primary(0)).last_use.forget();
  thread.contexts = {&guest::primary(0)};
  guest::primary(0).uses = 1;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input in(data, std::min<std::size_t>(size, 2048));
  fuzz::clock_step_ns = 20'000;
  static guest::Session* const first = [] {
    setenv("IVGPU_OFF", "copy_threads", 1);  // without other threads, an input always has the same meaning
    fuzz::Input none(nullptr, 0);
    std::byte* const region = the_region();
    Worker worker(region, none);
    guest::Session* const opened = guest::Session::open(std::make_unique<Region>(region, worker), false).release();
    begin(opened);
    return opened;
  }();
  fuzz::require(first != nullptr, "an honest worker gets a session");
  std::byte* const region = the_region();
  Worker worker(region, in);
  std::optional<fuzz::Moving> moving;
  if (fuzz::memory_moves) worker.move(moving.emplace(in));
  const std::unique_ptr<guest::Session> session = guest::Session::open(std::make_unique<Region>(region, worker), false);
  if (session == nullptr) return 0;
  for (std::uint32_t device = 0; device < guest::device_count(); ++device)  // as in the first session
    session->objects.create(api::Handle::Context, nullptr);
  begin(session.get());
  Known known;
  for (int calls = 0; calls < 200 && !in.empty(); ++calls) in.pick(steps)(known, in);
  guest::set_session(nullptr);
  return 0;
}
