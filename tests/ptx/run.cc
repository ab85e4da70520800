// Runs every form on a driver (the simulated GPU's or NVIDIA's), and compares the results with the forms' own
// calculation. With two drivers, also compares their results with each other. Also checks that every entry of the table
// of forms has a form, that forms which need an object can be loaded, and that the simulated GPU refuses unsupported
// forms with line and opcode.
//
// usage: ptx_forms [--cuda PATH]... [--table CSV] [--only WORD] [--without WORD] [--write FOLDER]
// WORD: a part of the names of forms.
// --write: runs no form, but writes the texts of the forms into files, for example for an assembler.
// Exit codes: 0 all results agree, 1 a check failed, 2 no driver or wrong command line.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>

#include "tests/ptx/driver.h"

namespace ptx_forms {
namespace {

constexpr std::size_t block = 128;
constexpr std::size_t kernels_of_module = 32;

struct Line {
  const char* name;
  const char* text;
};
// Opcodes that need a texture or surface object, which this program does not create. They are only loaded.
// tests/unit/simgpu/texture_test.cc and surface_test.cc check their results.
constexpr Line with_objects[] = {
    {"tex.1d.v4.f32.s32", "tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1}];"},
    {"tex.1d.v4.s32.s32", "tex.1d.v4.s32.s32 {%r1, %r2, %r3, %r4}, [%rd1, {%r5}];"},
    {"tex.2d.v4.f32.f32", "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];"},
    {"sust.b.2d.b32.trap", "sust.b.2d.b32.trap [%rd1, {%r1, %r2}], {%r3};"},
};
// Opcodes that the simulated GPU does not support.
constexpr Line refused[] = {
    {"tex.2dms.v4.f32.s32", "tex.2dms.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1, %r2, %r3, %r3}];"},
    {"tex.2d.v4.f32.f32", "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}], %f7;"},
};

std::string header(unsigned target) {
  return ".version 9.0\n.target sm_" + std::to_string(target) + "\n.address_size 64\n";
}

std::string load_line(const std::string& type, char name, std::size_t number) {
  const std::string plain = type == "f32" ? "b32" : type == "f64" ? "b64" : type;
  return "ld.global." + plain + " %" + name + ", [%in+" + std::to_string(8 * number) + "];\n";
}

std::string store_lines(const std::string& type, char name, std::size_t offset) {
  const std::string source = std::string("%") + name;
  const std::string place = "[%out+" + std::to_string(offset) + "], %wide;\n";
  if (type == "b16") return "cvt.u64.u16 %wide, " + source + ";\nst.global.b64 " + place;
  if (type == "b64" || type == "f64") return "mov.b64 %wide, " + source + ";\nst.global.b64 " + place;
  return "mov.b32 %narrow, " + source + ";\ncvt.u64.u32 %wide, %narrow;\nst.global.b64 " + place;
}

// Puts the text into both sides of a branch. The simulated GPU has two handlers for an instruction, one for a whole
// warp and one for a part of a warp, and this form tests the latter.
std::string diverging(const std::string& text) {
  return "and.b32 %u, %thread, 33; setp.eq.u32 %odd, %u, 33;\n@%odd bra ODD;\n" + text + "\nbra JOIN;\nODD:\n" + text +
         "\nJOIN:\n";
}

std::string kernel_text(const Form& form, const std::string& name) {
  std::string text = ".visible .entry " + name +
                     "(.param .u64 out, .param .u64 in, .param .u64 memory, .param .align 16 .b8 extra[32])\n" +
                     (form.in_clusters ? ".explicitcluster .reqnctapercluster 1, 1, 1\n" : "") + R"({
.reg .pred %p<5>, %odd; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .f64 %q<9>;
.reg .b32 %thread, %tile, %narrow, %u, %v, %w; .reg .b64 %out, %in, %mem, %wide;
.shared .align 16 .b8 tile[8192];
mov.u32 %u, %ctaid.x; mov.u32 %v, %ntid.x; mov.u32 %w, %tid.x; mad.lo.u32 %thread, %u, %v, %w;
ld.param.u64 %out, [out]; mad.wide.u32 %out, %thread, 16, %out;
ld.param.u64 %in, [in]; mad.wide.u32 %in, %thread, 64, %in;
ld.param.u64 %mem, [memory]; mad.wide.u32 %mem, %thread, 64, %mem;
mov.u32 %tile, tile; mad.lo.u32 %tile, %w, 64, %tile;
)";
  text += ".reg ." + form.result + " %d;\n";
  if (!form.second.empty()) text += ".reg ." + form.second + " %e;\n";
  for (std::size_t k = 0; k < form.sources.size(); ++k) {
    const char source = static_cast<char>('a' + k);
    text += ".reg ." + form.sources[k] + " %" + source + ";\n" + load_line(form.sources[k], source, k);
  }
  text += (form.diverges ? diverging(form.text) : form.text + "\n") + store_lines(form.result, 'd', 0);
  text +=
      form.second.empty() ? "mov.b64 %wide, 0;\nst.global.b64 [%out+8], %wide;\n" : store_lines(form.second, 'e', 8);
  return text + "ret;\n}\n";
}

std::string shown(Bits bits) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(bits));
  return text;
}

