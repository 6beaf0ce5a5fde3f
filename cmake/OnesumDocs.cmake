# tools/algorithms_doc writes docs/algorithms.md from the plans; target onesum_docs does so.
file(GLOB algorithms_doc_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tools/algorithms_doc/*.cc")
add_executable(onesum_algorithms_doc ${algorithms_doc_sources})
target_link_libraries(onesum_algorithms_doc PRIVATE onesum_internals)
add_custom_target(onesum_docs
  COMMAND onesum_algorithms_doc "${PROJECT_SOURCE_DIR}/docs/algorithms.md" VERBATIM)
