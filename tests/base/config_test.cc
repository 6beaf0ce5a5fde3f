// docs/configuration.md.
#include "base/config.h"

#include <chrono>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace onesum {
namespace {

using testing::expect_invalid;

Config parsed(std::initializer_list<std::string_view> environment) {
  return parse_config(std::vector<std::string_view>(environment));
}

TEST(Config, IsDefaultWithoutVariables) {
  EXPECT_EQ(parsed({}), Config{});
  EXPECT_EQ(parsed({"PATH=/bin", "ONESUMMER=1", "onesum_log=debug", "X=ONESUM_LOG=y", "", "="}), Config{});
  EXPECT_EQ(Config{}.log_level, LogLevel::kWarning);
}

TEST(Config, ReadsThreads) {
  EXPECT_EQ(parsed({"ONESUM_THREADS=1"}).threads, 1U);
  EXPECT_EQ(parsed({"ONESUM_THREADS=1024"}).threads, 1024U);
  for (const char* value : {"", "0", "1025", "-1", "two", "4 ", "4x", "1e3"}) {
    const std::string entry = std::string("ONESUM_THREADS=") + value;
    expect_invalid([&] { parsed({entry}); }, {"ONESUM_THREADS", '"' + std::string(value) + '"', "1 to 1024"});
  }
}

TEST(Config, ReadsPoolBytes) {
  EXPECT_EQ(parsed({"ONESUM_POOL_BYTES=0"}).pool_bytes, 0U);
  EXPECT_EQ(parsed({"ONESUM_POOL_BYTES=64k"}).pool_bytes, 65536U);
  for (const char* value : {"", "k", "lots", "-1", "1.5G", "1 G", "1GB"}) {
    const std::string entry = std::string("ONESUM_POOL_BYTES=") + value;
    expect_invalid([&] { parsed({entry}); }, {"ONESUM_POOL_BYTES", '"' + std::string(value) + '"', "512M"});
  }
}

TEST(Config, OutboxBytes) {
  EXPECT_EQ(parsed({}).outbox_bytes, std::size_t{64} << 20);
  EXPECT_EQ(parsed({"ONESUM_OUTBOX_BYTES=1G"}).outbox_bytes, std::size_t{1} << 30);
  expect_invalid([] { parsed({"ONESUM_OUTBOX_BYTES=many"}); }, {"ONESUM_OUTBOX_BYTES", "\"many\"", "64M"});
}

TEST(Config, ReadsTheLogLevel) {
  EXPECT_EQ(parsed({"ONESUM_LOG=error"}).log_level, LogLevel::kError);
  EXPECT_EQ(parsed({"ONESUM_LOG=warning"}).log_level, LogLevel::kWarning);
  EXPECT_EQ(parsed({"ONESUM_LOG=info"}).log_level, LogLevel::kInfo);
  EXPECT_EQ(parsed({"ONESUM_LOG=debug"}).log_level, LogLevel::kDebug);
  for (const char* value : {"", "verbose", "Info", "2"}) {
    const std::string entry = std::string("ONESUM_LOG=") + value;
    expect_invalid([&] { parsed({entry}); },
                   {"ONESUM_LOG", '"' + std::string(value) + '"', "error, warning, info"});
  }
}

TEST(Config, ReadsSeveral) {
  const Config config = parsed({"ONESUM_LOG=info", "HOME=/", "ONESUM_POOL_BYTES=1G", "ONESUM_THREADS=2"});
  EXPECT_EQ(config.threads, 2U);
  EXPECT_EQ(config.pool_bytes, std::size_t{1} << 30);
  EXPECT_EQ(config.log_level, LogLevel::kInfo);
}

TEST(Config, ReadsWhoTakesPart) {
  const Config config =
      parsed({"ONESUM_RANK=3", "ONESUM_SIZE=4", "ONESUM_JOB=train.7_b-1", "ONESUM_ADDRESS=[::1]:80"});
  EXPECT_EQ(config.rank, 3);
  EXPECT_EQ(config.size, 4);
  EXPECT_EQ(config.job, "train.7_b-1");
  EXPECT_EQ(config.address, (HostPort{"::1", 80}));
  expect_invalid([] { parsed({"ONESUM_RANK=4096"}); }, {"ONESUM_RANK", "\"4096\"", "0 to 4095"});
  expect_invalid([] { parsed({"ONESUM_RANK=-1"}); }, {"ONESUM_RANK", "\"-1\""});
  expect_invalid([] { parsed({"ONESUM_SIZE=0"}); }, {"ONESUM_SIZE", "\"0\"", "1 to 4096"});
  expect_invalid([] { parsed({"ONESUM_JOB=a b"}); }, {"ONESUM_JOB", "\"a b\"", "letters"});
  expect_invalid([] { parsed({"ONESUM_JOB=" + std::string(65, 'j')}); }, {"ONESUM_JOB", "1 to 64"});
  expect_invalid([] { parsed({"ONESUM_ADDRESS=here"}); }, {"ONESUM_ADDRESS", "\"here\"", "HOST:PORT"});
}

TEST(Config, ReadsTransportAndMachine) {
  EXPECT_EQ(parsed({"ONESUM_TRANSPORT=auto"}).transport, TransportChoice::kAuto);
  EXPECT_EQ(parsed({"ONESUM_TRANSPORT=shm"}).transport, TransportChoice::kShm);
  EXPECT_EQ(parsed({"ONESUM_TRANSPORT=tcp"}).transport, TransportChoice::kTcp);
  EXPECT_EQ(parsed({"ONESUM_TRANSPORT=ucx"}).transport, TransportChoice::kUcx);
  EXPECT_EQ(to_string(TransportChoice::kUcx), "ucx");
  EXPECT_FALSE(parsed({}).checksums);
  EXPECT_TRUE(parsed({"ONESUM_CHECKSUMS=on"}).checksums);
  EXPECT_FALSE(parsed({"ONESUM_CHECKSUMS=off"}).checksums);
  expect_invalid([] { parsed({"ONESUM_CHECKSUMS=1"}); }, {"ONESUM_CHECKSUMS", "\"1\"", "on or off"});
  expect_invalid([] { parsed({"ONESUM_TRANSPORT=rdma"}); }, {"\"rdma\"", "auto, shm, tcp or ucx"});
  EXPECT_EQ(parsed({"ONESUM_MACHINE=left"}).machine, "left");
  expect_invalid([] { parsed({"ONESUM_MACHINE="}); }, {"ONESUM_MACHINE", "1 to 255"});
  EXPECT_EQ(parsed({"ONESUM_FAULT=die at 3"}).fault, "die at 3");
  expect_invalid([] { parsed({"ONESUM_FAULT="}); }, {"ONESUM_FAULT"});
}

TEST(Config, ReadsTimeouts) {
  using std::chrono::milliseconds;
  EXPECT_EQ(Config{}.progress_timeout, milliseconds(60'000));
  EXPECT_EQ(Config{}.join_timeout, milliseconds(300'000));
  EXPECT_EQ(parsed({"ONESUM_PROGRESS_TIMEOUT=5"}).progress_timeout, milliseconds(5000));
  EXPECT_EQ(parsed({"ONESUM_PROGRESS_TIMEOUT=0.25"}).progress_timeout, milliseconds(250));
  EXPECT_EQ(parsed({"ONESUM_JOIN_TIMEOUT=1.007"}).join_timeout, milliseconds(1007));
  EXPECT_EQ(parsed({"ONESUM_JOIN_TIMEOUT=1000000"}).join_timeout, milliseconds(1'000'000'000));
  for (const char* value : {"", "0", "0.000", "-1", ".5", "5.", "0.0001", "1e3", "60s", "1000001", "1.-5"}) {
    for (const char* name : {"ONESUM_PROGRESS_TIMEOUT", "ONESUM_JOIN_TIMEOUT"}) {
      const std::string entry = std::string(name) + "=" + value;
      expect_invalid([&] { parsed({entry}); }, {name, '"' + std::string(value) + '"', "seconds such as"});
    }
  }
}

TEST(Config, ReadsOneSecretAndNeverShowsIt) {
  EXPECT_EQ(parsed({"ONESUM_SECRET=xyzzy"}).secret, "xyzzy");
  EXPECT_EQ(parsed({"ONESUM_SECRET_FILE=/run/secret"}).secret_file, "/run/secret");
  expect_invalid([] { parsed({"ONESUM_SECRET="}); }, {"ONESUM_SECRET"});
  expect_invalid([] { parsed({"ONESUM_SECRET_FILE="}); }, {"ONESUM_SECRET_FILE"});
  try {
    parsed({"ONESUM_SECRET=xyzzy", "ONESUM_SECRET_FILE=/run/secret"});
    ADD_FAILURE() << "both were taken";
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("ONESUM_SECRET is set"), std::string::npos) << message;
    EXPECT_EQ(message.find("xyzzy"), std::string::npos) << message;
  }
}

TEST(Config, RefusesUnknownNamesAndGuesses) {
  expect_invalid([] { parsed({"ONESUM_THREAD=4"}); }, {"ONESUM_THREAD\"", "did you mean ONESUM_THREADS?"});
  expect_invalid([] { parsed({"ONESUM_POOL=4"}); }, {"ONESUM_POOL\"", "ONESUM_POOL_BYTES?"});
  expect_invalid([] { parsed({"ONESUM_log=info"}); }, {"ONESUM_LOG?"});
  expect_invalid([] { parsed({"ONESUM_RANKS=1"}); }, {"ONESUM_RANK?"});
  expect_invalid([] { parsed({"ONESUM_JOINTIMEOUT=1"}); }, {"ONESUM_JOIN_TIMEOUT?"});
  expect_invalid([] { parsed({"ONESUM_SOMETHING_ELSE_ALTOGETHER=4"}); },
                 {"ONESUM_SOMETHING_ELSE_ALTOGETHER"});
  expect_invalid([] { parsed({"ONESUM_"}); }, {"\"ONESUM_\""});
}

TEST(ParseBytes, TakesSuffixesOf1024) {
  EXPECT_EQ(parse_bytes("0"), 0U);
  EXPECT_EQ(parse_bytes("123"), 123U);
  EXPECT_EQ(parse_bytes("2k"), 2048U);
  EXPECT_EQ(parse_bytes("2K"), 2048U);
  EXPECT_EQ(parse_bytes("3M"), std::size_t{3} << 20);
  EXPECT_EQ(parse_bytes("3m"), std::size_t{3} << 20);
  EXPECT_EQ(parse_bytes("4G"), std::size_t{4} << 30);
  EXPECT_EQ(parse_bytes("5T"), std::size_t{5} << 40);
}

TEST(ParseBytes, RefusesWhatDoesNotFit) {
  EXPECT_EQ(parse_bytes("18446744073709551615"), 18446744073709551615U);
  EXPECT_EQ(parse_bytes("16777215T"), std::size_t{16777215} << 40);
  for (const char* text :
       {"18446744073709551616", "16777216T", "17179869184G", "", "G", "-1", "1kk", "0x10", " 1"}) {
    EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
  }
}

// In a process of its own each: the environment is read once.
void exit_with(bool good) { std::exit(good ? 0 : 1); }

TEST(ProcessConfigDeathTest, ReadsTheEnvironmentOnce) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        setenv("ONESUM_THREADS", "3", 1);
        const bool before = process_config().threads == 3U;
        setenv("ONESUM_THREADS", "nonsense", 1);
        exit_with(before && process_config().threads == 3U);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(ProcessConfigDeathTest, ABadEnvironmentIsTheSameErrorEveryTime) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        setenv("ONESUM_LOUD", "1", 1);
        int errors = 0;
        for (int i = 0; i < 2; ++i) {
          try {
            process_config();
          } catch (const Error& error) {
            errors += std::string(error.what()).find("ONESUM_LOUD") != std::string::npos ? 1 : 0;
          }
          unsetenv("ONESUM_LOUD");
        }
        exit_with(errors == 2 && configured_log_level() == LogLevel::kWarning);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace onesum