std::string shown(const Row& row, std::size_t sources) {
  std::string text;
  for (std::size_t k = 0; k < sources; ++k) text += (k == 0 ? "" : ", ") + shown(row.in[k]);
  return text;
}

// The results of one driver for every form; empty for forms that did not run.
using Answers = std::vector<std::vector<Result>>;

class Session {
 public:
  Session(const std::string& path, std::vector<Form>& forms) : driver_(path), forms_(forms), answers_(forms.size()) {
    std::cout << path << ": " << driver_.name() << ", compute capability " << driver_.capability() << "\n";
  }

  Answers run() {
    std::vector<std::size_t> batch;
    for (std::size_t k = 0; k < forms_.size(); ++k) {
      if (forms_[k].target > driver_.capability()) {
        ++too_new_;
        continue;
      }
      if (!forms_[k].declarations.empty() || forms_[k].target != 75) {
        run_batch({k});
        continue;
      }
      batch.push_back(k);
      if (batch.size() == kernels_of_module) run_batch(std::exchange(batch, {}));
    }
    run_batch(batch);
    if (driver_.faulted()) {
      std::cout << "The driver answers this process no more after that: try the others by --without WORD.\n";
      return std::move(answers_);
    }
    check_loaded();
    if (driver_.simulated()) check_refused();
    return std::move(answers_);
  }

  unsigned failed() const { return failed_; }
  void summary() const {
    std::cout << driver_.name() << ": " << passed_ << " forms agree, " << failed_ << " do not, " << too_new_
              << " need a newer device; " << rows_ << " rows\n";
  }

 private:
  void fail(const std::string& what) {
    ++failed_;
    std::cout << "FAIL " << what << "\n";
  }

  // One module contains many kernels. If the module cannot be loaded, each kernel gets a module of its own, so that the
  // failing form is known.
  void run_batch(const std::vector<std::size_t>& batch) {
    if (batch.empty() || driver_.faulted()) return;
    std::string text = header(forms_[batch[0]].target);
    for (const std::size_t k : batch) text += forms_[k].declarations + kernel_text(forms_[k], "k" + std::to_string(k));
    const Loaded loaded = driver_.load(text);
    if (loaded.code != CUDA_SUCCESS) {
      if (batch.size() == 1) return fail(forms_[batch[0]].name + ": not loaded, " + loaded.log);
      for (const std::size_t k : batch) run_batch({k});
      return;
    }
    for (const std::size_t k : batch) run_form(loaded.module, k);
    if (!driver_.faulted()) driver_.unload(loaded.module);
  }

