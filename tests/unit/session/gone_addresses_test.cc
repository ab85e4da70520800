// Addresses whose memory has ended with a context or a reservation, or because of another channel in the middle of a
// call. In some tests the freed range of a reservation becomes ordinary memory of the process, as could happen in the C
// library's heap. No copy may reach that memory.
#include <chrono>
#include <functional>
#include <future>
#include <limits>
#include <thread>
#include <utility>

#include "tests/deadline.h"
#include "tests/unit/session/records.h"

namespace {

using namespace session_test;
namespace ids = api::id_of;

constexpr std::uint64_t piece = 2 << 20;
constexpr unsigned created = ring::first_created_context;

class GoneAddresses : public testing::Test {
 protected:
  GoneAddresses() : driver_(world.driver.table()), session(world.session->slot, driver_, World::with(0)) {
    inner_ = &world.driver.table();
    driver_.cuMemMap = [](CUdeviceptr at, std::size_t bytes, std::size_t offset, CUmemGenericAllocationHandle handle,
                          unsigned long long flags) {
      return then_other(inner_->cuMemMap(at, bytes, offset, handle, flags));
    };
    driver_.cuMemUnmap = [](CUdeviceptr at, std::size_t bytes) { return then_other(inner_->cuMemUnmap(at, bytes)); };
    driver_.cuMemAddressFree = [](CUdeviceptr at, std::size_t bytes) {
      return then_other(inner_->cuMemAddressFree(at, bytes));
    };
    driver_.cuMemcpy3D_v2 = [](const CUDA_MEMCPY3D* copy) {
      then_other(CUDA_SUCCESS);
      return inner_->cuMemcpy3D_v2(copy);
    };
    driver_.cuMemcpy3DAsync_v2 = [](const CUDA_MEMCPY3D* copy, CUstream stream) {
      then_other(CUDA_SUCCESS);
      return inner_->cuMemcpy3DAsync_v2(copy, stream);
    };
  }
  ~GoneAddresses() override {
    if (thread_.joinable()) thread_.join();
  }

  Answer send(int call, const Payload& payload, std::uint16_t flags = 0) {
    return send_to(session, call, payload, flags);
  }
  CUresult result_of(int call, const Payload& payload) { return send(call, payload).result; }

  // Sends the call. While the driver executes the call, another channel does `other`: at the driver's entry for a copy,
  // after the driver's work for other calls. If `other` has to wait for the call, the call continues after `moment`.
  Answer send_while(int call, const Payload& payload, std::function<void()> other,
                    std::chrono::milliseconds moment = std::chrono::milliseconds(200)) {
    std::promise<void> done;
    other_ = [&, other, waits = done.get_future().share()] {
      thread_ = std::thread([&, other] {
        session.contexts.make_current(0);
        other();
        done.set_value();
      });
      waits.wait_for(moment);
    };
    const Answer answer = send(call, payload);
    EXPECT_EQ(other_, nullptr) << "the driver was not called";
    if (thread_.joinable()) thread_.join();
    return answer;
  }

  std::uint64_t memory(std::uint64_t bytes) {
    const Answer a = send(ids::cuMemAlloc_v2, Payload::record(api::AllocateRecord{bytes, 0, 0, 0}));
    return a.read<api::AllocateReply>().address;
  }
  std::uint64_t reserve() {
    return send(ids::cuMemAddressReserve, Payload::of(8, piece, 0, 0, 0)).read<std::uint64_t>();
  }
  std::uint64_t allocation() {
    CUmemAllocationProp p{};
    p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    const std::uint64_t id = world.next(Handle::Allocation);
    EXPECT_EQ(result_of(ids::cuMemCreate, Payload::of(id, piece, sizeof p, 0).bytes(&p, sizeof p)), CUDA_SUCCESS);
    return id;
  }
  static Payload mapping(std::uint64_t at, std::uint64_t id) { return Payload::of(at, piece, 0, id, 0); }
  static Payload range(std::uint64_t at) { return Payload::of(at, piece); }
  // Makes a reservation with memory that ends when it is unmapped.
  std::uint64_t mapped() {
    const std::uint64_t at = reserve(), id = allocation();
    EXPECT_EQ(result_of(ids::cuMemMap, mapping(at, id)), CUDA_SUCCESS);
    EXPECT_EQ(result_of(ids::cuMemRelease, Payload::of(id)), CUDA_SUCCESS);
    return at;
  }
  void unmap_and_free(std::uint64_t at) {
    EXPECT_EQ(result_of(ids::cuMemUnmap, range(at)), CUDA_SUCCESS);
    EXPECT_EQ(result_of(ids::cuMemAddressFree, range(at)), CUDA_SUCCESS);
  }
  // Makes a copy of 64 bytes as two rows.
  static Payload rows(std::uint64_t to, std::uint64_t from) {
    return Payload::record(api::CopyRowsRecord{{to, 32, 2}, {from, 32, 2}, 32, 2, 1, 0});
  }
  static Payload texels(const api::TexelsSide& to, const api::TexelsSide& from) {
    return Payload::record(api::CopyTexelsRecord{to, from, 32, 2, 1, 0});
  }
  static api::TexelsSide plain(std::uint64_t at) {
    api::TexelsSide side{};
    side.address = at, side.pitch = 32, side.rows = 2;
    return side;
  }
  api::TexelsSide array() {
    CUDA_ARRAY_DESCRIPTOR d{};
    d.Width = 32, d.Height = 2, d.Format = CU_AD_FORMAT_UNSIGNED_INT8, d.NumChannels = 1;
    api::TexelsSide side{};
    side.array = world.next(Handle::Array);
    EXPECT_EQ(result_of(ids::cuArrayCreate_v2, Payload::of(side.array, sizeof d).bytes(&d, sizeof d)), CUDA_SUCCESS);
    return side;
  }
  // The fake driver's memory is in this process.
  static char* bytes_at(std::uint64_t at) { return reinterpret_cast<char*>(at); }

