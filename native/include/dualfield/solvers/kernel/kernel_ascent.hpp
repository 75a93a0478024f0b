// Ascent on the dual of models whose scores come from kernels: see kernel_ascent.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "dualfield/kernels/gram.hpp"
#include "dualfield/objectives/kernel_problem.hpp"
#include "dualfield/objectives/problem.hpp"
#include "dualfield/solvers/solve.hpp"

namespace dualfield {

// The dual points of all examples, and the moves that they know.
//
// What kernels score are rows of one table or of two: nodes, pairs of nodes. The rows of a table are points of its
// kernel matrix K, and their scores are s times the rows of F = K B, F [n_points][width], with a scale s of the table.
// An example has members in each table, and may have explicit weights beside them. Its dual point is mu_i, and
// B = s sum_i c_i (u_i - mu_i) at its members. Its scores, and what is added to c_i (u_i - mu_i), are laid out table by
// table, [m][width] each, and kernel values come as s^2 K: an example does not see the scale.
class DualBlocks {
  public:
    virtual ~DualBlocks() = default;

    virtual std::size_t n_examples() const = 0;
    virtual std::size_t n_tables() const { return 1; }
    virtual std::size_t width(std::size_t table) const = 0;
    virtual double scale(std::size_t) const { return 1.0; }
    virtual std::span<const std::int32_t> members(std::size_t table, std::size_t i) const = 0;
    // Whether it has a loss: an example without weight has none.
    virtual bool is_there(std::size_t i) const = 0;
    virtual double weight(std::size_t i) const = 0;  // c_i
    // Whether primal iterates wander, so that their mean is the better one: the hinge.
    virtual bool wants_mean() const = 0;

    // Raises the dual by moving one example. scores are those of now and are kept up to date; gram has [m][m] for each
    // table; change, zero on entry, takes what is added to c_i (u_i - mu_i). Returns what the dual gains.
    virtual double visit(std::size_t i, double* scores, const double* gram, double* change) = 0;
    // Its share of the duality gap at given scores, at least 0.
    virtual double gap(std::size_t i, const double* scores) = 0;
    // c_i [ M_T(scores + D) - score of the truth ] with given weights.
    virtual double loss(std::size_t i, const double* scores, const double* weights) = 0;
    // Recomputes what rounding may have touched, adds the example's share to the weights, writes c_i (u_i - mu_i) to
    // out, and returns c_i (T H(mu_i) + <D_i, mu_i>).
    virtual double settle(std::size_t i, double* out) = 0;
    // Explicit weights; they are zero before all examples settle. The second gives their penalty, twice over.
    virtual std::span<double> weights() { return {}; }
    virtual double square(std::span<const double>) const { return 0.0; }
    // Takes the dual points that belong to given scores as the start, where scores determine them.
    virtual bool can_begin() const { return false; }
    virtual void begin_at(std::size_t, const double*) {}

    // Scores of an example, and values of the kernels between its members.
    std::size_t n_scores(std::size_t i) const {
        std::size_t total = 0;
        for (std::size_t g = 0; g < n_tables(); ++g) total += members(g, i).size() * width(g);
        return total;
    }
    std::size_t n_values(std::size_t i) const {
        std::size_t total = 0;
        for (std::size_t g = 0; g < n_tables(); ++g) total += members(g, i).size() * members(g, i).size();
        return total;
    }
};

// Outputs from a table: output o gives its slots the labels outputs[o], and
//
//   score_i(o) = sum_s F[members[i][s]][outputs[o][s]],   loss_i = max_o [ cost(truth_i, o) + score_i(o) -
//   score_i(truth_i) ].
//
// One slot whose labels are the outputs: the multiclass machine of Crammer and Singer.
struct MarginTable {
    std::size_t n_labels, n_slots;
    std::span<const std::int32_t> members;  // [n][n_slots], no point twice in an example
    std::span<const std::int32_t> outputs;  // [q][n_slots]
    std::span<const std::int32_t> truth;    // [n]
    std::span<const double> weights;        // [n]: c_i > 0
    const double* cost = nullptr;           // [q][q], true output first; null: 1 for every wrong output
};
std::unique_ptr<DualBlocks> table_blocks(const MarginTable& table);

// Examples of a structure whose map has no features. Kernels score its own parts: those of all tables, or without
// `with_nodes` those of edges alone, where nodes score nothing. `scale` is that of the table of edges; shared parts
// score `scale` times their weights, which are penalised as the kernels are, and weights() are the scores.
std::unique_ptr<DualBlocks> kernel_blocks(const Problem& problem, double scale, bool with_nodes = true);

struct AscentSettings {
    double tolerance = 1e-3;  // on gap / dual
    double most_passes = 1e300;
    std::size_t set_size = 256;  // points of a table whose rows are worked with at a time
    std::size_t n_sweeps = 3;    // over the examples of a set, before the scores of all others are brought up to date
    std::uint64_t seed = 0;
};

// Of each table [n_points][width].
using Coefficients = std::vector<std::vector<double>>;

struct AscentSolution {
    Coefficients coefficients;
    std::vector<double> weights;  // explicit ones, as blocks.weights()
    double objective = 0.0, gap = 0.0;
    Outcome outcome = Outcome::iteration_limit;
    std::size_t n_iterations = 0;
};

// The kernel matrix of a table: `exact` is asked for products only, and is `gram` itself where that is in double
// precision.
template <class T>
struct TableGram {
    Gram<T>* gram;
    Gram<double>* exact;
};

// start: empty to begin at the truth, as hinge losses always do; its weights are blocks.weights(). Objective and gap
// are those of the exact matrices.
template <class T>
AscentSolution solve_kernel_ascent(std::span<const TableGram<T>> tables, DualBlocks& blocks, const Coefficients& start,
                                   const AscentSettings& settings, ThreadTeam& team, const Report& report);

}  // namespace dualfield