  void run_form(CUmodule module, std::size_t k) {
    if (driver_.faulted()) return;
    const Form& form = forms_[k];
    std::string why;
    answers_[k] = driver_.run(module, "k" + std::to_string(k), form.rows, why);
    if (answers_[k].empty()) return fail(form.name + ": " + why);
    rows_ += form.rows.size();
    unsigned wrong = 0;
    for (std::size_t r = 0; r < form.rows.size(); ++r) {
      const Result wanted = form.reference(&form.rows[r / warp * warp], static_cast<unsigned>(r % warp));
      const Result& got = answers_[k][r];
      if (wanted == got || (form.accept && form.accept(wanted, got, form.rows[r]))) continue;
      if (++wrong <= 4) show(form, form.rows[r], wanted, got);
    }
    if (wrong == 0) {
      ++passed_;
    } else {
      fail(form.name + ": " + std::to_string(wrong) + " of " + std::to_string(form.rows.size()) + " rows");
    }
  }

  static void show(const Form& form, const Row& row, const Result& wanted, const Result& got) {
    std::cout << "  " << form.text << " of " << shown(row, form.sources.size()) << " gives " << shown(got.d);
    if (!form.second.empty()) std::cout << " and " << shown(got.e);
    std::cout << ", not " << shown(wanted.d);
    if (!form.second.empty()) std::cout << " and " << shown(wanted.e);
    std::cout << "\n";
  }

  Loaded load_line_of(const Line& one) {
    return driver_.load(header(75) + ".visible .entry k()\n{\n.reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>;\n" +
                        one.text + "\nret;\n}\n");
  }

  void check_loaded() {
    for (const Line& one : with_objects) {
      const Loaded loaded = load_line_of(one);
      if (loaded.code != CUDA_SUCCESS) {
        fail(std::string(one.name) + ": not loaded, " + loaded.log);
        continue;
      }
      driver_.unload(loaded.module);
      ++passed_;
    }
  }

  void check_refused() {
    for (const Line& one : refused) {
      const Loaded loaded = load_line_of(one);
      const bool told =
          loaded.log.find("line 7") != std::string::npos && loaded.log.find(one.name) != std::string::npos;
      if (loaded.code == CUDA_ERROR_INVALID_PTX && told) {
        ++passed_;
      } else {
        fail(std::string(one.name) + " is not refused with line and opcode but gives " + std::to_string(loaded.code) +
             ": " + loaded.log);
      }
    }
  }

  Driver driver_;
  const std::vector<Form>& forms_;
  Answers answers_;
  unsigned passed_ = 0;
  unsigned failed_ = 0;
  unsigned too_new_ = 0;
  std::size_t rows_ = 0;
};

// Compares the results of two drivers for the forms that define every bit. Other results were already compared with
// their error bounds.
unsigned compare(const std::vector<Form>& forms, const Answers& a, const Answers& b) {
  unsigned different = 0;
  unsigned loose = 0;
  for (std::size_t k = 0; k < forms.size(); ++k) {
    if (a[k].empty() || b[k].empty() || a[k] == b[k]) continue;
    if (forms[k].accept) {
      ++loose;
      continue;
    }
    ++different;
    std::cout << "FAIL " << forms[k].name << ": the drivers differ\n";
  }
  std::cout << "between the drivers: " << different << " forms differ, " << loose << " more within their bounds\n";
  return different;
}

// Returns true if the text contains the opcode as a whole word. A row that has the form's name but not the opcode tests
// something else.
bool holds_opcode(const std::string& text, const std::string& opcode) {
  for (std::size_t at = text.find(opcode); at != std::string::npos; at = text.find(opcode, at + 1)) {
    const std::size_t end = at + opcode.size();
    const bool begins = at == 0 || std::strchr(" \t\n;:{", text[at - 1]) != nullptr;
    if (begins && end < text.size() && std::strchr(" \t\n;", text[end]) != nullptr) return true;
  }
  return false;
}

// The number of forms in the table, as counted once in the output of compilers. This constant detects lost entries.
constexpr unsigned forms_of_the_table = 219;

