// How a worker's ioctl() learns the driver library's channels (group_log.h), and the helper's client (rm_client.h).
// This program's own ioctl() simulates the resource manager.
#include <gtest/gtest.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "host/scheduler/group_log.h"
#include "host/scheduler/rm_client.h"
#include "tests/error_of.h"

namespace {

using namespace host::rm;

// Answers an ioctl; null means that the device does not exist.
std::function<int(int fd, unsigned long request, void* argument)> kernel;

}  // namespace

extern "C" int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  if (kernel) return kernel(fd, request, argument);
  errno = ENOTTY;
  return -1;
}

namespace {

constexpr unsigned long alloc_request = _IOC(_IOC_READ | _IOC_WRITE, escape_magic, escape_alloc, sizeof(Alloc)),
                        short_alloc_request =
                            _IOC(_IOC_READ | _IOC_WRITE, escape_magic, escape_alloc, sizeof(ShortAlloc)),
                        free_request = _IOC(_IOC_READ | _IOC_WRITE, escape_magic, escape_free, sizeof(Free)),
                        control_request = _IOC(_IOC_READ | _IOC_WRITE, escape_magic, escape_control, sizeof(Control));

class Groups : public testing::Test {
 protected:
  template <class Parameters>
  bool alloc(Handle parent, Handle object, std::uint32_t object_class, const Parameters& parameters,
             std::uint32_t status = ok, std::uint32_t bytes = sizeof(Parameters)) {
    const Alloc call{1, parent, object, object_class, reinterpret_cast<std::uintptr_t>(&parameters),
                     0, bytes,  0,      status};
    return log_.note(5, alloc_request, &call);
  }
  bool channel(Handle group, Handle object, std::uint32_t status = ok) {
    const Alloc call{1, group, object, 0xc96f, 0, 0, 0, 0, status};
    return log_.note(5, alloc_request, &call);
  }
  bool free(Handle object) {
    const Free call{1, 0, object, ok};
    return log_.note(5, free_request, &call);
  }
  // Makes a device with instance 2, and a compute group of two channels.
  void make_context() {
    DeviceParameters device{};
    device.instance = 2;
    EXPECT_FALSE(alloc(1, 10, device_class, device));
    GroupParameters group{};
    group.engine = 1;
    EXPECT_TRUE(alloc(10, 20, group_class, group));
    EXPECT_TRUE(channel(20, 21) && channel(20, 22));
  }
  GroupLog log_;
};

TEST_F(Groups, KeepsTheComputeChannelsOfEachGpu) {
  make_context();
  GroupParameters copies{};
  copies.engine = 9;
  EXPECT_TRUE(alloc(10, 30, group_class, copies));
  EXPECT_TRUE(channel(30, 31));
  const auto groups = log_.compute_groups(2);
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].group, 20U);
  ASSERT_EQ(groups[0].channels.size(), 2U);
  EXPECT_EQ(groups[0].channels[1].handle, 22U);
  EXPECT_TRUE(log_.compute_groups(0).empty());
  EXPECT_EQ(log_.client(), 1U);
}

TEST_F(Groups, ForgetsWhatEndsWithTheObjectAbove) {
  for (const Handle ended : {20U, 10U, 1U}) {
    make_context();
    EXPECT_TRUE(free(ended));
    EXPECT_TRUE(log_.compute_groups(2).empty()) << ended;
    free(1);
  }
  make_context();
  EXPECT_TRUE(free(21));
  EXPECT_EQ(log_.compute_groups(2)[0].channels.size(), 1U);
  EXPECT_FALSE(free(99));
}

TEST_F(Groups, AHandleThatIsUsedAgainHasAnotherSerial) {
  make_context();
  const auto before = log_.compute_groups(2)[0].channels[1].serial;
  free(22);
  channel(20, 22);
  EXPECT_NE(log_.compute_groups(2)[0].channels[1].serial, before);
}

TEST_F(Groups, IgnoresWhatFailedAndWhatItDoesNotKnow) {
  make_context();
  EXPECT_FALSE(channel(20, 23, 0x22));
  EXPECT_FALSE(channel(77, 24)) << "of a group that nobody made";
  EXPECT_FALSE(log_.note(5, _IOC(_IOC_READ, 'T', escape_alloc, sizeof(Alloc)), "a terminal's"));
  EXPECT_FALSE(log_.note(5, _IOC(_IOC_READ | _IOC_WRITE, escape_magic, escape_alloc, 8), "too short"));
  EXPECT_FALSE(log_.note(5, alloc_request, nullptr));
  EXPECT_EQ(log_.compute_groups(2)[0].channels.size(), 2U);
}

