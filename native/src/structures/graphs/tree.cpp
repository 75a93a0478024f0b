// Trees: the layout of their parts, and the questions, each by one or two passes over every example (tree_pass.hpp).
#include "dualfield/structures/graphs/tree.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "../passes.hpp"
#include "dualfield/core/buffer.hpp"
#include "dualfield/core/layout.hpp"
#include "dualfield/core/parallel.hpp"
#include "dualfield/core/random.hpp"
#include "dualfield/structures/graphs/junction_parts.hpp"
#include "dualfield/structures/slope.hpp"
#include "tree_lists.hpp"
#include "tree_pass.hpp"
#include "tree_sums.hpp"

namespace dualfield {
TreeStructure::TreeStructure(std::size_t n_labels, std::span<const std::int64_t> offsets, const std::int32_t* parents,
                             const Options& options)
    : n_labels_(n_labels), parents_(parents), options_(options), order_(static_cast<std::size_t>(offsets.back())) {
    const std::size_t n = offsets.size() - 1, n_pairs = checked_product(n_labels, n_labels);
    label_offsets_ = offsets;
    parts_.tables.push_back({n_labels, offsets, offsets.first(n)});
    if (options.with_edges) parts_.tables.push_back({n_pairs, offsets, offsets.first(n)});
    parts_.n_shared = checked_product(options.n_types, n_pairs) + (options.with_roots ? n_labels : 0);
    std::vector<std::int32_t> depth;
    for (std::size_t i = 0; i < n; ++i) {
        // By depth: parents come first. A node that is deeper than there are nodes is on a circle.
        const std::int32_t* up = parents + first(i);
        const auto size = static_cast<std::int32_t>(length(i));
        depth.assign(length(i), -1);
        for (std::int32_t t = 0; t < size; ++t) {
            std::int32_t steps = 0, at = t;
            while (at >= 0 && depth[static_cast<std::size_t>(at)] < 0 && steps <= size) {
                if (up[at] < -1 || up[at] >= size)
                    throw std::invalid_argument("The parents of example " + std::to_string(i) + " must be in [-1, " +
                                                std::to_string(size) + "). Got " + std::to_string(up[at]) + ".");
                at = up[at];
                ++steps;
            }
            if (steps > size)
                throw std::invalid_argument("The parents of example " + std::to_string(i) + " are no tree: node " +
                                            std::to_string(t) + " is below itself.");
            std::int32_t level = (at < 0 ? -1 : depth[static_cast<std::size_t>(at)]) + steps;
            for (at = t; at >= 0 && depth[static_cast<std::size_t>(at)] < 0; at = up[at])
                depth[static_cast<std::size_t>(at)] = level--;
        }
        std::int32_t* order = order_.data() + first(i);
        for (std::int32_t t = 0; t < size; ++t) order[t] = t;
        std::stable_sort(order, order + size, [&](std::int32_t a, std::int32_t b) {
            return depth[static_cast<std::size_t>(a)] < depth[static_cast<std::size_t>(b)];
        });
    }
}

bool TreeStructure::same_shape(std::size_t one, std::size_t other) const {
    const std::size_t size = length(one);
    if (size != length(other) ||
        !std::equal(parents_ + first(one), parents_ + first(one) + size, parents_ + first(other)))
        return false;
    const std::int32_t* types = options_.types;
    return !types || std::equal(types + first(one), types + first(one) + size, types + first(other));
}

// Sums of examples that follow each other and have one shape are taken side by side; where(i) says where the marginals
// of one go. What products lose is computed again in logarithms.
template <class Where>
void TreeStructure::solve_sums(Examples examples, const ScoreView& view, std::size_t n_threads, double* out,
                               Status* statuses, Where where) const {
    std::vector<std::size_t> begins;
    for (std::size_t at = examples.first; at < examples.last;) {
        begins.push_back(at);
        const std::size_t begin = at++;
        while (at < examples.last && at - begin < kSideBySide && same_shape(begin, at)) ++at;
    }
    begins.push_back(examples.last);
    n_threads = std::max<std::size_t>(1, std::min(n_threads, begins.size() - 1));
    std::vector<Sums> sums;
    std::vector<Pass> passes;
    for (std::size_t i = 0; i < n_threads; ++i) {
        sums.emplace_back(*this);
        passes.emplace_back(*this);
    }
    parallel_for(begins.size() - 1, n_threads, [&](std::size_t worker, std::size_t g) {
        const std::size_t begin = begins[g], n = begins[g + 1] - begin;
        const TreeTask& task =
            sums[worker].solve(begin, n, examples.first, view, [&](std::size_t i) { return where(begin + i); });
        for (std::size_t i = 0; i < n; ++i) {
            const std::size_t example = begin + i, at = example - examples.first;
            if (!task.is_lost[i] || task.bad_number[i]) {
                out[at] = view.inverse_temperature * task.total[i];
                statuses[at] = task.bad_number[i] || !(out[at] < kInfinity) ? Status::bad_number : Status::ok;
                continue;
            }
            Pass& pass = passes[worker];
            pass.begin(example, examples.first, view);
            pass.up_sum();
            out[at] = pass.total();
            statuses[at] = pass.status();
            const Sums::Place to = where(example);
            if (statuses[at] == Status::ok && to.nodes) spread(pass, example, to.nodes, nullptr, to.shared);
        }
    });
}

void TreeStructure::log_partition(Examples examples, const ScoreView& view, std::size_t n_threads, double* out,
                                  Status* statuses) const {
    if (Sums::suits(*this, view))
        return solve_sums(examples, view, n_threads, out, statuses, [](std::size_t) { return Sums::Place{}; });
    for_examples<Pass>(*this, examples, view, n_threads, statuses, true,
                       [&](const Pass& pass, std::size_t i, std::size_t) { out[i] = pass.total(); });
}

void TreeStructure::maximum(Examples examples, const ScoreView& view, std::size_t n_threads, double* out,
                            Status* statuses) const {
    for_examples<Pass>(*this, examples, view, n_threads, statuses, false,
                       [&](const Pass& pass, std::size_t i, std::size_t) { out[i] = pass.total(); });
}

// The probabilities of the parts of an example after a pass up; edges and shared may be null.
void TreeStructure::spread(Pass& pass, std::size_t example, double* nodes, double* edges, double* shared) const {
    const std::size_t n = n_labels_, n_pairs = n * n, size = length(example);
    std::fill_n(nodes, size * n, 0.0);
    if (edges) std::fill_n(edges, size * n_pairs, 0.0);
    if (shared) std::fill_n(shared, parts_.n_shared, 0.0);
    pass.down([&](std::size_t t, std::size_t a, const double* share) {
        const std::int32_t up = pass.parent(t);
        const double mass = up < 0 ? 1.0 : nodes[static_cast<std::size_t>(up) * n + a];
        if (mass == 0.0) return;
        double* own = nodes + t * n;
        for (std::size_t k = 0; k < n; ++k) own[k] += mass * share[k];
        if (up < 0) {
            if (shared && options_.with_roots)
                for (std::size_t k = 0; k < n; ++k) shared[options_.n_types * n_pairs + k] += share[k];
            return;
        }
        double* pairs = shared ? shared + type_of(first(example) + t) * n_pairs + a * n : nullptr;
        for (std::size_t k = 0; k < n; ++k) {
            if (edges) edges[t * n_pairs + a * n + k] = mass * share[k];
            if (pairs) pairs[k] += mass * share[k];
        }
    });
}

void TreeStructure::marginals(Examples examples, const ScoreView& view, std::size_t n_threads, const PartSums& sums,
                              double* out, Status* statuses) const {
    double* edges = options_.with_edges ? sums.own[1] : nullptr;
    if (!edges && Sums::suits(*this, view))
        return solve_sums(examples, view, n_threads, out, statuses, [&](std::size_t example) -> Sums::Place {
            return {sums.own[0] + (first(example) - first(examples.first)) * n_labels_,
                    sums.shared ? sums.shared + (example - examples.first) * parts_.n_shared : nullptr};
        });
    for_examples<Pass>(*this, examples, view, n_threads, statuses, true,
                       [&](Pass& pass, std::size_t i, std::size_t row) {
                           out[i] = pass.total();
                           spread(pass, examples.first + i, sums.own[0] + row * n_labels_,
                                  edges ? edges + row * n_labels_ * n_labels_ : nullptr,
                                  sums.shared ? sums.shared + i * parts_.n_shared : nullptr);
                       });
}

void TreeStructure::decode(Pass& pass, std::size_t example, std::int32_t* labels) const {
    for (std::size_t place = 0; place < length(example); ++place) {
        const std::size_t t = pass.node_at(place);
        const std::int32_t up = pass.parent(t);
        const double* table = up < 0 ? nullptr : pass.edge(t) + static_cast<std::size_t>(labels[up]) * n_labels_;
        std::size_t best = 0;
        double highest = -kInfinity;
        for (std::size_t k = 0; k < n_labels_; ++k) {
            const double value = pass.b(t)[k] + (table ? table[k] : 0.0);
            if (value > highest) {
                highest = value;
                best = k;
            }
        }
        labels[t] = static_cast<std::int32_t>(best);
    }
}

void TreeStructure::argmax(Examples examples, const ScoreView& view, std::size_t n_threads, std::int32_t* labels,
                           Status* statuses) const {
    for_examples<Pass>(
        *this, examples, view, n_threads, statuses, false,
        [&](Pass& pass, std::size_t i, std::size_t row) { decode(pass, examples.first + i, labels + row); });
}

// One tree after another, in the memory of one pass.
class TreeStructure::OneTree final : public Block {
  public:
    explicit OneTree(const TreeStructure& tree) : tree_(tree), pass_(tree), sums_(tree) {}

