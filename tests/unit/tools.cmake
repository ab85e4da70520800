# Unit tests of tools/: computations and exit codes of `ivgpu`, and the scripts.
add_executable(tools_test
  ${CMAKE_CURRENT_LIST_DIR}/tools/bench_files_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/tools/bench_numbers_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/tools/bench_share_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/tools/bench_shown_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/tools/call_text_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/tools/check_cache_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/tools/check_module_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/tools/child_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/tools/device_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/tools/guest_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/tools/install_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/tools/qemu_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/tools/size_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/tools/status_text_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/tools/top_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/tools/trace_source_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/tools/vsock_test.cc
  ${CMAKE_SOURCE_DIR}/tools/check/cache.cc ${CMAKE_SOURCE_DIR}/tools/check/machine.cc
  ${CMAKE_SOURCE_DIR}/tools/check/module.cc ${CMAKE_SOURCE_DIR}/tools/check/region.cc
  ${CMAKE_SOURCE_DIR}/guest/region/cache_probe.cc ${CMAKE_SOURCE_DIR}/guest/region/module_info.cc)
set_source_files_properties(${CMAKE_SOURCE_DIR}/tools/check/module.cc TARGET_DIRECTORY tools_test
                            PROPERTIES COMPILE_DEFINITIONS IVGPU_VERSION="${PROJECT_VERSION}")
set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/tools/device_test.cc
                            PROPERTIES COMPILE_DEFINITIONS IVGPU_SOURCES="${CMAKE_SOURCE_DIR}")
target_link_libraries(tools_test PRIVATE ivgpu_tools ivgpu_api GTest::gtest_main)
ivgpu_discover(tools_test SANITIZED PREFIX unit. LABELS unit)

add_test(NAME unit.tools.command_line COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/tools/command_line.sh $<TARGET_FILE:ivgpu>)
add_test(NAME unit.tools.bench COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/tools/bench.sh $<TARGET_FILE:ivgpu>)
add_test(NAME unit.tools.bench_plot COMMAND ${IVGPU_LIMITED} python3 -I ${CMAKE_CURRENT_LIST_DIR}/tools/bench_plot.py
                                            ${CMAKE_SOURCE_DIR}/tools/ivgpu/bench/plot)
add_test(NAME unit.tools.bench_mps COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/tools/bench_mps.sh $<TARGET_FILE:ivgpu>
                                           ${CMAKE_BINARY_DIR}/simgpu/libcuda.so.1)
add_test(NAME unit.tools.bench_runs COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/tools/bench_runs.sh ${CMAKE_SOURCE_DIR}/tools/dev/bench-runs)
add_test(NAME unit.tools.compare_builds COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/tools/compare_builds.sh
                                                ${CMAKE_SOURCE_DIR}/tools/compare-builds ${CMAKE_BINARY_DIR})
# clang 14's leak checker mislocates the thread-local memory of a library that is opened late.
set_tests_properties(unit.tools.bench unit.tools.bench_mps unit.tools.compare_builds PROPERTIES PROCESSORS 2
  ENVIRONMENT ASAN_OPTIONS=intercept_tls_get_addr=0)
if(NOT IVGPU_SANITIZE)  # a sanitizer's run-time prints its own lines at the end of a process
  add_test(NAME unit.tools.bad_input COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/tools/bad_input.sh ${CMAKE_BINARY_DIR})
endif()
add_test(NAME unit.tools.unity_groups COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/tools/unity_groups.sh ${CMAKE_SOURCE_DIR})
add_test(NAME unit.tools.check
         COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/tools/check.sh $<TARGET_FILE:ivgpu-check> ${PROJECT_VERSION})
add_test(NAME unit.tools.guest_setup COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/tools/guest_setup.sh ${CMAKE_SOURCE_DIR})
add_test(NAME unit.tools.units
         COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/tools/units.sh ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
set_tests_properties(unit.tools.units PROPERTIES LABELS unit SKIP_RETURN_CODE 77)
if(NOT IVGPU_SANITIZE)  # tests a script that starts Python for each line
  add_test(NAME unit.tools.libvirt_hook
           COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/tools/libvirt_hook.sh ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
  set_tests_properties(unit.tools.libvirt_hook PROPERTIES LABELS unit SKIP_RETURN_CODE 77)
endif()
add_test(NAME unit.tools.guest_tarball
         COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/tools/guest_tarball.sh ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
if(NOT IVGPU_SANITIZE)  # only the C compiler builds their programs, which cannot load a library with a sanitizer
  add_test(NAME unit.tools.sim COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/tools/sim.sh ${CMAKE_BINARY_DIR})
  add_test(NAME unit.tools.coverage COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/tools/coverage.sh ${CMAKE_BINARY_DIR})
  add_test(NAME unit.tools.conformance COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/tools/conformance.sh
                                               ${CMAKE_SOURCE_DIR}/tools/conformance ${CMAKE_BINARY_DIR})
  # The test waits for hanging programs and for nvcc.
  set_tests_properties(unit.tools.conformance PROPERTIES PROCESSORS 2)
endif()
add_test(NAME unit.tools.run_programs
         COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/tools/run_programs.sh ${CMAKE_SOURCE_DIR}/tools/guest/run-programs)
add_test(NAME unit.tools.boundary_check COMMAND ${IVGPU_LIMITED} ${CMAKE_SOURCE_DIR}/tools/boundary-check)
add_test(NAME unit.tools.boundary_check_catches
         COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/tools/boundary_check.sh ${CMAKE_SOURCE_DIR}/tools/boundary-check)
add_test(NAME unit.tools.class_sizes COMMAND ${IVGPU_LIMITED} ${CMAKE_SOURCE_DIR}/tools/dev/class-sizes)
add_test(NAME unit.tools.class_sizes_catches
         COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/tools/class_sizes.sh ${CMAKE_SOURCE_DIR}/tools/dev/class-sizes)
add_test(NAME unit.tools.thread_safety COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/tools/thread_safety.sh ${CMAKE_SOURCE_DIR})
add_test(NAME unit.tools.draw_prose COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/tools/draw_prose.sh ${CMAKE_SOURCE_DIR})
set_tests_properties(unit.tools.draw_prose PROPERTIES SKIP_RETURN_CODE 77)
# These tests read only sources and scripts, so a single build runs them (tools/test).
set_tests_properties(unit.tools.bench_plot unit.tools.bench_runs unit.tools.boundary_check
                     unit.tools.boundary_check_catches unit.tools.class_sizes unit.tools.class_sizes_catches
                     unit.tools.draw_prose unit.tools.guest_setup
                     unit.tools.run_programs unit.tools.thread_safety PROPERTIES LABELS "unit;sources")
