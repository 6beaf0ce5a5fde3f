// docs/semantics.md, section 1: device strings.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <onesum/device.h>

#include "support/expect_error.h"

namespace onesum {
namespace {

using testing::expect_invalid;

std::string printed(std::string_view text) { return Device(text).to_string(); }
std::string completed(std::string_view text, std::string_view defaults = "") {
  return Device(text).canonical(Device(defaults)).to_string();
}

// 1.1
TEST(DeviceGrammar, ReadsEveryField) {
  const Device device("/job:worker/replica:1/task:2/device:GPU:3");
  EXPECT_EQ(device.job(), "worker");
  EXPECT_EQ(device.replica(), 1);
  EXPECT_EQ(device.task(), 2);
  EXPECT_EQ(device.type(), "GPU");
  EXPECT_EQ(device.index(), 3);
  EXPECT_TRUE(device.is_complete());
}

TEST(DeviceGrammar, ShortFormsInAnyCase) {
  EXPECT_EQ(printed("/cpu:0"), "/device:CPU:0");
  EXPECT_EQ(printed("cpu:0"), "/device:CPU:0");
  EXPECT_EQ(printed("CPU:0"), "/device:CPU:0");
  EXPECT_EQ(printed("gPu:12"), "/device:GPU:12");
  EXPECT_EQ(printed("/tpu:1"), "/device:TPU:1");
  EXPECT_EQ(printed("/custom:1"), "/device:CUSTOM:1");
  EXPECT_EQ(printed("/epu:1"), "/device:EPU:1");
}

TEST(DeviceGrammar, LongFormTakesAnyTypeAndUpperCasesIt) {
  EXPECT_EQ(printed("/device:tpu:0"), "/device:TPU:0");
  EXPECT_EQ(printed("/device:cpu:0"), "/device:CPU:0");
  EXPECT_EQ(printed("/device:XLA_Gpu:1"), "/device:XLA_GPU:1");
}

TEST(DeviceGrammar, AnIndexMayBeLeftOpen) {
  for (const char* text : {"gpu", "/GPU", "gpu:*", "/device:GPU:*"}) {
    const Device device(text);
    EXPECT_EQ(device.type(), "GPU") << text;
    EXPECT_EQ(device.index(), std::nullopt) << text;
    EXPECT_EQ(device.to_string(), "/device:GPU:*") << text;
  }
}

TEST(DeviceGrammar, EmptyPartsAreSkipped) {
  EXPECT_EQ(printed("//job:worker///cpu:0/"), "/job:worker/device:CPU:0");
  for (const char* text : {"", "/", "////"}) EXPECT_TRUE(Device(text).is_empty()) << text;
}

TEST(DeviceGrammar, TheLastJobReplicaAndTaskWin) {
  EXPECT_EQ(printed("/job:a/task:1/replica:1/job:b/task:2/replica:3"), "/job:b/replica:3/task:2");
}

TEST(DeviceGrammar, PartsComeInAnyOrder) {
  EXPECT_EQ(printed("gpu:1/task:2/job:w"), "/job:w/task:2/device:GPU:1");
}

TEST(DeviceGrammar, NamesMayHaveDigitsAndPunctuation) {
  EXPECT_EQ(printed("/job:ps-2.blue_team"), "/job:ps-2.blue_team");
}

TEST(DeviceGrammar, TheLargestNumberFits) {
  EXPECT_EQ(Device("/task:2147483647").task(), 2147483647);
  EXPECT_EQ(Device("/task:0007").task(), 7);
}

// 1.1, refusals: each names the text and the part.
TEST(DeviceGrammar, RefusesWhatItCannotRead) {
  struct Case {
    const char* text;
    std::vector<std::string> named;
  };
  const std::vector<Case> cases = {
      {"/cpu:0/gpu:1", {"/cpu:0/gpu:1", "gpu:1", "second device"}},
      {"/device:CPU:0/cpu:0", {"second device"}},
      {"/device:GPU:1/device:GPU:1", {"second device"}},
      {"/cpu/cpu", {"second device"}},
      {"/what:0", {"what:0", "not known"}},
      {"fpga:0", {"fpga:0", "not known"}},
      {"/job", {"job", "not known"}},
      {"/task", {"not known"}},
      {"/device", {"not known"}},
      {":", {"not known"}},
      {"/:0", {"not known"}},
      {"/Job:worker", {"not known"}},
      {"/job:", {"job name", "\"\""}},
      {"/job:a:b", {"job name", "a:b"}},
      {"/job:a b", {"job name", "a b"}},
      {"/job:_a", {"job name"}},
      {"/job:\xc3\xa9", {"job name", "\\xc3\\xa9"}},
      {"/replica:x", {"replica \"x\"", "number from 0"}},
      {"/replica:*", {"replica \"*\""}},
      {"/task:", {"task \"\""}},
      {"/task:-1", {"task \"-1\""}},
      {"/task:+1", {"task \"+1\""}},
      {"/task:1 ", {"task \"1 \""}},
      {"/task:1:2", {"task \"1:2\""}},
      {"/task:2147483648", {"2147483648", "2147483647"}},
      {"/task:99999999999999999999999", {"99999999999999999999999"}},
      {"/gpu:x", {"index \"x\""}},
      {"/gpu:", {"index \"\""}},
      {"/gpu:1:2", {"index \"1:2\""}},
      {"/gpu:2147483648", {"index \"2147483648\""}},
      {"/device:GPU", {"device:GPU", "no index"}},
      {"/device:GPU:", {"index \"\""}},
      {"/device:GPU:-1", {"index \"-1\""}},
      {"/device::1", {"device type"}},
      {"/device:G P:1", {"device type"}},
      {"/device:GPU:1:2", {"index \"1:2\""}},
      {"/cpu:0\n", {"index \"0\\n\""}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.text);
    expect_invalid([&] { Device device(c.text); }, {"device \""});
    for (const std::string& part : c.named) expect_invalid([&] { Device device(c.text); }, {part});
  }
  expect_invalid([] { Device device(std::string_view("/cpu:0\0", 7)); }, {"\\x00"});
}

TEST(DeviceGrammar, MessagesStayShortForLongText) {
  const std::string text(100000, 'x');
  try {
    Device device(text);
    FAIL();
  } catch (const Error& error) {
    EXPECT_LT(std::string(error.what()).size(), 1000U);
    EXPECT_NE(std::string(error.what()).find("100000 characters"), std::string::npos);
  }
}

// 1.2
TEST(DevicePrinting, ParsesBackToItself) {
  for (const char* text : {"", "/job:w", "/replica:0", "/task:3", "gpu", "gpu:4", "/job:w/gpu",
                           "/task:1/device:foo:2", "/job:worker/replica:1/task:2/device:GPU:3"}) {
    const Device device(text);
    EXPECT_EQ(Device(device.to_string()), device) << text;
    EXPECT_EQ(Device(device.to_string()).hash(), device.hash()) << text;
  }
  EXPECT_EQ(Device().to_string(), "");
}

TEST(DeviceEquality, ComparesFieldsAndNotSpelling) {
  EXPECT_EQ(Device("/cpu:0"), Device("device:CPU:00"));
  EXPECT_EQ(Device("/cpu:0").hash(), Device("device:CPU:00").hash());
  EXPECT_EQ(Device("/"), Device());
  EXPECT_EQ(Device("/").hash(), Device().hash());
  const std::vector<Device> different = {
      Device(),          Device("/job:a"),  Device("/job:b"),      Device("/replica:0"), Device("/replica:1"),
      Device("/task:0"), Device("/task:1"), Device("cpu"),         Device("gpu"),        Device("cpu:0"),
      Device("cpu:1"),   Device("gpu:0"),   Device("/job:a/cpu:0")};
  for (std::size_t i = 0; i < different.size(); ++i) {
    for (std::size_t j = 0; j < different.size(); ++j) {
      EXPECT_EQ(different[i] == different[j], i == j) << i << ' ' << j;
      EXPECT_EQ(different[i].hash() == different[j].hash(), i == j) << i << ' ' << j;
    }
  }
}

// 1.3
TEST(DeviceMerging, GoesFieldByField) {
  EXPECT_EQ(Device("/cpu:0").merged_over("/job:worker").to_string(), "/job:worker/device:CPU:0");
  EXPECT_EQ(Device("/gpu:0").merged_over("/cpu:0").to_string(), "/device:GPU:0");
  EXPECT_EQ(Device("/cpu").merged_over("/device:GPU:3").to_string(), "/device:CPU:3");
  EXPECT_EQ(Device("/job:a/task:1").merged_over("/job:b/replica:2/task:3/gpu:4").to_string(),
            "/job:a/replica:2/task:1/device:GPU:4");
  EXPECT_EQ(Device().merged_over("/job:b/gpu:4").to_string(), "/job:b/device:GPU:4");
  EXPECT_EQ(Device("/job:b/gpu:4").merged_over(Device()), Device("/job:b/gpu:4"));
}

TEST(DeviceMerging, KeepsHashAndEqualityTogether) {
  EXPECT_EQ(Device("/cpu:0").merged_over("/job:worker").hash(), Device("/job:worker/cpu:0").hash());
  EXPECT_EQ(Device("/cpu:0").merged_over("/job:worker"), Device("/job:worker/cpu:0"));
}

// 1.4
TEST(DeviceCompleting, TakesDefaultsThenThisProcess) {
  EXPECT_EQ(completed("/cpu:0"), "/job:localhost/replica:0/task:0/device:CPU:0");
  EXPECT_EQ(completed(""), "/job:localhost/replica:0/task:0/device:CPU:0");
  EXPECT_EQ(completed("/gpu"), "/job:localhost/replica:0/task:0/device:GPU:0");
  EXPECT_EQ(completed("/job:worker/cpu:0"), "/job:worker/replica:0/task:0/device:CPU:0");
  EXPECT_EQ(completed("/job:worker/task:1/cpu:0"), "/job:worker/replica:0/task:1/device:CPU:0");
  EXPECT_EQ(completed("/job:worker/task:1/cpu:0", "/gpu:0"), "/job:worker/replica:0/task:1/device:CPU:0");
  EXPECT_EQ(completed("/job:worker/task:1", "/gpu:0"), "/job:worker/replica:0/task:1/device:GPU:0");
  EXPECT_EQ(completed("/cpu:0", "/job:worker"), "/job:worker/replica:0/task:0/device:CPU:0");
  EXPECT_EQ(completed("/device:tpu:1"), "/job:localhost/replica:0/task:0/device:TPU:1");
}

TEST(DeviceCompleting, IsDoneOnce) {
  const Device device = Device("/task:4/gpu").canonical();
  EXPECT_TRUE(device.is_complete());
  EXPECT_EQ(device.canonical("/job:other/replica:9/task:9/cpu:9"), device);
}

// 1.5
TEST(DeviceHost, IsTheCpuOfTheSameTask) {
  EXPECT_EQ(Device("/job:w/replica:1/task:2/gpu:3").host().to_string(),
            "/job:w/replica:1/task:2/device:CPU:0");
  EXPECT_EQ(Device("/job:w/replica:1/task:2/gpu:3").host().hash(),
            Device("/job:w/replica:1/task:2/cpu:0").hash());
  EXPECT_EQ(Device("gpu").host(), Device("cpu:0"));
}

}  // namespace
}  // namespace onesum
