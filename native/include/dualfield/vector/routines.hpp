// The vector code, compiled once for each instruction set; the best one that the processor has is picked at run time.
//
// The sources in src/vector/ are included by one file for each instruction set, which tells the compiler what it may
// use. All of it lives in unnamed namespaces, so that no function compiled for a newer processor can be linked in place
// of an older one.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "dualfield/core/layout.hpp"
#include "dualfield/kernels/bit_points.hpp"
#include "dualfield/kernels/kernel.hpp"
#include "dualfield/scores/linear_map.hpp"
#include "dualfield/scores/shrinkage.hpp"
#include "dualfield/structures/chains/chain_passes.hpp"
#include "dualfield/vector/smo_rows.hpp"
#include "dualfield/vector/softmax_rows.hpp"

namespace dualfield {

struct ArcTask;          // see arc_task.hpp
struct ChainSharesTask;  // see chain_slope.hpp
struct ChainSlopeTask;   // see chain_slope.hpp
struct ChainCovarianceTask;
struct JunctionTask;        // see junction.hpp
struct SharedExponentials;  // see junction.hpp
struct RunTask;             // see split_task.hpp
struct SplitPair;           // see split_task.hpp
struct TreeTask;            // see tree_task.hpp
struct UsedPair;            // see split_task.hpp

struct RowBounds {
    double highest;   // -inf if every entry is forbidden
    bool bad_number;  // NaN or +inf
};

struct NumberRange {
    double lowest, highest;  // of the numbers that are not minus infinity
    bool has_minus_infinity, bad_number;
};

// One chain of order 1 with nothing forbidden.
struct BlockTask {
    static constexpr std::size_t kMostLabels = 32;

    std::size_t length, n_labels;
    const double *node, *cliques;  // scores [length][K], [K][K]
    double *node_marginals, *clique_sums;
    double* memory;  // doubles_needed
    double log_partition = 0.0;

    static std::size_t doubles_needed(std::size_t length, std::size_t n_labels) {
        const std::size_t width = padded(n_labels);
        return 2 * width * width + 2 * length * width + length;
    }
};

// The message of a node to a neighbour: out[b] = log(sum_a table[a][b] exp(cavity[a] - shift)) - highest, where shift
// is the highest entry of the cavity and `highest` that of the logarithms.
struct MessageTask {
    static constexpr double kSmallSum = 1e-250;  // something may have been lost in sums below it
    static constexpr double kPadding = 1e-200;   // entries of tables behind their last column

    std::size_t n_labels;
    const double *cavity, *table;  // [padded(K)], -inf in the padding; [K][padded(K)]
    double *factors, *sums;        // [padded(K)]: memory
    double* out;                   // [K]
    double shift = 0.0, highest = 0.0;
};

// What is summed over features, and what is made of the sum.
enum class TileSum { products, squared_differences, absolute_differences };
enum class TileForm { plain, exponential, exponential_of_norms };

// out[i][..] = form(sum over features of rows[i] and the panels [first_panel, last_panel)).
template <class T>
struct TileTask {
    TileSum sum;
    TileForm form;
    std::size_t n_features;
    const T* const* rows;
    const T* row_norms;  // of these rows
    std::size_t n_rows;
    const T *panels, *column_norms;  // of all columns
    std::size_t first_panel, last_panel;
    T* out;
    std::size_t stride;
};

// Kernel matrices and softmax duals, in one precision.
template <class T>
struct KernelRoutines {
    void (*kernel_tiles)(const TileTask<T>&);
    void (*exponential_row)(T* row, std::size_t n);
    void (*bit_row)(const BitRow<T>&);  // see bit_points.hpp

    // scores[r * stride + j] += sum_i rows[i][j] coefficients[i * coefficient_stride + r], j in [first, last).
    void (*expand)(const T* const* rows, std::size_t n, const T* coefficients, std::size_t coefficient_stride,
                   std::size_t n_scores, T* scores, std::size_t stride, std::size_t first, std::size_t last);

