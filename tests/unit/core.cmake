# Unit tests of ring/, guest/, host/session and host/untrusted, which need neither a driver nor a second process.

# unit_test(name [option...] LIBRARIES library... SOURCES file...): adds tests with the label unit; ivgpu_discover()
# gets the options.
function(unit_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LIBRARIES;SOURCES")
  list(TRANSFORM arg_SOURCES PREPEND ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/)
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES} ivgpu_options GTest::gtest_main Threads::Threads)
  ivgpu_discover(${name} PREFIX unit. LABELS unit ${arg_UNPARSED_ARGUMENTS})
endfunction()

unit_test(ring_test SANITIZED TSAN LIBRARIES ivgpu_api
          SOURCES ring/layout_test.cc ring/layout_in_c.c ring/parking_test.cc ring/queue_test.cc ring/record_test.cc ring/spin_test.cc ring/telemetry_test.cc)
target_compile_options(ring_test PRIVATE ${IVGPU_OPTIMISED})  # the code of the rings is in headers

set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/ring/layout_in_c.c PROPERTIES
                            COMPILE_OPTIONS "-std=c11;-Wall;-Wextra;-Werror;-pedantic")

add_test(NAME unit.ring.misfit_lines
         COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/ring/misfit_lines.sh ${CMAKE_CXX_COMPILER} ${CMAKE_SOURCE_DIR} ${IVGPU_CUDA_INCLUDE})
set_tests_properties(unit.ring.misfit_lines PROPERTIES LABELS "unit;sources")

unit_test(guest_test SANITIZED TSAN LIBRARIES ivgpu_guest
          SOURCES guest/addresses_test.cc guest/arena_test.cc guest/attributes_test.cc guest/channel_mutex_test.cc guest/clock_pace_test.cc guest/copiers_test.cc guest/described_test.cc guest/devdax_test.cc guest/log_test.cc guest/managed_ranges_test.cc guest/module_test.cc guest/objects_test.cc guest/occupied_test.cc guest/own_proc_test.cc guest/region_test.cc guest/registered_test.cc guest/shared_copy_test.cc guest/variables_test.cc)

# A sanitizer's build has more thread-local variables.
if(NOT IVGPU_SANITIZE)
  add_test(NAME unit.guest.thread_local_size
           COMMAND ${IVGPU_LIMITED} ${CMAKE_COMMAND} -DREADELF=${CMAKE_READELF} -DLIBRARY=$<TARGET_FILE:guest_cuda> -DMOST=64
                   -P ${CMAKE_CURRENT_LIST_DIR}/thread_local_size.cmake)
  set_tests_properties(unit.guest.thread_local_size PROPERTIES LABELS "unit;merge")
endif()

unit_test(guest_nvml_test SANITIZED TSAN LIBRARIES ivgpu_guest_nvml SOURCES guest/nvml_test.cc)

unit_test(session_test SANITIZED TSAN LIBRARIES ivgpu_untrusted ivgpu_fake_driver
          SOURCES session/addresses_test.cc session/attributes_test.cc session/excluded_ranges_test.cc session/control_channel_test.cc session/budget_test.cc session/captures_test.cc session/channel_test.cc session/contexts_test.cc session/gone_addresses_test.cc session/green_test.cc session/guest_line_test.cc session/hostile_test.cc session/hostile_references_test.cc session/hostile_textures_test.cc session/callback_slots_test.cc session/launch_graphs_test.cc session/links_test.cc session/long_waits_test.cc session/memory_test.cc session/shadow_copies_test.cc session/misuse_test.cc session/objects_test.cc session/quota_test.cc session/stream_attributes_test.cc session/gpu_use_test.cc session/waker_test.cc)

unit_test(scheduler_test SANITIZED TSAN LIBRARIES ivgpu_scheduler ivgpu_switch_table
          SOURCES scheduler/policy_test.cc scheduler/switches_test.cc scheduler/scheduler_test.cc)
target_compile_options(scheduler_test PRIVATE ${IVGPU_OPTIMISED})  # simulates minutes of GPU time
unit_test(rm_test SANITIZED LIBRARIES ivgpu_rm SOURCES scheduler/groups_test.cc)
