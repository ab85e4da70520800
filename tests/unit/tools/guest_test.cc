// The files that a guest gets: the job that /init reads, and the archive that contains the job.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "tools/ivgpu/support/child.h"
#include "tools/ivgpu/support/error.h"
#include "tools/ivgpu/support/temp_dir.h"
#include "tools/ivgpu/vm/cpio.h"
#include "tools/ivgpu/vm/guest.h"

namespace ivgpu {
namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

int shell(const std::string& line) { return Child({.argv = {"/bin/sh", "-c", line}}).wait(); }

TEST(Job, SurvivesTheShellWhateverTheCommandIs) {
  const TempDir folder;
  const std::string command = "echo 'a b' \"$HOME\" `x` \\ ; # $(y)\nsecond line";
  std::ofstream(folder.path() / "job") << job_settings({.keep = true, .command = command});
  const std::string path = folder.path().string();
  ASSERT_EQ(shell(". " + path + "/job; printf '%s|%s|%s' \"$interactive\" \"$keep\" \"$command\" >" + path + "/out"),
            0);
  EXPECT_EQ(read_file(folder.path() / "out"), "0|1|" + command);
}

TEST(Job, ExportsTheEnvironment) {
  EXPECT_EQ(job_settings({.environment = {"A=b=c d"}}), "interactive=0\nkeep=0\ncommand=''\nexport A='b=c d'\n");
}

TEST(Job, RefusesAnAssignmentWithoutAName) {
  for (const char* bad : {"word", "=value", ""}) EXPECT_THROW(job_settings({.environment = {bad}}), Error) << bad;
}

TEST(Cpio, HeaderAndPaddingAreNewc) {
  std::ostringstream out;
  write_cpio(out, {{.path = "ab", .content = "xyz"}});
  const std::string archive = out.str();
  EXPECT_EQ(archive.substr(0, 22),
            "070701"
            "00000001"
            // Magic, inode, and the mode of a file that all users may read.
            "000081a4");
  EXPECT_EQ(archive.substr(54, 8), "00000003");                // the content's size
  EXPECT_EQ(archive.substr(94, 8), "00000003");                // the name's size, with its NUL
  EXPECT_EQ(archive.substr(110, 3), std::string("ab\0", 3));   // the file's name
  EXPECT_EQ(archive.substr(116, 4), std::string("xyz\0", 4));  // the content from the next multiple of 4
  EXPECT_NE(archive.find("TRAILER!!!"), std::string::npos);
  EXPECT_EQ(archive.size() % 4, 0U);
}

TEST(Initrd, TheJobFollowsTheImageOnAMultipleOf4) {
  const TempDir folder;
  std::ofstream(folder.path() / "image") << "12345";
  write_initrd(folder.path() / "initrd", {.kernel = "", .initramfs = folder.path() / "image"},
               job_settings({.command = "true"}));
  const std::string initrd = read_file(folder.path() / "initrd");
  EXPECT_EQ(initrd.substr(0, 8), std::string("12345\0\0\0", 8));
  EXPECT_EQ(initrd.substr(8, 6), "070701");
  EXPECT_NE(initrd.find("command='true'"), std::string::npos);
}

TEST(Initrd, ModulesAreThereAndNamedInTheirOrder) {
  const TempDir folder;
  std::ofstream(folder.path() / "image") << "1234";
  for (const char* name : {"second.ko", "first.ko"}) std::ofstream(folder.path() / name) << "text of " << name;
  const GuestImage image{.kernel = "",
                         .initramfs = folder.path() / "image",
                         .modules = {folder.path() / "first.ko", folder.path() / "second.ko"}};
  write_initrd(folder.path() / "initrd", image, job_settings({.command = "true", .awaited = "/dev/x /dev/y*"}));
  const std::string initrd = read_file(folder.path() / "initrd");
  EXPECT_NE(initrd.find("command='true'\nawaited='/dev/x /dev/y*'\nmodules='first second'\n"), std::string::npos);
  EXPECT_LT(initrd.find(std::string("ivgpu/modules\0", 14)), initrd.find("ivgpu/modules/first.ko"))
      << "the folder comes first";
  EXPECT_NE(initrd.find("text of second.ko"), std::string::npos);
  fs::remove(folder.path() / "first.ko");
  EXPECT_THROW(write_initrd(folder.path() / "again", image, ""), Error);
}

}  // namespace
}  // namespace ivgpu