    // See softmax_rows.hpp.
    void (*dual_terms)(const DualColumns<T>&, std::size_t first, std::size_t last, DualSums&);
    void (*softmax_columns)(const SoftmaxColumns<T>&, std::size_t first, std::size_t last, SoftmaxSums&);
    void (*curvature_product)(const CurvatureColumns<T>&, std::size_t first, std::size_t last, CurvatureSums&);
    // moments [n_rows][n_rows], upper half += sum_j weights[j] p[r][j] p[s][j].
    void (*class_moments)(const T* p, const T* weights, std::size_t n_rows, std::size_t stride, std::size_t first,
                          std::size_t last, double* moments);
    double (*block_pass)(BlockRows<T>&, double skip);

    // Sequential minimal optimisation, see smo_rows.hpp; columns [first, last).
    void (*smo_scan)(const SmoScan<T>&, std::size_t first, std::size_t last, SmoExtremes<T>&);
    void (*smo_partners)(const SmoPartners<T>&, std::size_t first, std::size_t last, SmoChoice<T>&);
    void (*smo_gap)(const SmoGap<T>&, std::size_t first, std::size_t last, SmoGapSums&);
};

// Rows in the state of a dual, kept as S; n numbers each. See block_rows.hpp.
template <class S>
struct StateRoutines {
    // out = (1 - share) * old + share * factor * fresh, rounded to S.
    void (*mix)(const S* old, const double* fresh, double share, double factor, std::size_t n, double* out);
    // Rounds fresh to S; out = fresh - old; returns <scores, fresh> from before it was rounded.
    double (*difference)(double* fresh, const S* old, const double* scores, std::size_t n, double* out);
    void (*keep)(const double* numbers, std::size_t n, S* state);
};

struct Routines {
    const char* name;
    bool (*is_supported)();

    // Passes over one to four chains, see chain_passes.hpp.
    using Pass = void (*)(const ChainContext&, ChainWorkspace&, std::span<ChainLane>);
    Pass forward_scaled, forward_log, forward_max;
    Pass backward_scaled, backward_log, backward_max;

    // After forward_max with alpha kept: the best labelling in lane.labels, ties broken as Oracle::argmax promises;
    // lanes without an answer are passed over.
    Pass trace_back;

    // For chains of order 1 with few labels and shared transitions, exactly four at a time: a forward pass, then, where
    // asked for, the backward pass into lane.nodes, summed clique marginals into lane.clique_sums (with lane.nodes, and
    // not for maxima), and the best labelling into lane.labels. Rows are not left behind.
    Pass interleaved_scaled, interleaved_max;

    // sums[forward entry of (i, j)] = sum_t alpha[t - 1][i] emission[t][j], after forward_scaled and backward_scaled.
    void (*outer_sums)(const ChainTopology&, const ChainLane&, double* sums);

    // See chain_slope.hpp. The probabilities of the steps into a node, from a forward table of exponentials and from
    // emission[t] after backward_scaled; those of the states after the first node; both at once, or false where there
    // is no labelling or no number; and changes along a direction, with that of the log-partition.
    void (*step_shares)(const ChainTopology&, const double* entries, const double* pulled, double* out);
    void (*walk_states)(const ChainTopology&, std::size_t length, const double* shares, double* states);
    bool (*plain_shares)(const ChainSharesTask&);
    double (*chain_slopes)(const ChainSlopeTask&);
    void (*chain_covariances)(const ChainCovarianceTask&);

    // Passes over the junction trees of one or four examples, see junction.hpp: up with sums, as products or in
    // logarithms, or with maxima; down after sums, and after maxima of one example.
    using Junction = void (*)(JunctionTask&);
    Junction junction_products, junction_logarithms, junction_maxima;
    Junction junction_down, junction_best_down;
    // Of a factor that all examples share; out [cells].
    void (*share_exponentials)(const double* scores, std::size_t cells, double inverse_temperature, double* out,
                               SharedExponentials&);

    // Marginals and clique sums of one chain; false if its scores are too far apart, or it has more than kMostLabels.
    bool (*plain_block)(BlockTask&);