// Checks that every entry of the table has a form with its opcode. The table has two columns: base opcode and form.
unsigned check_table(const std::string& path, const std::vector<Form>& forms) {
  std::set<std::string> known;
  for (const Form& form : forms)
    if (holds_opcode(form.text, form.name) || holds_opcode(form.declarations, form.name)) known.insert(form.name);
  for (const Line& one : with_objects)
    if (holds_opcode(one.text, one.name)) known.insert(one.name);
  std::ifstream file(path);
  std::string line;
  unsigned missing = 0;
  unsigned count = 0;
  while (std::getline(file, line)) {
    const std::string name = line.substr(line.find(',') + 1);
    if (name == "form" || name.empty()) continue;
    ++count;
    if (known.count(name) != 0) continue;
    ++missing;
    std::cout << "FAIL " << name << " has no row\n";
  }
  const bool whole = count == forms_of_the_table;
  if (!whole)
    std::cout << "FAIL the table at " << path << " has " << count << " forms, not " << forms_of_the_table << "\n";
  std::cout << path << ": " << count << " forms, " << missing << " without a row\n";
  return missing + (whole ? 0 : 1);
}

Forms all_forms() {
  Forms forms;
  for (const auto add : {&integer_forms, &carry_forms, &bit_forms, &compare_forms, &float_forms, &approximate_forms,
                         &half_forms, &convert_forms, &memory_forms, &atomic_forms, &warp_forms, &control_forms,
                         &async_forms, &wide_forms, &stack_forms, &mma_forms, &wmma_forms, &tile_forms}) {
    add(forms);
  }
  for (Form& form : forms) {
    while (form.rows.empty() || form.rows.size() % block != 0)
      form.rows.push_back(form.rows.empty() ? Row{} : form.rows[0]);
  }
  return forms;
}

void write_texts(const std::string& folder, const std::vector<Form>& forms) {
  std::map<std::pair<unsigned, std::string>, std::string> texts;  // by target and declarations
  for (std::size_t k = 0; k < forms.size(); ++k) {
    std::string& text = texts[{forms[k].target, forms[k].declarations}];
    if (text.empty()) text = header(forms[k].target) + forms[k].declarations;
    text += "// " + forms[k].name + "\n" + kernel_text(forms[k], "k" + std::to_string(k));
  }
  unsigned number = 0;
  for (const auto& [key, text] : texts) {
    std::ofstream(folder + "/forms_" + std::to_string(number++) + "_" + std::to_string(key.first) + ".ptx") << text;
  }
}

struct Options {
  std::vector<std::string> libraries;
  std::string table, only, without, folder;
};

bool read_options(const std::vector<std::string>& words, Options& options) {
  for (std::size_t k = 0; k < words.size(); k += 2) {
    if (k + 1 == words.size()) return false;
    const std::string& value = words[k + 1];
    if (words[k] == "--cuda") {
      options.libraries.push_back(value);
    } else if (words[k] == "--table") {
      options.table = value;
    } else if (words[k] == "--only") {
      options.only = value;
    } else if (words[k] == "--without") {
      options.without = value;
    } else if (words[k] == "--write") {
      options.folder = value;
    } else {
      return false;
    }
  }
  if (options.libraries.empty()) options.libraries.emplace_back("libcuda.so.1");
  return true;
}

int main_of(const std::vector<std::string>& words) {
  Options options;
  if (!read_options(words, options)) {
    std::cerr << "usage: ptx_forms [--cuda PATH]... [--table CSV] [--only WORD] [--without WORD] [--write FOLDER]\n";
    return 2;
  }
  Forms forms = all_forms();
  unsigned failed = options.table.empty() ? 0 : check_table(options.table, forms);
  const auto wanted = [&](const std::string& name) {
    return name.find(options.only) != std::string::npos &&
           (options.without.empty() || name.find(options.without) == std::string::npos);
  };
  std::erase_if(forms, [&](const Form& form) { return !wanted(form.name); });
  if (!options.folder.empty()) {
    write_texts(options.folder, forms);
    return failed == 0 ? 0 : 1;
  }
  std::vector<Answers> answers;
  for (const std::string& library : options.libraries) {
    Session session(library, forms);
    answers.push_back(session.run());
    session.summary();
    failed += session.failed();
  }
  for (std::size_t k = 1; k < answers.size(); ++k) failed += compare(forms, answers[0], answers[k]);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace ptx_forms

int main(int count, char** words) { return ptx_forms::main_of({words + 1, words + count}); }
