// Dual points of the hinge on graphs whose polytope is relaxed: a table for each node and for each edge.
//
// Points mu_i of the local polytope L have tables of edges that sum up to those of their nodes. Here every table is a
// point of its own simplex, and L is approached. With r the sums of the rows and columns of edges less the tables of
// their nodes, and lambda the multipliers of r = 0, the messages, a visit ascends table by table on
//
//   sum_i c_i [ <D_i, mu_i> - <lambda_i, r_i> - rho_i / 2 |r_i|^2 ] - 1/2 |w(mu)|^2,    w(mu) = sum_i c_i A_i'(u_i -
//   mu_i)
//
// and moves lambda_i by rho_i r_i: the augmented Lagrangian (Meshi et al. 2010, 2015; Martins et al.
// 2015), on all examples and the weights at once. A step moves mass from the worst part of a table that has some to the
// best one; its length is exact. For any messages, with s_f the scores of a table that they have been added to,
//
//   max over L of <A_i w + D_i, mu>  <=  sum_f max s_f,
//
// and for any tables there is a point of L near by; both are used for certificates, which nothing else depends on.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "dualfield/core/buffer.hpp"
#include "dualfield/core/couplings.hpp"
#include "dualfield/core/layout.hpp"
#include "dualfield/core/memory.hpp"
#include "dualfield/objectives/problem.hpp"
#include "dualfield/structures/graphs/relaxed_graph.hpp"
#include "dualfield/vector/routines.hpp"
#include "feature_squares.hpp"

namespace dualfield {

class LocalTables {
  public:
    // Scores of one table, and what computing them needs: one for each thread.
    struct Scratch {
        explicit Scratch(const LocalTables& tables) {
            scores.require(tables.size_ + kLanes);
            rows.require(tables.map_.scratch_size());
        }
        Buffer scores, rows;
        Buffer nodes, pairs;  // of an example, with what messages have moved from edges to nodes
    };

    // At the truth, with messages of zero.
    LocalTables(const Problem& problem, const GraphParts& graph)
        : problem_(problem),
          graph_(graph),
          map_(*problem.scores),
          k_(graph.n_labels()),
          size_(k_ * k_),
          nodes_(problem.n_nodes() * k_, 0.0),
          pairs_(graph.first_edge(problem.n_examples()) * size_, 0.0),
          messages_(graph.first_edge(problem.n_examples()) * 2 * k_, 0.0),
          rests_(messages_.size(), 0.0),
          n_idle_(problem.n_nodes() + graph.first_edge(problem.n_examples()), 0),
          begins_(problem.n_nodes() + 1, 0),
          squares_{squares_of(0, problem.n_nodes()), squares_of(1, graph.first_edge(problem.n_examples()))},
          forests_(k_, graph.label_offsets(), graph.edges_of(0), graph.edge_offsets(), {.with_edges = true}, {}),
          scratch_(*this) {
        for (std::size_t i = 0; i < problem.n_examples(); ++i) {
            for (std::size_t t = 0; t < problem.length(i); ++t) nodes_[(problem.first(i) + t) * k_ + label(i, t)] = 1.0;
            for (std::size_t q = 0; q < graph.n_edges(i); ++q) {
                pairs_[(graph.first_edge(i) + q) * size_ + true_pair(i, q)] = 1.0;
                for (const std::size_t end : {0, 1}) ++begins_[node(i, q, end) + 1];
            }
        }
        for (std::size_t v = 0; v + 1 < begins_.size(); ++v) begins_[v + 1] += begins_[v];
        at_node_.resize(2 * n_edges());
        std::vector<std::size_t> next(begins_.begin(), begins_.end() - 1);
        for (std::size_t i = 0; i < problem.n_examples(); ++i)
            for (std::size_t q = 0; q < graph.n_edges(i); ++q)
                for (const std::size_t end : {0, 1})
                    at_node_[next[node(i, q, end)]++] = 2 * (graph.first_edge(i) + q) + end;
        // As strong as the data are: the geometric mean of what nodes and edges have as their own curvature.
        const double curvature = std::sqrt(mean(squares_[0]) * mean(squares_[1]));
        strength_ = curvature > 0.0 && curvature < kInfinity ? curvature : 1.0;
        change_.require(size_ + kLanes);
        for (Buffer* buffer : {&row_, &column_}) buffer->require(k_);
    }
    LocalTables(const LocalTables&) = delete;
    LocalTables& operator=(const LocalTables&) = delete;

