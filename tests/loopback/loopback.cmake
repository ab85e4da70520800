# Loopback tests: guest and worker on this machine. Tests in one process run on the strict fake driver and on the
# simulated GPU, also under ThreadSanitizer. Tests with several processes use a real broker. Label: loopback. The entry
# points form a separate library, since they compile slowly.
add_library(ivgpu_entry_points STATIC ${CMAKE_CURRENT_LIST_DIR}/entry_points.cc)
target_link_libraries(ivgpu_entry_points PUBLIC ivgpu_guest ivgpu_untrusted)

# in_process_test(name SOURCES files... [SIMULATED]): adds tests that each run in their own process.
function(in_process_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SIMULATED" "" "SOURCES")
  list(TRANSFORM arg_SOURCES PREPEND ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/)
  add_executable(${name} ${arg_SOURCES} ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/in_process.cc)
  target_link_libraries(${name} PRIVATE ivgpu_entry_points GTest::gtest_main Threads::Threads)
  if(arg_SIMULATED)
    target_sources(${name} PRIVATE ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/backend_simulated.cc)
    target_compile_definitions(${name} PRIVATE IVGPU_SIMULATED_GPU="${CMAKE_BINARY_DIR}/simgpu/libcuda.so.1")
    add_dependencies(${name} simgpu)
  else()
    target_sources(${name} PRIVATE ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/backend_fake.cc)
    target_link_libraries(${name} PRIVATE ivgpu_fake_driver)
  endif()
  # A merge run has these tests on the strict driver only, since the programs and the contract suite cover the simulated
  # GPU.
  set(where SANITIZED TSAN)
  if(arg_SIMULATED)
    set(where THOROUGH TSAN)
  endif()
  ivgpu_discover(${name} PREFIX loopback.${name}. LABELS loopback ${where})
endfunction()

add_library(ivgpu_fake_driver STATIC
  ${CMAKE_CURRENT_LIST_DIR}/../fake/capture.cc
  ${CMAKE_CURRENT_LIST_DIR}/../fake/driver.cc
  ${CMAKE_CURRENT_LIST_DIR}/../fake/link.cc
  ${CMAKE_CURRENT_LIST_DIR}/../fake/graph.cc
  ${CMAKE_CURRENT_LIST_DIR}/../fake/graph_nodes.cc
  ${CMAKE_CURRENT_LIST_DIR}/../fake/green.cc
  ${CMAKE_CURRENT_LIST_DIR}/../fake/pool.cc
  ${CMAKE_CURRENT_LIST_DIR}/../fake/reference.cc
  ${CMAKE_CURRENT_LIST_DIR}/../fake/state.cc
  ${CMAKE_CURRENT_LIST_DIR}/../fake/texture.cc
  ${CMAKE_CURRENT_LIST_DIR}/../fake/virtual.cc)
target_link_libraries(ivgpu_fake_driver PUBLIC ivgpu_abi ivgpu_api Threads::Threads)
target_compile_options(ivgpu_fake_driver PRIVATE ${IVGPU_OPTIMISED})  # fuzzers call this library

in_process_test(loopback_fake SOURCES callbacks.cc coming_back.cc contexts.cc diagnosis.cc green.cc callback_slots.cc module.cc old_sizes.cc order.cc release.cc scenarios.cc
                strict.cc)
if(TARGET simgpu)
  in_process_test(loopback_simulated SIMULATED SOURCES callbacks.cc captures.cc contexts.cc green.cc order.cc scenarios.cc)
endif()

# Tests with several processes, a real broker and a real worker. They run without sanitizers: a sanitizer's run-time
# cannot run in the jail, nor can a library load it into a program that was built without it.
if(TARGET simgpu AND NOT IVGPU_SANITIZE)
  find_package(nlohmann_json REQUIRED)
  add_executable(loopback_program ${CMAKE_CURRENT_LIST_DIR}/program.cc)
  target_link_libraries(loopback_program PRIVATE ivgpu_api ${CMAKE_DL_LIBS} Threads::Threads)
  add_executable(loopback_taker ${CMAKE_CURRENT_LIST_DIR}/taker.cc)
  target_link_libraries(loopback_taker PRIVATE ivgpu_api ${CMAKE_DL_LIBS})
  add_executable(loopback_load ${CMAKE_CURRENT_LIST_DIR}/load_program.cc)
  target_link_libraries(loopback_load PRIVATE ivgpu_api ${CMAKE_DL_LIBS} Threads::Threads)
  add_executable(loopback_collider ${CMAKE_CURRENT_LIST_DIR}/collider.cc)
  target_link_libraries(loopback_collider PRIVATE ivgpu_api ${CMAKE_DL_LIBS})
  # A library for managed_on_gpu, which a developer starts on a machine with a GPU.
  add_library(managed_taker SHARED ${CMAKE_CURRENT_LIST_DIR}/managed_taker.cc)
  target_link_libraries(managed_taker PRIVATE ivgpu_api ${CMAKE_DL_LIBS})
  foreach(name collisions processes gpus interrupts nvml quotas shares warnings)
    add_executable(loopback_${name} ${CMAKE_CURRENT_LIST_DIR}/${name}.cc)
    target_link_libraries(loopback_${name} PRIVATE ivgpu_ring GTest::gtest_main nlohmann_json::nlohmann_json
                                                   Threads::Threads)
    target_compile_definitions(loopback_${name} PRIVATE
      IVGPU="$<TARGET_FILE:ivgpu>" IVGPUD="$<TARGET_FILE:ivgpud>" WORKER="$<TARGET_FILE:ivgpu-worker>"
      FAKE_WORKER="$<TARGET_FILE:ivgpu-worker>"
      PROGRAM="$<TARGET_FILE:loopback_program>" TAKER="$<TARGET_FILE:loopback_taker>" LOAD_PROGRAM="$<TARGET_FILE:loopback_load>" COLLIDER="$<TARGET_FILE:loopback_collider>" GUEST_CUDA="${CMAKE_BINARY_DIR}/guest/libcuda.so.1"
      GUEST_FOLDER="${CMAKE_BINARY_DIR}/guest" NVML_ANSWERS="$<TARGET_FILE:probe_nvml_answers>"
      NVML_GOLDEN="${CMAKE_SOURCE_DIR}/tests/contract/golden/nvml-580.159.04-h200.txt"
      SIMULATED_GPU="${CMAKE_BINARY_DIR}/simgpu/libcuda.so.1")
    add_dependencies(loopback_${name} loopback_collider loopback_program loopback_taker loopback_load guest_cuda guest_nvml probe_nvml_answers ivgpu ivgpud ivgpu-worker simgpu)
    ivgpu_discover(loopback_${name} PREFIX loopback. LABELS loopback)
  endforeach()
  target_link_libraries(loopback_interrupts PRIVATE ivgpu_guest)

  add_test(NAME loopback.inherited COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/inherited.sh ${CMAKE_BINARY_DIR})
  set_tests_properties(loopback.inherited PROPERTIES LABELS loopback PROCESSORS 2)
endif()
