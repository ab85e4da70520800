# Tests that run the programs of programs/list.txt. Each program: on the simulated GPU, then through guest library and
# worker on this machine (loopback); both must pass, and print the same bytes.
get_property(lines DIRECTORY programs PROPERTY IVGPU_PROGRAM_LINES)
get_property(apart DIRECTORY programs PROPERTY IVGPU_PROGRAM_LINESNVRTC)
foreach(line IN LISTS lines apart)
  separate_arguments(words UNIX_COMMAND "${line}")
  list(GET words 0 file)
  cmake_path(GET file FILENAME name)
  add_test(NAME programs.${name} COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/run_program.sh ${CMAKE_BINARY_DIR} ${words})
  set_tests_properties(programs.${name} PROPERTIES LABELS programs PROCESSORS 2)
endforeach()

# With a context on each of two devices; above both are on one.
add_test(NAME programs.other_context_of_two_devices
         COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/run_program.sh ${CMAKE_BINARY_DIR} other_context --devices 2)
set_tests_properties(programs.other_context_of_two_devices PROPERTIES LABELS programs PROCESSORS 2
  ENVIRONMENT IVGPU_SIM_DEVICES=2)

# A program that keeps to the rules of devices without concurrent access to managed memory.
add_test(NAME programs.managed_atomics_exclusive
         COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/run_program.sh ${CMAKE_BINARY_DIR} managed_atomics)
set_tests_properties(programs.managed_atomics_exclusive PROPERTIES LABELS programs PROCESSORS 2
  ENVIRONMENT IVGPU_MANAGED=exclusive)

# The order of the host threads has to hold however late the worker is with any record.
add_test(NAME programs.handoff_delayed
         COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/run_program.sh ${CMAKE_BINARY_DIR} handoff --rounds 10000)
set_tests_properties(programs.handoff_delayed PROPERTIES LABELS programs PROCESSORS 2
  ENVIRONMENT IVGPU_TEST_CONFIG=${CMAKE_CURRENT_LIST_DIR}/data/delays.toml)