    std::size_t n_tables() const { return n_idle_.size(); }

    // A step of every table of an example that is due, of edges first; w follows. Returns how many steps and how many
    // of them moved anything.
    struct Visit {
        std::size_t n_steps = 0, n_moved = 0;
    };
    Visit visit(std::size_t i, std::size_t pass, double* w) {
        Visit visit;
        const double rho =
            problem_.weights[i] * strength_ * std::clamp(static_cast<double>(pass) / kFirstPasses, 1.0, 2.0);
        const auto due = [&](std::size_t table, const auto& step) {
            // Tables that stood still lately are left out now and then: others may have moved the weights.
            if ((pass + table) % (std::size_t{1} << n_idle_[table]) != 0) return;
            const bool moved = step();
            ++visit.n_steps;
            visit.n_moved += moved;
            n_idle_[table] = moved ? 0 : std::min<std::uint64_t>(n_idle_[table] + 1, kLongestRest);
        };
        const std::size_t first = graph_.first_edge(i), n_edges = graph_.n_edges(i), n_nodes = problem_.length(i);
        for (std::size_t at = 0; at < n_edges; ++at) {
            const std::size_t q = pass % 2 ? n_edges - 1 - at : at;
            due(problem_.n_nodes() + first + q, [&] { return step_edge(i, first + q, rho, w); });
        }
        for (std::size_t at = 0; at < n_nodes; ++at) {
            const std::size_t t = pass % 2 ? n_nodes - 1 - at : at;
            due(problem_.first(i) + t, [&] { return step_node(i, t, rho, w); });
        }
        for (std::size_t j = 2 * first * k_; j < 2 * (first + n_edges) * k_; ++j) messages_[j] += rho * rests_[j];
        return visit;
    }
    static constexpr std::size_t kLongestRest = 3;  // tables are looked at every 2^3 passes at least

    // Whether edges agree with their nodes but for rounding.
    bool is_settled() const {
        return std::all_of(rests_.begin(), rests_.end(), [](double r) { return std::abs(r) <= 1e-14; });
    }

    // A bound of the loss of an example at any weights, by its messages and by sweeps that begin at them. Messages move
    // scores from edges to nodes, which changes no labelling's score, and the bound of sweeps over forests is at most
    // the sum of the maxima that they begin with.
    double loss(std::size_t i, const double* w, Scratch& scratch) const {
        double bound = 0.0, truth = 0.0;
        double* s = scratch.scores.data();
        const std::size_t n_nodes = problem_.length(i), n_edges = graph_.n_edges(i);
        double* nodes = scratch.nodes.require(std::max<std::size_t>(n_nodes * k_, 1));
        double* pairs = scratch.pairs.require(std::max<std::size_t>(n_edges * size_, 1));
        for (std::size_t t = 0; t < n_nodes; ++t) {
            score_node(problem_.first(i) + t, w, scratch);
            truth += s[label(i, t)];
            tell_node(i, t, 0.0, s);
            bound += *std::max_element(s, s + k_);
            std::copy_n(s, k_, nodes + t * k_);
        }
        for (std::size_t q = 0; q < n_edges; ++q) {
            score_edge(graph_.first_edge(i) + q, w, scratch);
            truth += s[true_pair(i, q)];
            tell_edge(graph_.first_edge(i) + q, 0.0, s);
            bound += *std::max_element(s, s + size_);
            std::copy_n(s, size_, pairs + q * size_);
        }
        if (n_nodes == 0 || !std::isfinite(bound)) return bound - truth;
        double swept = kInfinity;
        Status status = Status::ok;
        forests_.maximum({i, i + 1}, {{nodes, pairs}, nullptr}, 1, &swept, &status);
        return (status == Status::ok ? std::min(bound, swept) : bound) - truth;
    }