    // out[i] = exp(in[i] - shift) for n values, n a multiple of the vector length; returns their sum.
    double (*exponentials)(const double* in, double shift, std::size_t n, double* out);

    // row[0..padded(n)) = (scores + cost) * factor, -inf in the padding; cost may be null.
    RowBounds (*read_row)(const double* scores, const double* cost, std::size_t n, double factor, double* row);

    // Of x[i] * factor, n numbers, factor > 0.
    NumberRange (*range)(const double* x, std::size_t n, double factor);

    // out [last - first][n_outputs] = scores of the rows; scratch [width].
    void (*score_rows)(const LinearMap&, const FeatureRows&, const double* weights, std::size_t first, std::size_t last,
                       double* out, double* scratch);
    // weights += scale * sum over the rows of features times d [last - first][n_outputs], where there are features;
    // returns the sum of change * (weight before + change / 2), which is how much half the square of the weights grew.
    // With a shrinkage, not null, dual weights are moved and the weights follow; returns how much the conjugate grew.
    double (*add_rows)(const LinearMap&, const FeatureRows&, const double* d, double scale, std::size_t first,
                       std::size_t last, double* weights, double* scratch, const Shrinkage* shrinkage);

    // The same for rows that were looked up before; scratch [2 * width].
    void (*score_plan)(const LinearMap&, const FeaturePlan&, const double* weights, std::size_t first, std::size_t last,
                       double* out, double* scratch);
    double (*add_plan)(const LinearMap&, const FeaturePlan&, const double* d, double scale, std::size_t first,
                       std::size_t last, double* weights, double* scratch, const Shrinkage* shrinkage);

    // The same for weights += scale * d where mask is 1, n numbers.
    double (*add_masked)(const double* d, const double* mask, double scale, std::size_t n, double* weights,
                         const Shrinkage* shrinkage);

    StateRoutines<float> single_state;
    StateRoutines<double> double_state;

    KernelRoutines<float> single_precision;
    KernelRoutines<double> double_precision;

    // Sums over one tree, or over eight of one shape, see tree_task.hpp.
    void (*tree_sums)(TreeTask&);

    // False, with `out` as it was, if a sum is small or there is none.
    bool (*send_sums)(MessageTask&);
    // - sum_i p[i] log(p[i]) of n numbers that are not negative; those below 1e-300 count as zeros.
    double (*entropy)(const double* p, std::size_t n);

    // For each pair of parts, over the places where they meet: the sum of products; the largest sum; and weight *
    // factor times what is on the other side, added to the sums from above, `width` behind each row. See
    // split_task.hpp.
    void (*split_sums)(std::span<SplitPair>);
    void (*split_maxima)(std::span<SplitPair>);
    void (*split_down)(std::span<const SplitPair>, const double* factors, std::size_t width);
    // For pairs of one run: adds to sums [n] what their rules make of them; finds what comes to each pair from the
    // parents, above [n], and counts the rules unless counts is null.
    void (*run_up)(const RunTask&, std::span<const UsedPair>, double* sums);
    void (*run_down)(const RunTask&, std::span<const UsedPair>, const double* above, double* counts);

    // Passes over projective trees, see arc_task.hpp, which has a word at least.
    using Arcs = void (*)(ArcTask&);
    Arcs arc_products_up, arc_logarithms_up, arc_maxima_up;
    Arcs arc_products_down, arc_logarithms_down, arc_maxima_down;

    template <class S>
    const StateRoutines<S>& state() const {
        if constexpr (sizeof(S) == sizeof(float)) {
            return single_state;
        } else {
            return double_state;
        }
    }
    template <class T>
    const KernelRoutines<T>& kernel() const {
        if constexpr (sizeof(T) == sizeof(float)) {
            return single_precision;
        } else {
            return double_precision;
        }
    }
};

// What this build has, best first; the last one runs everywhere.
std::span<const Routines> all_routines();

// The ones in use: the best that the processor supports, unless use_routines chose another.
const Routines& routines();

// Chooses by name, for tests and measurements; false if there is no such set or the processor lacks it.
bool use_routines(std::string_view name);

}  // namespace dualfield
