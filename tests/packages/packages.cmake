# Tests the Debian packages of this build folder in a separate Debian. The test needs root and a Debian mirror.
add_test(NAME packages.debian COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/packages.sh ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
set_tests_properties(packages.debian PROPERTIES LABELS "packages;thorough" SKIP_RETURN_CODE 77 TIMEOUT 1200
                     RESOURCE_LOCK installed_units FIXTURES_REQUIRED guest_image ENVIRONMENT CC=${CMAKE_C_COMPILER})
