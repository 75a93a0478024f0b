// The table of routines of one instruction set; included last by the file that sets it.
#pragma once

#include "arc_passes.hpp"
#include "bit_rows.hpp"
#include "block_rows.hpp"
#include "chain_covariances.hpp"
#include "chain_passes.hpp"
#include "chain_slopes.hpp"
#include "expand.hpp"
#include "interleaved.hpp"
#include "junction_passes.hpp"
#include "kernel_tiles.hpp"
#include "linear_rows.hpp"
#include "message_rows.hpp"
#include "plain_block.hpp"
#include "smo_scan.hpp"
#include "softmax_blocks.hpp"
#include "softmax_columns.hpp"
#include "split_rows.hpp"
#include "trace_back.hpp"
#include "tree_passes.hpp"

namespace dualfield {
namespace {

template <class T>
constexpr KernelRoutines<T> make_kernel_routines() {
    return {.kernel_tiles = &kernel_tiles<T>,
            .exponential_row = &exponential_row<T>,
            .bit_row = &bit_row<T>,
            .expand = &expand<T>,
            .dual_terms = &dual_terms<T>,
            .softmax_columns = &softmax_columns<T>,
            .curvature_product = &curvature_product<T>,
            .class_moments = &class_moments<T>,
            .block_pass = &block_pass<T>,
            .smo_scan = &smo_scan<T>,
            .smo_partners = &smo_partners<T>,
            .smo_gap = &smo_gap<T>};
}

template <class S>
constexpr StateRoutines<S> make_state_routines() {
    return {.mix = &mix<S>, .difference = &difference<S>, .keep = &keep<S>};
}

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
            .step_shares = &step_shares,
            .walk_states = &walk_states,
            .plain_shares = &plain_shares,
            .chain_slopes = &chain_slopes,
            .chain_covariances = &chain_covariances,
            .junction_products = &junction_up<Sums::products>,
            .junction_logarithms = &junction_up<Sums::logarithms>,
            .junction_maxima = &junction_up<Sums::maxima>,
            .junction_down = &junction_down,
            .junction_best_down = &best_down,
            .share_exponentials = &share_exponentials,
            .plain_block = &plain_block,
            .exponentials = &exponentials,
            .read_row = &read_row,
            .range = &range,
            .score_rows = &score_rows,
            .add_rows = &add_rows,
            .score_plan = &score_plan,
            .add_plan = &add_plan,
            .add_masked = &add_masked,
            .single_state = make_state_routines<float>(),
            .double_state = make_state_routines<double>(),
            .single_precision = make_kernel_routines<float>(),
            .double_precision = make_kernel_routines<double>(),
            .tree_sums = &tree_sums,
            .send_sums = &send_sums,
            .entropy = &entropy,
            .split_sums = &split_sums,
            .split_maxima = &split_maxima,
            .split_down = &split_down,
            .run_up = &run_up,
            .run_down = &run_down,
            .arc_products_up = &arcs_up<ArcProducts>,
            .arc_logarithms_up = &arcs_up<ArcLogarithms>,
            .arc_maxima_up = &arcs_up<ArcMaxima>,
            .arc_products_down = &arcs_down<ArcProducts>,
            .arc_logarithms_down = &arcs_down_logarithms,
            .arc_maxima_down = &arcs_down<ArcMaxima>};
}

}  // namespace
}  // namespace dualfield
