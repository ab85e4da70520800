// Checks text that a reader pastes from a page: the shell code must be valid, named tools must exist, configurations of
// ivgpud must be valid, and all pages must show the same libvirt device.
#include <gtest/gtest.h>

#include <cstdio>

#include "host/broker/config/config.h"
#include "tests/docs/markdown.h"
#include "tests/error_of.h"

namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;
const fs::path root = IVGPU_SOURCE_DIR;

// The text from a line that begins with `first` to the line `last`; "" if absent.
std::string part(const Strings& lines, const std::string& first, const std::string& last, bool with_both) {
  std::string text;
  bool inside = false;
  for (const std::string& line : lines) {
    const std::string bare = docs_test::trimmed(line);
    const bool begins = !inside && bare.starts_with(first), ends = inside && bare == last;
    if (begins) inside = true;
    if (inside && (with_both || (!begins && !ends))) text += (with_both ? bare : line) + "\n";
    if (ends) return text;
  }
  return "";
}

std::string joined(const Strings& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::vector<docs_test::Block> blocks_of(const fs::path& page, const std::string& kind) {
  auto blocks = docs_test::parse(docs_test::read(page)).blocks;
  std::erase_if(blocks, [&](const auto& block) { return block.kind != kind; });
  return blocks;
}

std::vector<fs::path> pages() {
  std::vector<fs::path> all = {root / "README.md"};
  for (const char* folder : {"docs", "docs/measurements", "qemu-config"})
    for (const auto& entry : fs::directory_iterator(root / folder))
      if (entry.path().extension() == ".md") all.push_back(entry.path());
  return all;
}

bool a_shell_takes(const std::string& text) {
  FILE* shell = popen("bash -n 2>/dev/null", "w");
  if (shell == nullptr) return false;
  std::fwrite(text.data(), 1, text.size(), shell);
  return pclose(shell) == 0;
}

Strings tools_not_there(const std::string& text) {
  Strings gone;
  for (const std::string& line : docs_test::lines_of(text)) {
    std::istringstream words(line.substr(0, line.find(" # ")));
    for (std::string word; words >> word;)
      if (word.starts_with("tools/") && !fs::exists(root / word)) gone.push_back(word);
  }
  return gone;
}

std::string mistake_in(const std::string& configuration) {
  return error_of(host::broker::parse_config(configuration, "page", 8));
}

TEST(Pasted, IsShell) {
  int blocks = 0;
  for (const fs::path& page : pages())
    for (const auto& block : blocks_of(page, "sh")) {
      ++blocks;
      EXPECT_TRUE(a_shell_takes(joined(block.lines))) << page << ":\n" << joined(block.lines);
      EXPECT_EQ(tools_not_there(joined(block.lines)), Strings{}) << page;
    }
  EXPECT_GE(blocks, 15);
}

TEST(Pasted, ABrokenCommandIsFound) {
  EXPECT_FALSE(a_shell_takes("while true; do sleep 1\n"));
  EXPECT_EQ(tools_not_there("sudo tools/no-such-tool --fast"), Strings{"tools/no-such-tool"});
  EXPECT_NE(mistake_in("[broker]\nsocket_groop = \"kvm\"\n[vm.vm1]\n"), "");
}

TEST(Pasted, ConfigurationsAreGood) {
  for (const char* page : {"doorbell.md", "plain.md", "pmem.md", "cloud-hypervisor.md"}) {
    const auto blocks = blocks_of(root / "qemu-config" / page, "toml");
    ASSERT_EQ(blocks.size(), 1u) << page;
    EXPECT_EQ(mistake_in(joined(blocks[0].lines)), "") << page;
  }
  const std::string packaged = docs_test::read(root / "tools/host/ivgpud.toml");
  EXPECT_NE(packaged.find("\n#[vm.vm1]\n"), std::string::npos);
  EXPECT_EQ(mistake_in(packaged + "[vm.vm1]\n"), "");
  const std::string manual =
      part(docs_test::lines_of(docs_test::read(root / "docs/man/ivgpud.8")), ".Bd -literal", ".Ed", false);
  EXPECT_NE(manual.find("[vm.vm2]"), std::string::npos);
  EXPECT_EQ(mistake_in(manual), "");
}

TEST(Pasted, TheDeviceIsTheSameEverywhere) {
  const auto device = [](const char* file) {
    return part(docs_test::lines_of(docs_test::read(root / file)), "<shmem", "</shmem>", true);
  };
  const std::string doorbell = device("qemu-config/doorbell.xml"), plain = device("qemu-config/plain-file.xml");
  EXPECT_NE(doorbell.find("ivshmem-doorbell"), std::string::npos);
  EXPECT_EQ(device("docs/host.md"), doorbell);
  EXPECT_EQ(device("qemu-config/doorbell.md"), doorbell);
  EXPECT_NE(plain.find("ivshmem-plain"), std::string::npos);
  EXPECT_EQ(device("qemu-config/plain.md"), plain);
}

}  // namespace
