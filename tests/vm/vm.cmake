# Tests that boot a guest in QEMU.
add_test(NAME vm.programs COMMAND ${CMAKE_CURRENT_LIST_DIR}/programs.sh ${CMAKE_BINARY_DIR})
add_test(NAME vm.command COMMAND ${CMAKE_CURRENT_LIST_DIR}/command.sh ${CMAKE_BINARY_DIR})
add_test(NAME vm.reclaim COMMAND ${CMAKE_CURRENT_LIST_DIR}/reclaim.sh ${CMAKE_BINARY_DIR})
set_tests_properties(vm.programs vm.command vm.reclaim PROPERTIES LABELS vm TIMEOUT 600)
