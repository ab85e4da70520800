# Unit tests of ring/, guest/ and host/session with host/untrusted: no driver, no second process.

# unit_test(name [word...] LIBRARIES library... SOURCES file...): labelled unit, with words of ivgpu_discover().
function(unit_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LIBRARIES;SOURCES")
  list(TRANSFORM arg_SOURCES PREPEND ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/)
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES} ivgpu_options GTest::gtest_main Threads::Threads)
  ivgpu_discover(${name} PREFIX unit. LABELS unit ${arg_UNPARSED_ARGUMENTS})
endfunction()

unit_test(ring_test SANITIZED TSAN LIBRARIES ivgpu_api
          SOURCES ring_layout.cc ring_layout_in_c.c ring_parking.cc ring_queue.cc ring_record.cc ring_spin.cc ring_telemetry.cc)
target_compile_options(ring_test PRIVATE ${IVGPU_OPTIMISED})  # the rings are headers

set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/ring_layout_in_c.c PROPERTIES
                            COMPILE_OPTIONS "-std=c11;-Wall;-Wextra;-Werror;-pedantic")

add_test(NAME unit.ring.misfit_lines
         COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/ring_misfit_lines.sh ${CMAKE_CXX_COMPILER} ${CMAKE_SOURCE_DIR} ${IVGPU_CUDA_INCLUDE})
set_tests_properties(unit.ring.misfit_lines PROPERTIES LABELS "unit;sources")

unit_test(guest_test SANITIZED TSAN SEPARATE LIBRARIES ivgpu_guest
          SOURCES guest_addresses.cc guest_arena.cc guest_attributes.cc guest_copiers.cc guest_described.cc guest_devdax.cc guest_log.cc guest_managed_ranges.cc guest_module.cc guest_objects.cc guest_occupied.cc guest_own_proc.cc guest_region.cc guest_registered.cc guest_shared_copy.cc guest_variables.cc)

unit_test(guest_nvml_test SANITIZED TSAN LIBRARIES ivgpu_guest_nvml SOURCES guest_nvml_test.cc)

unit_test(session_test SANITIZED TSAN SEPARATE LIBRARIES ivgpu_session ivgpu_fake_driver
          SOURCES session_addresses.cc session_attributes.cc session_avoided.cc session_broker_line.cc session_budget.cc session_captures.cc session_channel.cc session_contexts.cc session_gone_addresses.cc session_green.cc session_hostile.cc session_hostile_references.cc session_hostile_textures.cc session_lanes.cc session_links.cc session_long_waits.cc session_memory.cc session_mirrors.cc session_misuse.cc session_objects.cc session_quota.cc session_stream_attributes.cc session_gpu_use.cc session_waker.cc)

unit_test(scheduler_test SANITIZED TSAN LIBRARIES ivgpu_scheduler ivgpu_switch_table
          SOURCES scheduler_policy.cc scheduler_switches.cc scheduler_test.cc)
target_compile_options(scheduler_test PRIVATE ${IVGPU_OPTIMISED})  # minutes of a GPU in virtual time
unit_test(rm_test SANITIZED LIBRARIES ivgpu_rm SOURCES scheduler_groups.cc)
