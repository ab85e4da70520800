// A fixture for tests of the simulated GPU's engine: a small device, modules from PTX text, launches with lists of
// values.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "host/simgpu/engine.h"
#include "host/simgpu/vm/load.h"

namespace simgpu {

class Device : public ::testing::Test {
 protected:
  AddressSpace space{std::size_t{256} << 20};
  std::string printed;
  Engine engine{space, 2, [this](std::string_view text) { printed.append(text); }};

  std::unique_ptr<Module> load(const std::string& text) {
    Module::Loaded loaded = load_ptx(std::span(&text, 1), space);
    EXPECT_EQ(loaded.code, CUDA_SUCCESS) << loaded.log << "\n" << text.substr(0, 2000);
    return std::move(loaded.module);
  }

  // Returns device memory that holds `values`. The memory is freed with the device.
  template <class T>
  T* upload(const std::vector<T>& values) {
    const Address address = space.allocate(std::max<std::size_t>(1, values.size() * sizeof(T)));
    EXPECT_NE(address, 0u);
    std::memcpy(reinterpret_cast<void*>(address), values.data(), values.size() * sizeof(T));
    return reinterpret_cast<T*>(address);
  }
  template <class T>
  T* room(std::size_t count) {
    return upload(std::vector<T>(count));
  }

  template <class... A>
  Fault run(const Module& module, std::string_view name, Dim3 grid, Dim3 block, std::size_t shared, A... arguments) {
    return run_as(module, name, grid, block, shared, false, arguments...);
  }

  template <class... A>
  Fault run_as(const Module& module, std::string_view name, Dim3 grid, Dim3 block, std::size_t shared, bool cooperative,
               A... arguments) {
    const Function* function = module.function(name);
    if (function == nullptr) {
      ADD_FAILURE() << "no kernel " << name;
      return {CUDA_ERROR_NOT_FOUND, "no kernel"};
    }
    std::vector<std::byte> params(function->param_bytes);
    [[maybe_unused]] std::size_t next = 0;
    (pack(*function, params, next++, arguments), ...);
    return engine.run({function, grid, block, shared, params, cooperative});
  }

 private:
  template <class T>
  static void pack(const Function& function, std::vector<std::byte>& params, std::size_t number, const T& value) {
    ASSERT_LT(number, function.params.size());
    ASSERT_EQ(function.params[number].size, sizeof(T));
    std::memcpy(params.data() + function.params[number].offset, &value, sizeof(T));
  }
};

}  // namespace simgpu