  World world;

 private:
  static CUresult then_other(CUresult result) {
    if (other_) std::exchange(other_, nullptr)();
    return result;
  }
  static inline const host::Driver* inner_ = nullptr;
  static inline std::function<void()> other_;
  std::thread thread_;
  host::Driver driver_;

 protected:
  host::Session session;
};

// ---- mapped pieces -------------------------------------------------------------------------------------------------

TEST_F(GoneAddresses, APieceThatAnotherChannelUnmapsDuringTheMapIsNotNamed) {
  world.driver.let_freed_ranges_stay();
  const std::uint64_t at = reserve(), id = allocation(), own = memory(64);
  send_while(ids::cuMemMap, mapping(at, id), [&] { EXPECT_EQ(result_of(ids::cuMemUnmap, range(at)), CUDA_SUCCESS); });
  EXPECT_FALSE(session.memory.addresses.knows(at)) << "the map keeps a piece that the driver has not";
  EXPECT_EQ(result_of(ids::cuMemAddressFree, range(at)), CUDA_SUCCESS);
  std::strcpy(bytes_at(at), "secret");
  std::strcpy(bytes_at(own), "mine");
  EXPECT_EQ(result_of(ids::cuMemcpy3D_v2, rows(own, at)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(result_of(ids::cuMemcpy3D_v2, rows(at, own)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_STREQ(bytes_at(own), "mine") << "the worker's memory was read";
  EXPECT_STREQ(bytes_at(at), "secret") << "the worker's memory was written to";
  EXPECT_EQ(result_of(ids::cuMemsetD8_v2, Payload::of(at, 7, 8)), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(GoneAddresses, APieceThatAnotherChannelMapsDuringTheUnmapIsNamed) {
  const std::uint64_t at = mapped(), id = allocation();
  send_while(ids::cuMemUnmap, range(at), [&] { EXPECT_EQ(result_of(ids::cuMemMap, mapping(at, id)), CUDA_SUCCESS); });
  EXPECT_TRUE(session.memory.addresses.contains(at, piece));
  EXPECT_EQ(result_of(ids::cuMemsetD8_v2, Payload::of(at, 7, 8)), CUDA_SUCCESS);
}

TEST_F(GoneAddresses, AReservationThatAnotherChannelFreesDuringTheUnmapTakesItsPieces) {
  const std::uint64_t at = mapped();
  send_while(ids::cuMemUnmap, range(at), [&] { EXPECT_EQ(result_of(ids::cuMemAddressFree, range(at)), CUDA_SUCCESS); });
  EXPECT_FALSE(session.memory.addresses.knows(at));
  EXPECT_FALSE(session.memory.knows(at));
  EXPECT_EQ(session.objects.count(), 0u) << "the memory object is kept";
}

TEST_F(GoneAddresses, AFreedReservationLeavesNoPiece) {
  const std::uint64_t at = reserve(), id = allocation();
  ASSERT_TRUE(session.objects.keep(id));  // a mapping keeps the object in the same way
  EXPECT_TRUE(session.memory.reserved.commit(api::Range::Mapped, at, piece, id).empty());
  EXPECT_TRUE(session.memory.addresses.knows(at));
  EXPECT_EQ(session.memory.reserved.commit(api::Range::Freed, at, piece), std::vector{id});
  EXPECT_FALSE(session.memory.addresses.knows(at));
  EXPECT_EQ(session.memory.addresses.count(), 0u);
}

TEST_F(GoneAddresses, AReservationMadeDuringAFreeIsKept) {
  world.driver.let_freed_ranges_stay();
  const std::uint64_t at = reserve();
  std::uint64_t next = 0;
  send_while(ids::cuMemAddressFree, range(at), [&] { next = reserve(); });
  EXPECT_EQ(next, at) << "the driver gave the range again";
  EXPECT_TRUE(session.memory.reserved.holds(next, piece));
  EXPECT_EQ(session.memory.reserved.count(), 1u);
}

// If an error left a lock locked, this test would hang.
TEST_F(GoneAddresses, ARefusedMappingLeavesTheNextOneAlone) {
  const std::uint64_t at = reserve(), id = allocation();
  for (const std::uint64_t wrong : {at - 1, at + 1, std::uint64_t{0}})
    for (const int call : {ids::cuMemUnmap, ids::cuMemAddressFree})
      EXPECT_EQ(result_of(call, range(wrong)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(result_of(ids::cuMemMap, mapping(at, Id{Handle::Allocation, 77}.value())), CUDA_ERROR_INVALID_VALUE);
  EXPECT_TRUE(send(ids::cuMemMap, Payload::of(at)).broken);
  EXPECT_EQ(result_of(ids::cuMemMap, mapping(at, id)), CUDA_SUCCESS);
  unmap_and_free(at);
}

// ---- between the check of a copy and the driver's call -------------------------------------------------------------

TEST_F(GoneAddresses, CopiesOfRowsDoNotReachWhatWasFreedAfterTheirCheck) {
  world.driver.let_freed_ranges_stay();
  for (const int call : {ids::cuMemcpy3D_v2, ids::cuMemcpy3DAsync_v2})
    for (const bool reads : {true, false}) {
      const std::uint64_t at = mapped(), own = memory(64);
      std::strcpy(bytes_at(own), "mine");
      const auto free_and_reuse = [&] {
        unmap_and_free(at);
        std::strcpy(bytes_at(at), "secret");
      };
      const Answer answer = send_while(call, reads ? rows(own, at) : rows(at, own), free_and_reuse, test_deadline);
      EXPECT_EQ(answer.result, CUDA_ERROR_INVALID_VALUE);
      EXPECT_STREQ(bytes_at(own), "mine");
      EXPECT_STREQ(bytes_at(at), "secret");
    }
}

TEST_F(GoneAddresses, CopiesOfTexelsDoNotReachWhatWasFreedAfterTheirCheck) {
  world.driver.let_freed_ranges_stay();
  for (const int call : {ids::cuMemcpyAtoD_v2, ids::cuMemcpyHtoAAsync_v2})
    for (const bool reads : {true, false}) {
      const std::uint64_t at = mapped();
      const api::TexelsSide texel_side = array();
      const Answer answer = send_while(
          call, reads ? texels(texel_side, plain(at)) : texels(plain(at), texel_side), [&] { unmap_and_free(at); },
          test_deadline);
      EXPECT_EQ(answer.result, CUDA_ERROR_INVALID_VALUE);
    }
}

// ---- ends of contexts ----------------------------------------------------------------------------------------------

class GlobalsOfLibraries : public GoneAddresses {
 protected:
  void enter(unsigned number) {
    ASSERT_EQ(session.contexts.make_current(number), CUDA_SUCCESS);
    flags_ = ring::context_flags(number);
  }
  void create_context() {
    const api::CreateContextRecord record{
        .number = created, .device = 0, .flags = 0, .affinities = 0, .sm_count = 0, .pad = 0};
    ASSERT_EQ(result_of(ids::cuCtxCreate_v4, Payload::record(record)), CUDA_SUCCESS);
  }
  std::uint64_t library() {
    const std::uint64_t id = world.next(Handle::Library);
    EXPECT_EQ(result_of(ids::cuLibraryLoadData, world.load(id)), CUDA_SUCCESS);
    return id;
  }
  std::uint64_t find(std::uint64_t from, const char* name, int call = ids::cuLibraryGetGlobal) {
    const Answer a = send(call, Payload::record(api::GlobalRecord{from, std::strlen(name) + 1}).text(name), flags_);
    EXPECT_EQ(a.result, CUDA_SUCCESS) << name;
    return a.read<api::GlobalReply>().address;
  }
  CUresult fill(std::uint64_t at) { return send(ids::cuMemsetD8_v2, Payload::of(at, 7, 16), flags_).result; }
  CUresult end(int call, unsigned number) {
    return send(call, Payload::record(api::EndContextRecord{number}), flags_).result;
  }

 private:
  std::uint16_t flags_ = 0;
};

TEST_F(GlobalsOfLibraries, GoWithAReset) {
  const std::uint64_t from = library(), at = find(from, "counter");
  EXPECT_EQ(fill(at), CUDA_SUCCESS);
  ASSERT_EQ(end(ids::cuDevicePrimaryCtxReset_v2, 0), CUDA_SUCCESS);
  EXPECT_FALSE(session.memory.addresses.knows(at));
  EXPECT_EQ(session.memory.addresses.count(), 0u);
  const std::uint64_t again = find(from, "counter");
  EXPECT_EQ(fill(again), CUDA_SUCCESS) << "the library has one in the new context, too";
  EXPECT_EQ(result_of(ids::cuLibraryUnload, Payload::record(api::CloseRecord{from})), CUDA_SUCCESS);
  EXPECT_EQ(session.memory.addresses.count(), 0u);
}

TEST_F(GlobalsOfLibraries, GoWithTheContextInWhichTheyWereFound) {
  const std::uint64_t from = library(), below = find(from, "counter");
  create_context();
  enter(created);
  const std::uint64_t above = find(from, "counter");
  ASSERT_NE(above, below);
  ASSERT_EQ(end(ids::cuCtxDestroy_v2, created), CUDA_SUCCESS);
  enter(0);
  EXPECT_FALSE(session.memory.addresses.knows(above));
  EXPECT_EQ(fill(below), CUDA_SUCCESS) << "another context's";
  EXPECT_EQ(result_of(ids::cuLibraryUnload, Payload::record(api::CloseRecord{from})), CUDA_SUCCESS);
  EXPECT_FALSE(session.memory.addresses.knows(below)) << "of all contexts, with the library";
}

// The driver decides which variables stay (tests/contract/managed_variable.cc).
TEST_F(GlobalsOfLibraries, InManagedMemoryStayAsLongAsTheDriverKeepsThem) {
  const std::uint64_t from = library();
  create_context();
  enter(created);
  const std::uint64_t at = find(from, "shared", ids::cuLibraryGetManaged);
  ASSERT_EQ(end(ids::cuCtxDestroy_v2, created), CUDA_SUCCESS);
  enter(0);
  EXPECT_EQ(fill(at), CUDA_SUCCESS) << "it ends with no context";
  world.driver.fail_next("cuLibraryGetManaged", CUDA_ERROR_NOT_FOUND);
  ASSERT_EQ(end(ids::cuDevicePrimaryCtxReset_v2, 0), CUDA_SUCCESS);
  EXPECT_FALSE(session.memory.addresses.knows(at));
}

// ---- kinds of memory -----------------------------------------------------------------------------------------------

// The worker gives the driver each side's memory type: arena or device. The strict driver aborts if it has to guess.
TEST(CopiesOfRows, LabelEachSide) {
  World world;
  world.send(ids::hello, Payload::record(api::HelloRecord{ring::window_count, ring::huge_page}));
  const std::uint64_t arena = world.session->arena.address(), own = world.memory(64);
  const auto copy = [&](std::uint64_t to, std::uint64_t from, int call) {
    const api::CopyRowsRecord record{{to, 32, 2}, {from, 32, 2}, 32, 2, 1, 0};
    return world.send(call, Payload::record(record)).result;
  };
  const auto text_at = [](std::uint64_t at) { return reinterpret_cast<char*>(at); };
  std::strcpy(text_at(arena), "from the arena");
  EXPECT_EQ(copy(own, arena, ids::cuMemcpy3D_v2), CUDA_SUCCESS);
  EXPECT_STREQ(text_at(own), "from the arena");
  EXPECT_EQ(copy(arena + 64, own, ids::cuMemcpy3DAsync_v2), CUDA_SUCCESS);
  EXPECT_STREQ(text_at(arena + 64), "from the arena");
  EXPECT_EQ(copy(arena + 128, arena, ids::cuMemcpy3D_v2), CUDA_SUCCESS);
  EXPECT_STREQ(text_at(arena + 128), "from the arena");
}

}  // namespace
