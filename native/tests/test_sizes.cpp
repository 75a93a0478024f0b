// Products of sizes, and the arrays whose sizes they are.
#include <limits>
#include <new>
#include <stdexcept>

#include "check.hpp"
#include "dualfield/core/buffer.hpp"
#include "dualfield/core/memory.hpp"
#include "dualfield/core/sizes.hpp"

using namespace dualfield;

namespace {

constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();

template <class Make>
bool refuses(Make make) {
    try {
        make();
    } catch (const std::length_error&) {
        return true;
    } catch (const std::bad_alloc&) {
        return true;
    }
    return false;
}

}  // namespace

TEST(products_of_sizes) {
    CHECK(checked_product(3, 5) == 15);
    CHECK(checked_product(7) == 7);
    CHECK(checked_product(2, 3, 4, 5) == 120);
    CHECK(checked_product(kMost, 0) == 0);
    CHECK(checked_product(0, kMost, kMost) == 0);
    CHECK(checked_product(kMost, kMost, 0) == 0);
    CHECK(checked_product(kLargestProduct, 1) == kLargestProduct);
    CHECK(saturated_product(kMost, kMost) == kLargestProduct + 1);
    CHECK(saturated_product(kMost, 0) == 0);
}

TEST(products_that_wrap_around_are_refused) {
    const std::size_t half = std::size_t{1} << 32, quarter = std::size_t{1} << 62;
    CHECK(refuses([&] { checked_product(half, half); }));      // would be 0
    CHECK(refuses([&] { checked_product(half + 1, half); }));  // would be 2^32
    CHECK(refuses([&] { checked_product(quarter, 4); }));      // would be 0
    CHECK(refuses([&] { checked_product(quarter, 3, 4); }));   // would be small at the end
    CHECK(refuses([&] { checked_product(2, quarter, quarter); }));
    CHECK(refuses([&] { Buffer().require(quarter); }));  // 8 bytes each would be 0
    CHECK(refuses([&] { Aligned<double> all(quarter); }));
    CHECK(refuses([&] { Aligned<float> all(quarter + 1); }));
    CHECK(refuses([&] { allocate(kMost); }));
    CHECK(refuses([&] { allocate(kMost - 63); }));
}
