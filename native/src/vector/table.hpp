// The table of routines of one instruction set; included last by the file that sets it.
#pragma once

#include "chain_passes.hpp"
#include "interleaved.hpp"
#include "trace_back.hpp"

namespace dualfield {
namespace {

constexpr Routines make_routines(const char* name, bool (*is_supported)()) {
    return {.name = name,
            .is_supported = is_supported,
            .forward_scaled = &forward<ScaledSum>,
            .forward_log = &forward<LogSum>,
            .forward_max = &forward<MaxPlus>,
            .backward_scaled = &backward<ScaledSum>,
            .backward_log = &backward<LogSum>,
            .backward_max = &backward<MaxPlus>,
            .trace_back = &trace_back,
            .interleaved_scaled = &interleaved_scaled,
            .interleaved_max = &interleaved_max,
            .outer_sums = &outer_sums,
            .exponentials = &exponentials,
            .read_row = &read_row};
}

}  // namespace
}  // namespace dualfield