TEST_F(Groups, ReadsNoParametersBeyondTheirSize) {
  const std::uint32_t half = 1;
  EXPECT_TRUE(alloc(10, 20, group_class, half));
  EXPECT_TRUE(log_.compute_groups(0).empty()) << "its engine is not known";
  const ShortAlloc call{1, 20, 21, 0xc96f, 0, 0, ok};
  EXPECT_TRUE(log_.note(5, short_alloc_request, &call));
}

// ---- the client -----------------------------------------------------------------------------------------------------

constexpr Uuid wanted = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

class ResourceManager : public testing::Test {
 protected:
  ResourceManager() {
    kernel = [this](int fd, unsigned long request, void* argument) { return answer(fd, request, argument); };
  }
  ~ResourceManager() override { kernel = nullptr; }

  int answer(int fd, unsigned long request, void* argument) {
    if (_IOC_NR(request) == escape_register) return registered_ = fd == 8 && *static_cast<int*>(argument) == 7, 0;
    if (request == alloc_request) return allocate(*static_cast<Alloc*>(argument)), 0;
    if (request == free_request) return freed_ += static_cast<Free*>(argument)->object == 500, 0;
    if (request != control_request) return errno = EINVAL, -1;
    control(*static_cast<Control*>(argument));
    return 0;
  }
  void allocate(Alloc& call) {
    if (call.object_class == root_class) {
      call.object = 500;
    } else if (!registered_ || call.client != 500) {
      call.status = 0x1b;  // NV_ERR_INSUFFICIENT_PERMISSIONS
    } else if (call.object_class == device_class) {
      instance_ = reinterpret_cast<const DeviceParameters*>(call.parameters)->instance;
    }
  }
  void control(Control& call) {
    void* const parameters = reinterpret_cast<void*>(call.parameters);
    if (call.command == get_attached_ids) {
      auto& ids = *static_cast<AttachedIds*>(parameters);
      ids.id[0] = 100, ids.id[1] = 200;
    } else if (call.command == get_id_info) {
      auto& info = *static_cast<IdInfo*>(parameters);
      info.device_instance = info.id / 100;
    } else if (call.command == get_gid_info) {
      auto& info = *static_cast<GidInfo*>(parameters);
      info.length = 16;
      std::memcpy(info.data, wanted.data(), 16);
      if (instance_ != 2) info.data[0] = 99;
    } else if (call.command == disable_channels) {
      lists_.push_back(*static_cast<DisableChannels*>(parameters));
      call.status = refuses_;
    } else {
      call.status = 0x56;
    }
  }

  bool registered_ = false;
  std::uint32_t instance_ = 0, refuses_ = ok;
  int freed_ = 0;
  std::vector<DisableChannels> lists_;
};

TEST_F(ResourceManager, FindsTheGpuByItsUuid) {
  const auto client = GpuClient::create(7, 8, wanted);
  ASSERT_TRUE(client) << client.error().message;
  EXPECT_EQ((*client)->instance(), 2U);
  Uuid other = wanted;
  other[5] = 0;
  EXPECT_EQ(error_of(GpuClient::create(7, 8, other)), "the resource manager has no such GPU");
}

TEST_F(ResourceManager, ListsAtMost64ChannelsACall) {
  const std::unique_ptr<GpuClient> client = GpuClient::create(7, 8, wanted).value();
  std::vector<ChannelRef> channels;
  for (std::uint32_t c = 0; c < 100; ++c) channels.push_back({9, c});
  EXPECT_EQ(client->switch_channels(channels, true), 0);
  ASSERT_EQ(lists_.size(), 2U);
  EXPECT_EQ(lists_[0].count, 64U);
  EXPECT_EQ(lists_[1].count, 36U);
  EXPECT_EQ(lists_[1].channel[35], 99U);
  EXPECT_EQ(lists_[1].client[35], 9U);
  EXPECT_EQ(lists_[0].disable, 1U);
  refuses_ = 0x21;
  EXPECT_EQ(client->switch_channels(channels, false), 0x21);
  EXPECT_EQ(lists_.size(), 3U) << "the first refusal ends them";
}

TEST_F(ResourceManager, EndsItsObjectsAndReportsWhatWasRefused) {
  GpuClient::create(7, 8, wanted)->reset();
  EXPECT_GT(freed_, 0);
  EXPECT_FALSE(GpuClient::create(6, 8, wanted)) << "its descriptor is not registered";
  kernel = [](int, unsigned long, void*) { return errno = EPERM, -1; };
  EXPECT_EQ(error_of(GpuClient::create(7, 8, wanted)),
            "the GPU's device file does not accept a control descriptor: -1");
}

}  // namespace
