# Programs that ask a driver a question, by hand, on a machine with a GPU: docs/design/ has the answers. They are built so
# that they do not rot; nothing runs them here.
foreach(name capture cheats managed memory nvml_answers quota turns value_waits)
  add_executable(probe_${name} ${CMAKE_CURRENT_LIST_DIR}/${name}.cc)
  target_include_directories(probe_${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_include_directories(probe_${name} SYSTEM PRIVATE ${IVGPU_CUDA_INCLUDE})
  target_link_libraries(probe_${name} PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
endforeach()
target_sources(probe_cheats PRIVATE ${CMAKE_SOURCE_DIR}/host/broker/nvml.cc)
target_sources(probe_value_waits PRIVATE ${CMAKE_SOURCE_DIR}/host/broker/nvml.cc)
target_sources(probe_quota PRIVATE ${CMAKE_SOURCE_DIR}/host/broker/nvml.cc)
target_link_libraries(probe_quota PRIVATE ivgpu_api)
target_link_libraries(probe_nvml_answers PRIVATE ivgpu_api)