    // target += c_i A_i'(u_i - mu) for a point mu of L near the tables of an example; returns c_i <D_i, mu>. Nodes have
    // the mean of what they and their edges say; what is cut off edges goes to the pairs that score best.
    double add_rounded(std::size_t i, const double* w, double* target) {
        const double weight = problem_.weights[i];
        const std::size_t n_nodes = problem_.length(i), first = problem_.first(i);
        double* rounded = rounded_.require(std::max<std::size_t>(n_nodes * k_, 1));
        double cost = 0.0;
        for (std::size_t t = 0; t < n_nodes; ++t) mean_node(i, t, rounded + t * k_);
        if (problem_.cost)
            cost = weight * problem_.structure->expected_cost(i, problem_.truth(i), problem_.cost, rounded);
        double *d = change_.data(), *s = scratch_.scores.data();
        for (std::size_t q = 0; q < graph_.n_edges(i); ++q) {
            const std::size_t e = graph_.first_edge(i) + q;
            const double *rows = rounded + (node(i, q, 0) - first) * k_,
                         *columns = rounded + (node(i, q, 1) - first) * k_;
            std::copy_n(pairs_.data() + e * size_, size_, d);
            if (cut_down(k_, rows, columns, d, row_.data(), column_.data()) > 0.0) {
                score_edge(e, w, scratch_);
                tell_edge(e, 0.0, s);
                fill_up(s, d);
            }
            d[true_pair(i, q)] -= 1.0;
            add_edge(e, -weight, target);
        }
        for (std::size_t t = 0; t < n_nodes; ++t) {
            std::copy_n(rounded + t * k_, k_, d);
            d[label(i, t)] -= 1.0;
            add_node(first + t, -weight, target);
        }
        return cost;
    }

    template <class Archive>
    void describe(Archive& archive) {
        archive("nodes", nodes_);
        archive("pairs", pairs_);
        archive("messages", messages_);
        archive("rests", rests_);
        archive("n_idle", n_idle_);
    }
    // Whether numbers that were read can be tables; rounding needs no more than that.
    bool is_valid() const {
        const auto is_share = [](double mass) { return mass >= 0.0 && mass <= 1.0 + 1e-6; };
        return std::all_of(nodes_.begin(), nodes_.end(), is_share) &&
               std::all_of(pairs_.begin(), pairs_.end(), is_share) &&
               std::all_of(n_idle_.begin(), n_idle_.end(), [](std::uint64_t n) { return n <= kLongestRest; });
    }

  private:
    static constexpr double kFirstPasses = 100.0;  // after which rho rises to twice its value, in as many passes
    static constexpr double kNoSlope = 1e-13;
    static constexpr double kSolved = 1e-3;  // steps of a table go on until this share of the first slope is left

    std::size_t n_edges() const { return rests_.size() / (2 * k_); }
    std::size_t label(std::size_t i, std::size_t t) const { return static_cast<std::size_t>(problem_.truth(i)[t]); }
    // The node at an end of an edge of an example, counted over all examples.
    std::size_t node(std::size_t i, std::size_t q, std::size_t end) const {
        return problem_.first(i) + static_cast<std::size_t>(graph_.edges_of(i)[2 * q + end]);
    }
    std::size_t true_pair(std::size_t i, std::size_t q) const {
        const std::int32_t* ends = graph_.edges_of(i) + 2 * q;
        return label(i, static_cast<std::size_t>(ends[0])) * k_ + label(i, static_cast<std::size_t>(ends[1]));
    }
    double degree(std::size_t v) const { return static_cast<double>(begins_[v + 1] - begins_[v]); }

    // Squares of the features of the rows of a table; shared parts are one feature of an edge.
    std::vector<double> squares_of(std::size_t g, std::size_t n_rows) const {
        std::vector<double> squares(n_rows, g == 0 ? 0.0 : 1.0);
        if (g == 0 || graph_.with_edges()) add_squares(map_.table(g).rows, squares);
        return squares;
    }
    static double mean(const std::vector<double>& values) {
        double sum = 0.0;
        for (const double value : values) sum += value;
        return values.empty() ? 1.0 : sum / static_cast<double>(values.size());
    }

