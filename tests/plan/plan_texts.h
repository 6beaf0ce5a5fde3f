// Small plans as text, made to be broken.
#pragma once

namespace onesum::plan {

// Two workers exchange their replicas.
inline constexpr const char* kPair = R"(plan pair
order canonical
devices 0 1
p0 reduce float32 to float32 / 2; replicas 0 1; destinations 0 1
c0 0 -> 1
c1 1 -> 0
b0 input 0 of p0 on 0 float32
b1 input 1 of p0 on 1 float32
b2 output 0 of p0 on 0 float32
b3 output 1 of p0 on 1 float32
b4 slot c0 of p0 on 0 float32
b5 view c0 of p0 on 1 float32
b6 slot c1 of p0 on 1 float32
b7 view c1 of p0 on 0 float32
lane of rank 0
  copy on 0: b4 = b0
  recv c1: b7
  reduce on 0 in float32: b2 = (b0 + b7) / 2
  release c1
lane of rank 1
  copy on 1: b6 = b1
  recv c0: b5
  reduce on 1 in float32: b3 = (b5 + b1) / 2
  release c0
)";

// The same, and then replica 0 is sent once more, to another lane of worker 1.
inline constexpr const char* kTwoViews = R"(plan two_views
order canonical
devices 0 1
p0 reduce float32 to float32 / 2; replicas 0 1; destinations 0 1
c0 0 -> 1
c1 1 -> 0
b0 input 0 of p0 on 0 float32
b1 input 1 of p0 on 1 float32
b2 output 0 of p0 on 0 float32
b3 output 1 of p0 on 1 float32
b4 slot c0 of p0 on 0 float32
b5 view c0 of p0 on 1 float32
b6 slot c1 of p0 on 1 float32
b7 view c1 of p0 on 0 float32
b8 view c0 of p0 on 1 float32
lane of rank 0
  copy on 0: b4 = b0
  recv c1: b7
  reduce on 0 in float32: b2 = (b0 + b7) / 2
  release c1
  copy on 0: b4 = b0
lane of rank 1
  copy on 1: b6 = b1
  recv c0: b5
  reduce on 1 in float32: b3 = (b5 + b1) / 2
  release c0
lane of rank 1
  wait lane 1 step 3
  recv c0: b8
  release c0
)";

// Worker 0 tells its second lane by way of worker 1 that the sum is there.
inline constexpr const char* kThereAndBack = R"(plan there_and_back
order canonical
devices 0 1
p0 reduce float32 to float32; replicas 0; destinations 0
c0 0 -> 1
c1 1 -> 0
b0 input 0 of p0 on 0 float32
b1 output 0 of p0 on 0 float32
b2 temp 0 of p0 on 0 float32
b3 slot c0 of p0 on 0 float32
b4 view c0 of p0 on 1 float32
b5 slot c1 of p0 on 1 float32
b6 view c1 of p0 on 0 float32
lane of rank 0
  copy on 0: b2 b3 = b0
lane of rank 1
  recv c0: b4
  copy on 1: b5 = b4
  release c0
lane of rank 0
  recv c1: b6
  copy on 0: b1 = b2
  release c1
)";

// One worker with two lanes, in place: each lane sums a chunk on a device of its own and copies it to the
// others.
inline constexpr const char* kInPlace = R"(plan in_place
order canonical
devices 0 0 0 0
p0 reduce float32 to float32; split ragged 2; replicas 0 1 2; destinations 0 1 2
b0 inout 0 of p0 on 0 float32
b1 inout 1 of p0 on 1 float32
b2 inout 2 of p0 on 2 float32
b3 temp 0 of p0 on 3 float32
lane of rank 0
  reduce on 0 in float32: b0[0] b1[0] b2[0] = (b0[0] + b1[0]) + b2[0]
lane of rank 0
  reduce on 3 in float32: b3[1] = (b0[1] + b1[1]) + b2[1]
  copy on 3: b0[1] b1[1] b2[1] = b3[1]
)";

}  // namespace onesum::plan
