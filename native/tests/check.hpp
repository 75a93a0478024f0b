// A test harness of one page: TEST registers itself, CHECK counts and goes on, main.cpp runs everything.
#pragma once

#include <cmath>
#include <sstream>
#include <string>
#include <vector>

namespace dualfield::testing {

struct Test {
    const char* name;
    void (*body)();
};

inline std::vector<Test>& registry() {
    static std::vector<Test> tests;
    return tests;
}

struct Registration {
    Registration(const char* name, void (*body)()) { registry().push_back({name, body}); }
};

// Prints the failure and marks the running test as failed; defined in main.cpp.
void report_failure(const char* file, int line, const std::string& what);

inline void check(bool holds, const char* file, int line, const char* condition) {
    if (!holds) report_failure(file, line, std::string("CHECK(") + condition + ")");
}

inline void check_near(double a, double b, double tolerance, const char* file, int line, const char* expression) {
    // Equal infinities are near; a NaN is near nothing.
    if (a == b || std::abs(a - b) <= tolerance) return;
    std::ostringstream text;
    text.precision(17);
    text << "CHECK_NEAR(" << expression << "): " << a << " against " << b << ", tolerance " << tolerance;
    report_failure(file, line, text.str());
}

}  // namespace dualfield::testing

#define TEST(name)                                                                       \
    static void test_##name();                                                           \
    static const ::dualfield::testing::Registration register_##name(#name, test_##name); \
    static void test_##name()

#define CHECK(condition) ::dualfield::testing::check(static_cast<bool>(condition), __FILE__, __LINE__, #condition)

#define CHECK_NEAR(a, b, tolerance) \
    ::dualfield::testing::check_near((a), (b), (tolerance), __FILE__, __LINE__, #a ", " #b)

#define CHECK_THROWS(expression, exception)                                                         \
    do {                                                                                            \
        bool thrown = false;                                                                        \
        try {                                                                                       \
            static_cast<void>(expression);                                                          \
        } catch (const exception&) {                                                                \
            thrown = true;                                                                          \
        }                                                                                           \
        ::dualfield::testing::check(thrown, __FILE__, __LINE__, #expression " throws " #exception); \
    } while (false)
