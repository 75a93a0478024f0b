#pragma once

#include <memory>

#include "dualfield/solvers/kernel/kernel_ascent.hpp"

namespace dualfield {

// Chains with kernel scores at temperature zero: see kernel_flows.cpp.
std::unique_ptr<DualBlocks> kernel_flows(const ChainModel& model, const ChainData& data, double scale);

}  // namespace dualfield