    // Scores of a node [K] or an edge [K][K], without costs and messages.
    void score_node(std::size_t v, const double* w, Scratch& scratch) const {
        double *out = scratch.scores.data(), *rows = scratch.rows.data();
        if (map_.plan())
            routines().score_plan(*map_.table(0).map, *map_.plan(), w, v, v + 1, out, rows);
        else
            routines().score_rows(*map_.table(0).map, map_.table(0).rows, w, v, v + 1, out, rows);
    }
    void score_edge(std::size_t e, const double* w, Scratch& scratch) const {
        double* out = scratch.scores.data();
        const double* shared = map_.shared(w) + graph_.type_of(e) * size_;
        if (!graph_.with_edges()) {
            std::copy_n(shared, size_, out);
            return;
        }
        routines().score_rows(*map_.table(1).map, map_.table(1).rows, w + map_.table_begin(1), e, e + 1, out,
                              scratch.rows.data());
        for (std::size_t j = 0; j < size_; ++j) out[j] += shared[j];
    }
    // The cost of wrong labels and what edges say, with rho times the rest.
    void tell_node(std::size_t i, std::size_t t, double rho, double* s) const {
        if (problem_.cost)
            for (std::size_t k = 0; k < k_; ++k) s[k] += problem_.cost[label(i, t) * k_ + k];
        const std::size_t v = problem_.first(i) + t;
        for (std::size_t at = begins_[v]; at < begins_[v + 1]; ++at) {
            const double *message = messages_.data() + at_node_[at] * k_, *rest = rests_.data() + at_node_[at] * k_;
            for (std::size_t k = 0; k < k_; ++k) s[k] += message[k] + rho * rest[k];
        }
    }
    void tell_edge(std::size_t e, double rho, double* s) const {
        const double *message = messages_.data() + 2 * e * k_, *rest = rests_.data() + 2 * e * k_;
        for (std::size_t a = 0; a < k_; ++a)
            for (std::size_t b = 0; b < k_; ++b)
                s[a * k_ + b] -= message[a] + rho * rest[a] + message[k_ + b] + rho * rest[k_ + b];
    }
    // w += scale * A' of what is in change_.
    void add_node(std::size_t v, double scale, double* w) {
        double *d = change_.data(), *rows = scratch_.rows.data();
        if (map_.plan())
            routines().add_plan(*map_.table(0).map, *map_.plan(), d, scale, v, v + 1, w, rows, nullptr);
        else
            routines().add_rows(*map_.table(0).map, map_.table(0).rows, d, scale, v, v + 1, w, rows, nullptr);
    }
    void add_edge(std::size_t e, double scale, double* w) {
        const double* d = change_.data();
        if (graph_.with_edges())
            routines().add_rows(*map_.table(1).map, map_.table(1).rows, d, scale, e, e + 1, w + map_.table_begin(1),
                                scratch_.rows.data(), nullptr);
        const std::size_t at = graph_.type_of(e) * size_;
        routines().add_masked(d, map_.shared_mask() + at, scale, size_, w + map_.shared_begin() + at, nullptr);
    }

