// The simulated GPU's file of processes and their memory, for tests that set its contents.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "host/simgpu/api/device/usage_file.h"
#include "tests/unit/broker/harness.h"

namespace broker_test {

struct UsageFile {
  UsageFile() {
    const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    EXPECT_EQ(ftruncate(file, sizeof(simgpu::UsageFile)), 0);
    close(file);
    map = simgpu::map_usage_file(path.c_str());
  }
  Folder folder;
  const std::string path = folder / "usage";
  simgpu::UsageFile* map = nullptr;
};

}  // namespace broker_test
