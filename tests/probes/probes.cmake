# Programs that ask a driver a question, by hand, on a machine with a GPU: docs/design/ has the answers. They are built so
# that they do not rot; nothing runs them here.
add_executable(probe_capture ${CMAKE_CURRENT_LIST_DIR}/capture.cc)
target_include_directories(probe_capture SYSTEM PRIVATE ${IVGPU_CUDA_INCLUDE})
target_link_libraries(probe_capture PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
