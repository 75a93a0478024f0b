#include "dualfield/core/sizes.hpp"

#include <stdexcept>
#include <string>

namespace dualfield {

void refuse_product(std::initializer_list<std::size_t> factors) {
    std::string sizes;
    for (const std::size_t factor : factors) sizes += (sizes.empty() ? "" : " x ") + std::to_string(factor);
    throw std::length_error("an array of " + sizes + " is larger than any memory");
}

}  // namespace dualfield