    Answer marginals(std::size_t example, const ScoreView& scores, const PartSums& sums) override {
        if (!tree_.options_.with_edges) {
            sums_.forget();
            const TreeTask& task = sums_.solve(example, 1, example, scores,
                                               [&](std::size_t) -> Sums::Place { return {sums.own[0], sums.shared}; });
            if (task.bad_number[0]) return {task.total[0], Status::bad_number};
            if (!task.is_lost[0]) return {scores.inverse_temperature * task.total[0], Status::ok};
        }
        begin(example, scores);
        pass_.up_sum();
        if (pass_.status() == Status::ok)
            tree_.spread(pass_, example, sums.own[0], tree_.options_.with_edges ? sums.own[1] : nullptr, sums.shared);
        return {pass_.total(), pass_.status()};
    }
    Answer best(std::size_t example, const ScoreView& scores, std::int32_t* labels) override {
        begin(example, scores);
        pass_.up_max();
        if (pass_.status() == Status::ok) tree_.decode(pass_, example, labels);
        return {pass_.total(), pass_.status()};
    }

  private:
    void begin(std::size_t example, const ScoreView& scores) {
        pass_.forget();  // other scores may be in the same place
        pass_.begin(example, example, scores);
    }

    const TreeStructure& tree_;
    Pass pass_;
    Sums sums_;
};

std::unique_ptr<Block> TreeStructure::block() const {
    return std::make_unique<OneTree>(*this);
}

void TreeStructure::max_marginals(Examples examples, const ScoreView& view, std::size_t n_threads, double* own,
                                  Status* statuses) const {
    const std::size_t n = n_labels_;
    for_examples<Pass>(
        *this, examples, view, n_threads, statuses, false, [&](Pass& pass, std::size_t i, std::size_t row) {
            double* all = own + row * n;
            for (std::size_t place = 0; place < length(examples.first + i); ++place) {
                const std::size_t t = pass.node_at(place);
                double* here = all + t * n;
                const std::int32_t up = pass.parent(t);
                if (up < 0) {
                    const double rest = pass.total() - *std::max_element(pass.b(t), pass.b(t) + n);
                    for (std::size_t k = 0; k < n; ++k) here[k] = pass.b(t)[k] + rest;
                    continue;
                }
                const double *table = pass.edge(t), *above = all + static_cast<std::size_t>(up) * n;
                std::fill_n(here, n, -kInfinity);
                for (std::size_t a = 0; a < n; ++a) {
                    // Where nothing below fits the label of the parent, nothing fits through it either.
                    if (!(pass.message(t)[a] > -kInfinity) || !(above[a] > -kInfinity)) continue;
                    for (std::size_t k = 0; k < n; ++k)
                        here[k] = std::max(here[k], above[a] - pass.message(t)[a] + table[a * n + k] + pass.b(t)[k]);
                }
            }
        });
}

void TreeStructure::entropy(Examples examples, const ScoreView& view, std::size_t n_threads, double* out,
                            Status* statuses) const {
    const std::size_t n = n_labels_;
    for_examples<Pass>(*this, examples, view, n_threads, statuses, true, [&](Pass& pass, std::size_t i, std::size_t) {
        // The chain rule: that of the roots, then of each node given its parent.
        std::vector<double> mass(length(examples.first + i) * n, 0.0);
        double total = 0.0;
        pass.down([&](std::size_t t, std::size_t a, const double* share) {
            const std::int32_t up = pass.parent(t);
            const double above = up < 0 ? 1.0 : mass[static_cast<std::size_t>(up) * n + a];
            if (above == 0.0) return;
            double own = 0.0;
            for (std::size_t k = 0; k < n; ++k) {
                mass[t * n + k] += above * share[k];
                if (share[k] > 0.0) own -= share[k] * std::log(share[k]);
            }
            total += above * own;
        });
        out[i] = std::max(total, 0.0);
    });
}

void TreeStructure::sample(Examples examples, const ScoreView& view, std::size_t n_threads, std::size_t n_samples,
                           std::uint64_t seed, std::int32_t* labels, Status* statuses) const {
    const std::size_t n = n_labels_, stride = first(examples.last) - first(examples.first);
    for_examples<Pass>(*this, examples, view, n_threads, statuses, true,
                       [&](Pass& pass, std::size_t i, std::size_t row) {
                           RandomStream random(seed, examples.first + i);
                           pass.down([&](std::size_t t, std::size_t a, const double* share) {
                               const std::int32_t up = pass.parent(t);
                               for (std::size_t s = 0; s < n_samples; ++s) {
                                   std::int32_t* own = labels + s * stride + row;
                                   if (up >= 0 && static_cast<std::size_t>(own[up]) != a) continue;
                                   own[t] = static_cast<std::int32_t>(draw_index({share, n}, random.uniform()));
                               }
                           });
                       });
}

void TreeStructure::k_best(Examples examples, const ScoreView& view, std::size_t n_threads, std::size_t k,
                           std::int32_t* labels, double* scores, Status* statuses) const {
    const std::size_t stride = first(examples.last) - first(examples.first);
    for_examples<Pass>(
        *this, examples, view, n_threads, statuses, false, [&](Pass& pass, std::size_t i, std::size_t row) {
            Lists lists(pass, length(examples.first + i), n_labels_, k);
            lists.solve(view.own[0] + row * n_labels_, view.inverse_temperature, labels + row, stride, scores + i * k);
        });
}

void TreeStructure::list_parts(std::size_t example, const std::int32_t* labels, PartList& out) const {
    const auto n = static_cast<std::int32_t>(n_labels_);
    out.own[0].assign(labels, labels + length(example));
    out.own[1].assign(options_.with_edges ? length(example) : 0, -1);
    out.shared.clear();
    for (std::size_t t = 0; t < length(example); ++t) {
        const std::int32_t up = parents_[first(example) + t];
        if (up < 0) {
            if (options_.with_roots)
                out.shared.push_back(static_cast<std::int32_t>(options_.n_types) * n * n + labels[t]);
            continue;
        }
        const std::int32_t pair = labels[up] * n + labels[t];
        out.shared.push_back(static_cast<std::int32_t>(type_of(first(example) + t)) * n * n + pair);
        if (options_.with_edges) out.own[1][t] = pair;
    }
}

std::unique_ptr<Slope> TreeStructure::slope() const {
    return junction_slope(*this);
}

bool TreeStructure::list_junction(std::size_t example, JunctionParts& out) const {
    const auto n_pairs = static_cast<std::int64_t>(n_labels_ * n_labels_);
    const std::int32_t* order = order_.data() + first(example);
    out.clear();
    for (std::size_t place = length(example); place-- > 0;) {
        const std::int32_t t = order[place], up = parents_[first(example) + static_cast<std::size_t>(t)];
        const auto type = static_cast<std::int64_t>(type_of(first(example) + static_cast<std::size_t>(t)));
        out.steps.push_back(up < 0 ? std::vector<std::int32_t>{t} : std::vector<std::int32_t>{t, up});
        if (up >= 0 && options_.limits) out.limits.push_back({up, t, options_.limits + type * n_pairs});
        if (up < 0 && options_.root_limits) out.limits.push_back({t, -1, options_.root_limits});
        if (up >= 0)
            out.factors.push_back({up, t, options_.with_edges ? t : -1, type * n_pairs});
        else if (options_.with_roots)
            out.factors.push_back({t, -1, -1, static_cast<std::int64_t>(options_.n_types) * n_pairs});
    }
    return true;
}

std::string TreeStructure::refusal(std::size_t example, const std::int32_t* labels) const {
    const std::size_t n = n_labels_;
    for (std::size_t t = 0; t < length(example); ++t) {
        const std::int32_t up = parents_[first(example) + t];
        const auto label = static_cast<std::size_t>(labels[t]);
        if (up < 0 && options_.root_limits && options_.root_limits[label] != 0.0)
            return "that of node " + std::to_string(t) + " may not be the label of a root.";
        if (up >= 0 && options_.limits &&
            options_.limits[(type_of(first(example) + t) * n + static_cast<std::size_t>(labels[up])) * n + label] !=
                0.0)
            return "that of node " + std::to_string(t) + " may not stand below that of its parent.";
    }
    return {};
}

}  // namespace dualfield
