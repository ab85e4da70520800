// Invalid records about links, and the memory that a link uses. At each step the fake driver writes to all buffers in a
// link's options, so a sanitizer reports a freed buffer.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <thread>

#include "ring/api/jit_options.h"
#include "tests/unit/session/records.h"

namespace {

using namespace session_test;
namespace ids = api::id_of;
constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t least_input = 64 << 10;  // the smallest number of bytes that an input is charged

host::ServeOptions with_image_bytes(std::uint64_t bytes) {
  host::ServeOptions options;
  options.image_bytes = bytes;
  return options;
}

class LinkRecords : public testing::Test {
 protected:
  explicit LinkRecords(std::uint64_t bytes = std::uint64_t{2} << 30) : world(with_image_bytes(bytes)) {}

  void expect_broken(int call, const Payload& payload, const std::string& what = "") {
    const Answer a = world.send(call, payload);
    EXPECT_TRUE(a.broken) << call << " " << what;
    EXPECT_TRUE(a.reply.empty()) << call << " " << what;
  }
  Answer send(CUresult result, int call, const Payload& payload, const std::string& what = "") {
    Answer a = world.send(call, payload);
    EXPECT_FALSE(a.broken) << call << " " << what;
    EXPECT_EQ(a.result, result) << call << " " << what;
    return a;
  }

  static Payload create(std::uint64_t id) { return Payload::record(api::CreateLinkRecord{id, 0, 0}); }
  // Makes a creation record with two log buffers of these sizes.
  static Payload create_with_logs(std::uint64_t id, std::uint64_t info, std::uint64_t error) {
    Payload p = Payload::record(api::CreateLinkRecord{id, 4, 0});
    for (const CUjit_option o : {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER,
                                 CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES})
      p.slot(o);
    for (const std::uint64_t v : {std::uint64_t{0x4141414141414141}, info, most, error}) p.slot(v);
    return p;
  }
  std::uint64_t link() {
    const std::uint64_t id = world.next(Handle::Link);
    send(CUDA_SUCCESS, ids::cuLinkCreate_v2, create(id));
    return id;
  }
  static api::AddToLinkRecord to_add(std::uint64_t id, std::uint32_t options = 0) {
    api::AddToLinkRecord record{};
    record.id = id;
    record.arena = ring::absent;
    record.parts = 1;
    record.options = options;
    record.type = CU_JIT_INPUT_PTX;
    record.named = 1;
    record.name_bytes = 6;
    return record;
  }
  static Payload add(std::uint64_t id, const std::string& text = module_text) {
    return Payload::record(to_add(id)).slot(text.size()).bytes(text.data(), text.size()).text("input");
  }
  static Payload of(std::uint64_t id) { return Payload::of(id); }
  static Payload take(std::uint64_t id, std::uint64_t offset, std::uint64_t room) {
    return Payload::record(api::TakeImageRecord{id, offset, room});
  }

