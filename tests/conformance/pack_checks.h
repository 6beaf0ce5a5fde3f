// docs/semantics.md, 6.3 and 9.10. Which tensors of a batch share packs.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <vector>

#include <onesum/cross_device_ops.h>

namespace onesum::testing {

// Replica r of tensor t is full of 1000 t + r + 1.
PerReplica numbered(std::size_t t, const Shape& shape, const std::vector<std::string>& devices);
std::vector<PerReplica> numbered(const std::vector<Shape>& shapes, const std::vector<std::string>& devices);
std::vector<Shape> vectors_of(std::initializer_list<std::int64_t> lengths);

// Reduces such values, and looks at every result.
void expect_sums(CrossDeviceOps& ops, const std::vector<PerReplica>& values,
                 const CommunicationOptions& options = {});

// num_packs cuts the batch evenly.
void check_even_packs(const std::vector<std::string>& devices);
// Small tensors are grouped.
void check_small_groups(const std::vector<std::string>& devices);
// bytes_per_pack fills packs.
void check_packs_by_bytes(const std::vector<std::string>& devices);
// Numbers that no order of additions rounds have one sum around a ring, grouped or not.
void check_groups_under_ring(const std::vector<std::string>& devices);

}  // namespace onesum::testing