    // Swaps of mass in a table of n parts with scores s, into change_; false if there is none. square(to, from) is the
    // curvature of a swap, moved(to, from, mass) changes the scores. The scores of the two parts themselves are changed
    // here by their own curvature.
    template <class Square, class Moved>
    bool swap_mass(std::size_t n, double own, double* mass, const Square& square, const Moved& moved) {
        double *s = scratch_.scores.data(), *d = change_.data(), first = 0.0;
        bool is_moved = false;
        for (std::size_t step = 0; step < 3 * k_; ++step) {
            std::size_t to = 0, from = n;
            for (std::size_t j = 0; j < n; ++j) {
                if (s[j] > s[to]) to = j;
                if (mass[j] > 0.0 && (from == n || s[j] < s[from])) from = j;
            }
            const double slope = from < n ? s[to] - s[from] : 0.0;
            if (step == 0) first = slope;
            if (!(slope > std::max(kNoSlope, step > 0 ? kSolved * first : 0.0))) break;
            const double by = std::min(mass[from], slope / square(to, from));
            if (!(by > 0.0)) break;
            if (!is_moved) std::fill_n(d, n, 0.0);
            is_moved = true;
            mass[to] += by;
            mass[from] = by < mass[from] ? mass[from] - by : 0.0;
            d[to] += by;
            d[from] -= by;
            s[to] -= own * by;
            s[from] += own * by;
            moved(to, from, by);
        }
        return is_moved;
    }
    bool step_node(std::size_t i, std::size_t t, double rho, double* w) {
        const std::size_t v = problem_.first(i) + t;
        score_node(v, w, scratch_);
        tell_node(i, t, rho, scratch_.scores.data());
        const double own = problem_.weights[i] * squares_[0][v] + rho * degree(v);
        const auto square = [&](std::size_t, std::size_t) { return 2.0 * own; };
        if (!swap_mass(k_, own, nodes_.data() + v * k_, square, [](std::size_t, std::size_t, double) {})) return false;
        add_node(v, -problem_.weights[i], w);
        for (std::size_t at = begins_[v]; at < begins_[v + 1]; ++at)
            for (std::size_t k = 0; k < k_; ++k) rests_[at_node_[at] * k_ + k] -= change_.data()[k];
        return true;
    }
    bool step_edge(std::size_t i, std::size_t e, double rho, double* w) {
        score_edge(e, w, scratch_);
        double *s = scratch_.scores.data(), *rows = rests_.data() + 2 * e * k_, *columns = rows + k_;
        tell_edge(e, rho, s);
        const double own = problem_.weights[i] * squares_[1][e];
        const auto square = [&](std::size_t to, std::size_t from) {
            return 2.0 * own + 2.0 * rho * ((to / k_ != from / k_) + (to % k_ != from % k_));
        };
        const auto moved = [&](std::size_t to, std::size_t from, double by) {
            const std::size_t row = to / k_, old_row = from / k_, column = to % k_, old_column = from % k_;
            rows[row] += by;
            rows[old_row] -= by;
            columns[column] += by;
            columns[old_column] -= by;
            for (std::size_t k = 0; k < k_; ++k) {
                s[row * k_ + k] -= rho * by;
                s[old_row * k_ + k] += rho * by;
                s[k * k_ + column] -= rho * by;
                s[k * k_ + old_column] += rho * by;
            }
        };
        if (!swap_mass(size_, own, pairs_.data() + e * size_, square, moved)) return false;
        add_edge(e, -problem_.weights[i], w);
        return true;
    }

    // What a node and its edges say of it in the mean.
    void mean_node(std::size_t i, std::size_t t, double* out) const {
        const std::size_t v = problem_.first(i) + t;
        double sum = 0.0;
        for (std::size_t k = 0; k < k_; ++k) {
            out[k] = (1.0 + degree(v)) * nodes_[v * k_ + k];
            for (std::size_t at = begins_[v]; at < begins_[v + 1]; ++at) out[k] += rests_[at_node_[at] * k_ + k];
            sum += out[k] = std::max(out[k], 0.0);
        }
        if (!(sum > 0.0)) sum = out[label(i, t)] = 1.0;
        for (std::size_t k = 0; k < k_; ++k) out[k] /= sum;
    }
    // Fills rows and columns up with what is missing, row_ and column_, where scores are high.
    void fill_up(const double* s, double* table) {
        double *row = row_.data(), *column = column_.data();
        order_.clear();
        for (std::uint32_t j = 0; j < size_; ++j)
            if (row[j / k_] > 0.0 && column[j % k_] > 0.0) order_.push_back(j);
        std::sort(order_.begin(), order_.end(),
                  [&](std::uint32_t x, std::uint32_t y) { return s[x] > s[y] || (s[x] == s[y] && x < y); });
        for (const std::uint32_t j : order_) {
            const double by = std::min(row[j / k_], column[j % k_]);
            table[j] += by;
            row[j / k_] -= by;
            column[j % k_] -= by;
        }
    }

    const Problem& problem_;
    const GraphParts& graph_;
    const ScoreMap& map_;
    std::size_t k_, size_;
    std::vector<double> nodes_, pairs_;          // [n_nodes][K], [n_edges][K][K]: mu
    std::vector<double> messages_, rests_;       // [n_edges][2][K]: lambda and r
    std::vector<std::uint64_t> n_idle_;          // of each table: steps in a row that moved nothing
    std::vector<std::size_t> begins_, at_node_;  // edges and ends at each node: 2 e + end
    std::vector<double> squares_[2];
    double strength_ = 1.0;          // rho over c
    RelaxedGraphStructure forests_;  // the same graphs, with scores of their own for all edges
    Scratch scratch_;
    Buffer change_, row_, column_, rounded_;
    std::vector<std::uint32_t> order_;
};

}  // namespace dualfield
