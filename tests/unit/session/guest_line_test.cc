// GUEST lines in a worker (host/untrusted/calls/guest_line.h). A record that no program sends ends the session, and no
// record with an object or address that the session does not have reaches the driver.
#include <algorithm>
#include <cstring>
#include <vector>

#include "ring/api/entry_points.h"
#include "ring/api/texture_records.h"
#include "tests/unit/session/records.h"

namespace {

using namespace session_test;
namespace ids = api::id_of;

struct Line {
  int id;
  const char* name;
  std::size_t bytes;
};
constexpr Line lines[] = {
#define CALL(...)
#define CUSTOM(...)
#define GUEST(id, fn, ...) {id, #fn, sizeof(api::Call<id>::Record)},
#define LOCAL(...)
#define VARIANT(...)
#define ABSENT(...)
#include "ring/api/driver.def"
};

// If a line passes a member as an address or a handle, the record's list must check the member as one; otherwise
// guest_line.h does not compile.
static_assert(api::checks_address<api::FreeRecord>(&api::FreeRecord::address));
static_assert(api::checks_address<api::BindRowsRecord>(&api::BindRowsRecord::address));
static_assert(!api::checks_address<api::BindRowsRecord>(&api::BindRowsRecord::pitch));
static_assert(api::checks_handle<api::BindRowsRecord>(&api::BindRowsRecord::reference));
static_assert(!api::checks_handle<api::BindRowsRecord>(&api::BindRowsRecord::address));
static_assert(!api::checks_handle<api::FindFunctionRecord>(&api::LookupRecord::id), "a proposed id has no handle yet");

// Makes a record whose words all have this value, and adds more such words after the record.
Payload words(std::size_t bytes, std::uint64_t word) {
  const std::vector<std::uint64_t> all(bytes / sizeof word + 64, word);
  return Payload().bytes(all.data(), all.size() * sizeof word);
}

TEST(GuestLines, ARecordCutAnywhereBreaks) {
  World world;
  for (const Line& line : lines) {
    const std::size_t before = world.driver.calls(line.name);
    for (std::size_t n = 0; n < line.bytes; ++n)
      EXPECT_TRUE(world.send_exactly(line.id, words(line.bytes, 0).cut(n)).broken) << line.name << ": " << n;
    EXPECT_EQ(world.driver.calls(line.name), before) << line.name;
  }
}

TEST(GuestLines, ARecordThatIsTooLongBreaks) {
  World world;
  for (const Line& line : lines) {
    const std::size_t before = world.driver.calls(line.name);
    EXPECT_TRUE(world.send_exactly(line.id, words(line.bytes, 0)).broken) << line.name;
    EXPECT_EQ(world.driver.calls(line.name), before) << line.name;
  }
}

// Sets the words of a record's list that refer to objects or memory.
template <class R>
class Foreign {
 public:
  Foreign(std::uint64_t id, std::uint64_t address) : id_(id), address_(address) {
    std::memset(static_cast<void*>(&record_), 0, sizeof record_);
    api::each_field<R>([&](const auto& word) { set(word); });
  }
  const R& record() const { return record_; }

 private:
  template <class W>
  void set(const W& word) {
    if constexpr (api::is_checked_handle<W>) api::member_of(record_, word.member) = id_;
    if constexpr (api::is_checked_address<W>) api::member_of(record_, word.member) = address_;
  }
  template <class M>
  void set(const api::field::Between<M>& word) {
    auto& member = api::member_of(record_, word.member);
    member = static_cast<std::remove_cvref_t<decltype(member)>>(word.least);
  }

  R record_;
  std::uint64_t id_, address_;
};

// Adds the name and the attribute that may follow the record, or zeros in their place.
template <class R>
Payload with_rest(const R& record) {
  Payload p = Payload::record(record);
  if constexpr (requires { record.name_bytes; }) {
    R named = record;
    named.name_bytes = sizeof "name";
    return Payload::record(named).text("name");
  }
  if constexpr (std::is_same_v<R, api::SetStreamAttributeRecord> || std::is_same_v<R, api::SetNodeAttributeRecord>) {
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    p.bytes(&attribute, sizeof attribute);
  }
  return p;
}

template <int id>
void expect_foreign_refused(World& world, const char* name, std::uint64_t foreign, std::uint64_t address) {
  using R = typename api::Call<id>::Record;
  const std::size_t before = world.driver.calls(name);
  const Answer a = world.send(id, with_rest(Foreign<R>(foreign, address).record()));
  EXPECT_NE(a.result, CUDA_SUCCESS) << name;
  EXPECT_TRUE(a.reply.empty()) << name;
  EXPECT_EQ(world.driver.calls(name), before) << name;
}

TEST(GuestLines, NoForeignObjectOrAddressReachesTheDriver) {
  World world;
  const std::uint64_t memory = world.memory(64), link = Id{Handle::Link, 77, 0}.value();
  for (const std::uint64_t foreign : {std::uint64_t{3}, link, std::uint64_t{0x7f0000001000}, ~std::uint64_t{0}})
    for (const std::uint64_t address : {memory - 1, memory + 64, std::uint64_t{8}, ~std::uint64_t{0}}) {
#define CALL(...)
#define CUSTOM(...)
#define GUEST(id, fn, ...) expect_foreign_refused<id>(world, #fn, foreign, address);
#define LOCAL(...)
#define VARIANT(...)
#define ABSENT(...)
#include "ring/api/driver.def"
    }
}

// A CUSTOM line has a handwritten function on each side. At most a quarter of the calls that cross may be CUSTOM lines.
TEST(GuestLines, LeaveAtMostAQuarterOfTheCrossingCallsToCustomLines) {
  const auto count = [](auto of) {
    return std::count_if(std::begin(api::entry_points), std::end(api::entry_points), of);
  };
  const auto crossing = count([](const api::EntryPoint& e) { return e.crosses(); });
  const auto custom = count([](const api::EntryPoint& e) { return e.line == api::Line::Custom; });
  EXPECT_LE(4 * custom, crossing) << custom << " of " << crossing;
}

}  // namespace
