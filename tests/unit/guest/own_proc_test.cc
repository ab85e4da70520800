// The /proc folder that the guest library keeps open, even if the folder's path or descriptor changes.
#include "guest/objects/copy/own_proc.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "tests/child.h"

namespace {

namespace fs = std::filesystem;

class OwnProc : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/ivgpu-own-proc-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    root_ = name;
    write_in("one", "of one");
    write_in("two", "of two");
  }
  void TearDown() override { fs::remove_all(root_); }

  void write_in(const std::string& folder, const std::string& text) {
    fs::create_directory(root_ / folder);
    std::ofstream(root_ / folder / "maps") << text;
  }
  static std::string read(const guest::OwnProc& folder) {
    char text[32] = {};
    const int fd = folder.open_file("maps", O_RDONLY);
    if (fd < 0) return std::string("error ") + std::to_string(errno);
    [[maybe_unused]] const auto n = ::read(fd, text, sizeof text - 1);
    close(fd);
    return text;
  }
  // Returns this process's descriptors of the test's folders.
  std::set<int> held() const {
    std::set<int> all;
    for (int fd = 0; fd < 256; ++fd) {
      char path[256] = {};
      const std::string link = "/proc/self/fd/" + std::to_string(fd);
      if (readlink(link.c_str(), path, sizeof path - 1) > 0 && std::string(path).starts_with(root_.string()))
        all.insert(fd);
    }
    return all;
  }

  fs::path root_;
};

TEST_F(OwnProc, IsReadWhenItsPathIsGone) {
  const guest::OwnProc folder((root_ / "one").c_str());
  fs::rename(root_ / "one", root_ / "elsewhere");
  EXPECT_EQ(read(folder), "of one");
}

TEST_F(OwnProc, IsOpenedAgainWhenTheProgramHasClosedIt) {
  const guest::OwnProc folder((root_ / "one").c_str());
  ASSERT_EQ(held().size(), 1u);
  close(*held().begin());
  EXPECT_EQ(read(folder), "of one");
  fs::remove_all(root_ / "one");
  EXPECT_EQ(read(folder), "error " + std::to_string(ENOENT));
}

// Another folder has reused the descriptor's number. The library neither reads nor closes that folder.
TEST_F(OwnProc, AnotherFolderUnderItsNumberIsNotRead) {
  int other = -1;
  {
    const guest::OwnProc folder((root_ / "one").c_str());
    ASSERT_EQ(held().size(), 1u);
    const int number = *held().begin();
    other = open((root_ / "two").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    ASSERT_EQ(dup2(other, number), number);
    EXPECT_EQ(read(folder), "of one");
    close(other);
    other = number;
  }
  EXPECT_EQ(held(), std::set<int>{other});
  close(other);
}

TEST_F(OwnProc, AForkedChildOpensItsOwn) {
  const guest::OwnProc folder((root_ / "one").c_str());
  fs::rename(root_ / "one", root_ / "elsewhere");
  fs::rename(root_ / "two", root_ / "one");
  EXPECT_EQ(run_in_child([&] { return read(folder) == "of two" ? 0 : 1; }), 0);
  EXPECT_EQ(read(folder), "of one");
}

TEST_F(OwnProc, ItsNumberIsNoneOfTheStandardOnes) {
  const int saved = dup(STDIN_FILENO);
  close(STDIN_FILENO);
  {
    const guest::OwnProc folder((root_ / "one").c_str());
    ASSERT_EQ(held().size(), 1u);
    EXPECT_GT(*held().begin(), STDERR_FILENO);
  }
  dup2(saved, STDIN_FILENO);
  close(saved);
}

TEST_F(OwnProc, AFolderThatIsNotThereHasNoFile) {
  const guest::OwnProc folder((root_ / "none").c_str());
  EXPECT_EQ(read(folder), "error " + std::to_string(ENOENT));
}

}  // namespace