  World world;
};

TEST_F(LinkRecords, AWholeLink) {
  const std::uint64_t id = link();
  const std::string text = module_text + std::string(20000, 'x');
  send(CUDA_SUCCESS, ids::cuLinkAddData_v2, add(id, text));
  const Answer completed = send(CUDA_SUCCESS, ids::cuLinkComplete, of(id));
  ASSERT_EQ(completed.read<std::uint64_t>(), text.size());
  std::string image;
  for (std::uint64_t length = 1; length != 0;) {
    const Answer piece = send(CUDA_SUCCESS, ids::take_image, take(id, image.size(), 7777));
    length = piece.read<std::uint64_t>();
    image.append(reinterpret_cast<const char*>(piece.reply.data()) + 8, length);
  }
  EXPECT_EQ(image, text);
  send(CUDA_SUCCESS, ids::cuLinkDestroy, of(id));
  EXPECT_EQ(world.session->code.budget.used(), 0u);
}

TEST_F(LinkRecords, PiecesLieInTheImage) {
  const std::uint64_t id = link();
  EXPECT_EQ(send(CUDA_SUCCESS, ids::take_image, take(id, 0, 16)).read<std::uint64_t>(), 0u) << "there is none yet";
  send(CUDA_SUCCESS, ids::cuLinkAddData_v2, add(id));
  send(CUDA_SUCCESS, ids::cuLinkComplete, of(id));
  for (const std::uint64_t offset : {std::uint64_t{1} << 20, std::uint64_t{1} << 63, most})
    EXPECT_EQ(send(CUDA_SUCCESS, ids::take_image, take(id, offset, 16)).read<std::uint64_t>(), 0u) << offset;
  const std::uint64_t size = std::strlen(module_text);
  EXPECT_EQ(send(CUDA_SUCCESS, ids::take_image, take(id, size - 1, 16)).read<std::uint64_t>(), 1u);
  EXPECT_EQ(send(CUDA_SUCCESS, ids::take_image, take(id, 0, 0)).read<std::uint64_t>(), 0u);
  for (const std::uint64_t room : {api::max_image_piece + 1, most})
    expect_broken(ids::take_image, take(id, 0, room), "more than a reply holds");
}

TEST_F(LinkRecords, LinksThatAreNone) {
  const std::uint64_t ended = link(), stream = world.stream();
  send(CUDA_SUCCESS, ids::cuLinkDestroy, of(ended));
  for (const std::uint64_t id : {std::uint64_t{0}, most, stream, ended, world.next(Handle::Link)}) {
    send(CUDA_ERROR_INVALID_HANDLE, ids::cuLinkAddData_v2, add(id));
    send(CUDA_ERROR_INVALID_HANDLE, ids::cuLinkComplete, of(id));
    send(CUDA_ERROR_INVALID_HANDLE, ids::take_image, take(id, 0, 16));
    send(CUDA_ERROR_INVALID_HANDLE, ids::cuLinkDestroy, of(id));
  }
}

TEST_F(LinkRecords, IdsThatCannotBeGivenBreak) {
  expect_broken(ids::cuLinkCreate_v2, create(world.next(Handle::Stream)));
  expect_broken(ids::cuLinkCreate_v2, create(0));
  expect_broken(ids::cuLinkCreate_v2, create(link()), "taken");
}

TEST_F(LinkRecords, OptionsThatHoldPointersBreak) {
  const std::uint64_t id = link();
  const auto with_option = [&](std::uint64_t option) {
    return Payload::record(to_add(id, 1)).slot(8).slot(option).slot(0x4141414141414141).slot(0).text("input");
  };
  for (unsigned option = 0; option < 64; ++option) {
    const auto name = static_cast<CUjit_option>(option);
    if (!api::crosses_boundary(name)) {
      expect_broken(
          ids::cuLinkCreate_v2,
          Payload::record(api::CreateLinkRecord{world.next(Handle::Link), 1, 0}).slot(option).slot(0x4141414141414141));
    }
    if (!api::crosses_boundary(name) || api::is_of_whole_link(name))
      expect_broken(ids::cuLinkAddData_v2, with_option(option), "option " + std::to_string(option));
  }
  const api::CreateLinkRecord many{world.next(Handle::Link), api::max_jit_options + 1, 0};
  expect_broken(ids::cuLinkCreate_v2, Payload::record(many).slot(0).slot(0));
  expect_broken(ids::cuLinkCreate_v2, Payload::record(api::CreateLinkRecord{world.next(Handle::Link), 2, 0}).slot(0),
                "options missing");
}

// The driver writes to the worker's buffers, whatever pointers and sizes the record contains, and the reply contains no
// address.
TEST_F(LinkRecords, LogBuffersAreNeverTheGuests) {
  for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{100}, most}) {
    const std::uint64_t id = world.next(Handle::Link);
    const Answer created = send(CUDA_SUCCESS, ids::cuLinkCreate_v2, create_with_logs(id, size, size));
    for (const std::size_t at : {0, 16}) EXPECT_EQ(created.read<std::uint64_t>(at), 0u);
    EXPECT_EQ(created.read<std::uint64_t>(8), std::min<std::uint64_t>(size, api::max_jit_log)) << "untouched so far";
    const Answer added = send(CUDA_SUCCESS, ids::cuLinkAddData_v2, add(id));
    for (const std::size_t at : {0, 16}) EXPECT_EQ(added.read<std::uint64_t>(at), 0u);
    EXPECT_EQ(added.read<std::uint64_t>(32) != 0, size > 1) << "the driver's log";
    world.driver.fail_next("cuLinkComplete", CUDA_ERROR_UNKNOWN);
    EXPECT_FALSE(send(CUDA_ERROR_UNKNOWN, ids::cuLinkComplete, of(id)).reply.empty()) << "logs of what failed";
    EXPECT_FALSE(send(CUDA_SUCCESS, ids::cuLinkDestroy, of(id)).reply.empty()) << "and of the end";
  }
}

