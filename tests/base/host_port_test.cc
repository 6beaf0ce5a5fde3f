#include "base/host_port.h"

#include <string>

#include <gtest/gtest.h>

namespace onesum {
namespace {

TEST(HostPort, ReadsBackToItself) {
  const std::pair<const char*, HostPort> good[] = {
      {"localhost:1", {"localhost", 1}},
      {"10.0.0.7:65535", {"10.0.0.7", 65535}},
      {"node-7_b.example.org:29500", {"node-7_b.example.org", 29500}},
      {"[::1]:80", {"::1", 80}},
      {"[fe80::1%eth0]:80", {"fe80::1%eth0", 80}},
      {"[::ffff:10.0.0.1]:80", {"::ffff:10.0.0.1", 80}},
  };
  for (const auto& [text, address] : good) {
    EXPECT_EQ(parse_host_port(text), address) << text;
    EXPECT_EQ(to_string(address), text);
  }
}

TEST(HostPort, RefusesEverythingElse) {
  const std::string long_host = std::string(254, 'h') + ":80";
  for (const std::string text :
       {"",         ":",        "host",     "host:",          ":80",      "host:0",    "host:65536",
        "host:-1",  "host:8o",  "host: 80", " host:80",       "ho st:80", "::1:80",    "::1",
        "[::1]",    "[::1]80",  "[]:80",    "[host]:80",      "[::1:80",  "::1]:80",   "[::1%]:80",
        "-host:80", ".host:80", "[:]:80",   "http://host:80", "a@b:80",   "host\n:80", long_host.c_str()}) {
    EXPECT_EQ(parse_host_port(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace onesum
