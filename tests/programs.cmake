# Tests that run each program of programs/list.txt twice: on the simulated GPU, and through guest library and worker on
# this machine (loopback). Both runs must pass and print the same bytes.
get_property(lines DIRECTORY programs PROPERTY IVGPU_PROGRAM_LINES)
get_property(apart DIRECTORY programs PROPERTY IVGPU_PROGRAM_LINESNVRTC)
foreach(line IN LISTS lines apart)
  separate_arguments(words UNIX_COMMAND "${line}")
  list(GET words 0 file)
  cmake_path(GET file FILENAME name)
  add_test(NAME programs.${name} COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/run_program.sh ${CMAKE_BINARY_DIR} ${words})
  set_tests_properties(programs.${name} PROPERTIES LABELS programs PROCESSORS 2)
endforeach()

# Uses one context on each of two devices; the test above has both contexts on one device.
add_test(NAME programs.other_context_of_two_devices
         COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/run_program.sh ${CMAKE_BINARY_DIR} other_context --devices 2)
set_tests_properties(programs.other_context_of_two_devices PROPERTIES LABELS programs PROCESSORS 2
  ENVIRONMENT IVGPU_SIM_DEVICES=2)

# A program for devices without concurrent access to managed memory.
add_test(NAME programs.managed_atomics_exclusive
         COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/run_program.sh ${CMAKE_BINARY_DIR} managed_atomics)
set_tests_properties(programs.managed_atomics_exclusive PROPERTIES LABELS programs PROCESSORS 2
  ENVIRONMENT IVGPU_MANAGED=exclusive)

# The order between host threads must hold, however late the worker executes any record.
add_test(NAME programs.handoff_delayed
         COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/run_program.sh ${CMAKE_BINARY_DIR} handoff --rounds 10000)
set_tests_properties(programs.handoff_delayed PROPERTIES LABELS programs PROCESSORS 2
  ENVIRONMENT IVGPU_TEST_CONFIG=${CMAKE_CURRENT_LIST_DIR}/data/delays.toml)