TEST_F(LinkRecords, InputsAreOneWholePart) {
  const std::uint64_t id = link();
  api::AddToLinkRecord r = to_add(id);
  for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{57}, std::uint64_t{1} << 31, most, most - 7})
    expect_broken(ids::cuLinkAddData_v2, Payload::record(r).slot(size).slot(0).slot(0), "size");
  for (const std::uint32_t parts : {0u, 2u, ~0u}) {
    (r = to_add(id)).parts = parts;
    expect_broken(ids::cuLinkAddData_v2, Payload::record(r).slot(8).slot(8).slot(0).slot(0).text("input"), "parts");
  }
  (r = to_add(id)).form = 1;
  expect_broken(ids::cuLinkAddData_v2, Payload::record(r).slot(8).slot(0).text("input"), "a wrapper");
  (r = to_add(id)).named = 2;
  expect_broken(ids::cuLinkAddData_v2, Payload::record(r).slot(8).slot(0).text("input"), "a flag");
  (r = to_add(id)).arena = World::arena_bytes;
  expect_broken(ids::cuLinkAddData_v2, Payload::record(r).slot(8).text("input"), "behind the arena");
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{5}, std::uint64_t{7}, most}) {
    (r = to_add(id)).name_bytes = bytes;
    expect_broken(ids::cuLinkAddData_v2, Payload::record(r).slot(8).slot(0).text("input"), "a name");
  }
  const std::uint64_t wrapper = 0x466243B1 | 1ULL << 32;
  send(CUDA_ERROR_INVALID_IMAGE, ids::cuLinkAddData_v2,
       Payload::record(to_add(id)).slot(24).slot(wrapper).slot(0x4141414141414141).slot(0).text("input"));
  EXPECT_EQ(world.driver.calls("cuLinkAddData_v2"), 0u);
  const Payload whole = add(id);
  for (std::size_t n = 0; n < whole.size(); ++n)
    EXPECT_TRUE(world.send_exactly(ids::cuLinkAddData_v2, Payload(whole).cut(n)).broken) << n;
}

// The driver keeps pointers to a link's buffers, so the buffers outlive a reset and the thread that made the link.
TEST_F(LinkRecords, ALinkOutlivesItsContext) {
  const std::uint64_t id = world.next(Handle::Link);
  send(CUDA_SUCCESS, ids::cuLinkCreate_v2, create_with_logs(id, 100, 100));
  send(CUDA_SUCCESS, ids::cuDevicePrimaryCtxReset_v2, Payload::record(api::EndContextRecord{0}));
  send(CUDA_SUCCESS, ids::cuLinkAddData_v2, add(id));
  send(CUDA_SUCCESS, ids::cuLinkDestroy, of(id));
}

