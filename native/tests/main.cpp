// Runs every registered test, or those whose name contains the first argument; exit code 1 if any fails.
#include <cstdio>
#include <exception>
#include <string>

#include "check.hpp"

namespace dualfield::testing {

namespace {

bool current_failed = false;
const char* current_name = "";

}  // namespace

void report_failure(const char* file, int line, const std::string& what) {
    current_failed = true;
    std::printf("%s:%d: in %s: %s\n", file, line, current_name, what.c_str());
}

}  // namespace dualfield::testing

int main(int argc, char** argv) {
    using namespace dualfield::testing;
    const std::string wanted = argc > 1 ? argv[1] : "";
    int passed = 0, failed = 0;
    for (const Test& test : registry()) {
        if (std::string(test.name).find(wanted) == std::string::npos) continue;
        current_name = test.name;
        current_failed = false;
        try {
            test.body();
        } catch (const std::exception& error) {
            report_failure(__FILE__, __LINE__, std::string("exception: ") + error.what());
        } catch (...) {
            report_failure(__FILE__, __LINE__, "exception of unknown type");
        }
        ++(current_failed ? failed : passed);
    }
    std::printf("%d passed, %d failed\n", passed, failed);
    return failed == 0 ? 0 : 1;
}