TEST_F(LinkRecords, AnEndThatFailsIsNone) {
  const std::uint64_t id = link();
  world.driver.fail_next("cuLinkDestroy", CUDA_ERROR_NOT_READY);
  send(CUDA_ERROR_NOT_READY, ids::cuLinkDestroy, of(id));
  send(CUDA_SUCCESS, ids::cuLinkAddData_v2, add(id));
  send(CUDA_SUCCESS, ids::cuLinkDestroy, of(id));
}

class LinkBudget : public LinkRecords {
 protected:
  LinkBudget() : LinkRecords(3 * least_input + 20000) {}
  int fill(std::uint64_t id) {
    for (int added = 0;; ++added)
      if (const Answer a = world.send(ids::cuLinkAddData_v2, add(id)); a.result != CUDA_SUCCESS) {
        EXPECT_EQ(a.result, CUDA_ERROR_OUT_OF_MEMORY);
        EXPECT_FALSE(a.broken);
        return added;
      }
  }
};

TEST_F(LinkBudget, SmallInputsCountAndComeBackWithTheLink) {
  const std::uint64_t id = link();
  EXPECT_EQ(fill(id), 3);
  send(CUDA_SUCCESS, ids::cuLinkDestroy, of(id));
  EXPECT_EQ(world.session->code.budget.used(), 0u);
  EXPECT_EQ(fill(link()), 3);
}

TEST_F(LinkBudget, LogBuffersCount) {
  const std::uint64_t id = world.next(Handle::Link);
  send(CUDA_SUCCESS, ids::cuLinkCreate_v2, create_with_logs(id, 10000, 9000));
  EXPECT_GE(world.session->code.budget.used(), 19000u);
  EXPECT_EQ(fill(id), 3);
  send(CUDA_ERROR_OUT_OF_MEMORY, ids::cuLinkCreate_v2, create_with_logs(world.next(Handle::Link), 10000, 10000));
  EXPECT_EQ(world.driver.calls("cuLinkCreate_v2"), 1u);
}

TEST_F(LinkBudget, ImagesCount) {
  const std::uint64_t id = link();
  const std::string text(30000, 'x');
  send(CUDA_SUCCESS, ids::cuLinkAddData_v2, add(id, text));
  send(CUDA_SUCCESS, ids::cuLinkComplete, of(id));
  const std::uint64_t used = world.session->code.budget.used();
  EXPECT_GE(used, 90000 + least_input);
  send(CUDA_SUCCESS, ids::cuLinkComplete, of(id));
  EXPECT_EQ(world.session->code.budget.used(), used) << "the same image again";
  send(CUDA_SUCCESS, ids::cuLinkDestroy, of(id));
  const std::uint64_t other = link();
  send(CUDA_SUCCESS, ids::cuLinkAddData_v2, add(other, std::string(45000, 'x')));
  send(CUDA_SUCCESS, ids::cuLinkAddData_v2, add(other, std::string(20000, 'x')));
  EXPECT_EQ(send(CUDA_ERROR_OUT_OF_MEMORY, ids::cuLinkComplete, of(other)).read<std::uint64_t>(), 0u);
  EXPECT_EQ(send(CUDA_SUCCESS, ids::take_image, take(other, 0, 16)).read<std::uint64_t>(), 0u) << "nothing is kept";
}

// One channel ends a link while another channel adds to it. The strict driver aborts if it gets the ended link.
TEST_F(LinkRecords, ALinkThatEndsMeanwhileIsNotPassedOn) {
  for (int round = 0; round < 200; ++round) {
    const std::uint64_t id = link();
    std::thread other([&] { send_to(*world.session, ids::cuLinkDestroy, of(id)); });
    for (int i = 0; i < 3; ++i) {
      const CUresult result = send_to(*world.session, ids::cuLinkAddData_v2, add(id)).result;
      EXPECT_TRUE(result == CUDA_SUCCESS || result == CUDA_ERROR_INVALID_HANDLE) << result;
    }
    other.join();
  }
}

}  // namespace
