// One pass from the leaves to the roots, and one back. With b_t the scores of node t and of all below it,
//
//   m_t[a] = max or log sum over k of edge[t][a][k] + b_t[k],      b_p = node[p] + sum of m_t over the children t of p.
//
// Sums multiply exponentials of the edge's table, each divided by its largest, with exponentials of b_t, divided by
// theirs: K exponentials for a node instead of K^2. A sum so small that something may have been lost in it is computed
// again in logarithms.
#include "dualfield/structures/tree.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "dualfield/core/buffer.hpp"
#include "dualfield/core/layout.hpp"
#include "dualfield/core/parallel.hpp"
#include "dualfield/core/random.hpp"
#include "dualfield/vector/routines.hpp"

namespace dualfield {
namespace {

constexpr double kSmallSum = 1e-250;

// Index drawn with probability proportional to weights.
std::size_t draw(std::span<const double> weights, double uniform) {
    double total = 0.0;
    for (const double weight : weights) total += weight;
    double left = uniform * total;
    std::size_t last = 0;
    for (std::size_t k = 0; k < weights.size(); ++k) {
        if (weights[k] <= 0.0) continue;
        last = k;
        left -= weights[k];
        if (left < 0.0) break;
    }
    return last;
}

// out [n] becomes proportional to exp(scores) and sums to 1; returns the log-sum-exp.
double soften(const double* scores, std::size_t n, double* out) {
    const double highest = *std::max_element(scores, scores + n);
    if (!(highest > -kInfinity)) {
        std::fill_n(out, n, 0.0);
        return highest;
    }
    double total = 0.0;
    for (std::size_t k = 0; k < n; ++k) total += out[k] = std::exp(scores[k] - highest);
    for (std::size_t k = 0; k < n; ++k) out[k] /= total;
    return highest + std::log(total);
}

}  // namespace

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

// The two passes over one example at a time, in memory that is reused.
class TreeStructure::Pass {
  public:
    explicit Pass(const TreeStructure& tree) : tree_(tree), n_(tree.n_labels_) {}

    // Takes the scores of an example; base: rows of all examples before it in the view.
    void begin(std::size_t example, std::size_t base, const ScoreView& view) {
        example_ = example;
        length_ = tree_.length(example);
        const std::size_t at = tree_.first(example) - base, size = length_ * n_;
        node_ = view.own[0] + at * n_;
        edges_ = tree_.options_.with_edges && view.own[1] ? view.own[1] + at * n_ * n_ : nullptr;
        if (view.shared != shared_ || view.inverse_temperature != factor_) {
            shared_ = view.shared;
            factor_ = view.inverse_temperature;
            read_shared();
        }
        b_.require(std::max<std::size_t>(size, 1));
        message_.require(std::max<std::size_t>(size, 1));
        bad_ = bad_shared_;
        total_ = 0.0;
    }
    // Reads shared scores anew the next time.
    void forget() { factor_ = 0.0; }
    std::size_t node_at(std::size_t place) const {
        return static_cast<std::size_t>(tree_.order_[tree_.first(example_) + place]);
    }
    std::int32_t parent(std::size_t t) const { return tree_.parents_[tree_.first(example_) + t]; }
    double* b(std::size_t t) { return b_.data() + t * n_; }
    double* message(std::size_t t) { return message_.data() + t * n_; }
    double total() const { return total_; }
    Status status() const {
        if (bad_ || !(total_ < kInfinity)) return Status::bad_number;
        return total_ > -kInfinity ? Status::ok : Status::impossible;
    }

    // The scores of an edge [K][K], times the factor.
    const double* edge(std::size_t t) {
        const double* table = shared_scores_.data() + tree_.type_of(tree_.first(example_) + t) * n_ * n_;
        if (!edges_) return table;
        double* own = edge_scores_.require(n_ * n_);
        for (std::size_t j = 0; j < n_ * n_; ++j) {
            own[j] = table[j] + factor_ * edges_[t * n_ * n_ + j];
            bad_ |= !(own[j] < kInfinity);
        }
        return own;
    }
    const double* root() const { return roots_.data(); }

    // From the leaves to the roots: `pull(t, edge, b, message)` makes the message of a node. Roots have theirs added.
    template <class Pull>
    void up(Pull pull, bool sums) {
        for (std::size_t t = 0; t < length_; ++t)
            for (std::size_t k = 0; k < n_; ++k) {
                b(t)[k] = factor_ * node_[t * n_ + k];
                bad_ |= !(b(t)[k] < kInfinity);
            }
        for (std::size_t place = length_; place-- > 0;) {
            const std::size_t t = node_at(place);
            if (parent(t) < 0) {
                for (std::size_t k = 0; k < n_; ++k) b(t)[k] += roots_.data()[k];
                total_ += sums ? soften(b(t), n_, row_.require(n_)) : *std::max_element(b(t), b(t) + n_);
                continue;
            }
            pull(t, edge(t), b(t), message(t));
            double* above = b(static_cast<std::size_t>(parent(t)));
            for (std::size_t a = 0; a < n_; ++a) above[a] += message(t)[a];
        }
    }
    void up_max() {
        up(
            [&](std::size_t, const double* table, const double* below, double* out) {
                for (std::size_t a = 0; a < n_; ++a) {
                    double best = -kInfinity;
                    for (std::size_t k = 0; k < n_; ++k) best = std::max(best, table[a * n_ + k] + below[k]);
                    out[a] = best;
                }
            },
            false);
    }
    void up_sum() {
        up(
            [&](std::size_t t, const double* table, const double* below, double* out) {
                const double highest = exponentials(below);
                const Exponentials edge = exponentiated(t, table);
                for (std::size_t a = 0; a < n_; ++a) {
                    const double sum = dot(edge.values + a * n_);
                    if (sum > kSmallSum) {
                        out[a] = std::log(sum) + highest + edge.shift;
                        continue;
                    }
                    double* row = row_.require(2 * n_);
                    for (std::size_t k = 0; k < n_; ++k) row[k] = table[a * n_ + k] + below[k];
                    out[a] = soften(row, n_, row + n_);
                }
            },
            true);
    }

    // From the roots to the leaves, after up_sum: `use(t, a, share)` sees the distribution [K] of node t given the
    // label a of its parent, and for a root with a = 0 its own.
    template <class Use>
    void down(Use use) {
        for (std::size_t place = 0; place < length_; ++place) {
            const std::size_t t = node_at(place);
            double* share = share_.require(2 * n_);
            if (parent(t) < 0) {
                soften(b(t), n_, share);
                use(t, std::size_t{0}, share);
                continue;
            }
            const double* table = edge(t);
            exponentials(b(t));
            const Exponentials edge = exponentiated(t, table);
            for (std::size_t a = 0; a < n_; ++a) {
                double sum = 0.0;
                for (std::size_t k = 0; k < n_; ++k) sum += share[k] = edge.values[a * n_ + k] * x_.data()[k];
                if (sum > kSmallSum) {
                    for (std::size_t k = 0; k < n_; ++k) share[k] /= sum;
                } else {
                    for (std::size_t k = 0; k < n_; ++k) share[n_ + k] = table[a * n_ + k] + b(t)[k];
                    soften(share + n_, n_, share);
                }
                use(t, a, share);
            }
        }
    }

  private:
    struct Exponentials {
        const double* values;
        double shift;
    };
    // Of an edge's table: those that all edges of a type share are kept.
    Exponentials exponentiated(std::size_t t, const double* table) {
        const std::size_t type = tree_.type_of(tree_.first(example_) + t);
        if (!edges_) return {shared_exponentials_.data() + type * n_ * n_, shifts_[type]};
        double* out = edge_exponentials_.require(n_ * n_);
        return {out, exponentiate(table, out)};
    }
    double exponentiate(const double* table, double* out) const {
        const double highest = *std::max_element(table, table + n_ * n_);
        const double shift = highest > -kInfinity ? highest : 0.0;
        for (std::size_t j = 0; j < n_ * n_; ++j) out[j] = std::exp(table[j] - shift);
        return shift;
    }
    // x_ = exp(scores - the highest), which is returned.
    double exponentials(const double* scores) {
        const double highest = *std::max_element(scores, scores + n_);
        const double shift = highest > -kInfinity ? highest : 0.0;
        double* x = x_.require(n_);
        for (std::size_t k = 0; k < n_; ++k) x[k] = std::exp(scores[k] - shift);
        return shift;
    }
    double dot(const double* row) const {
        double sum = 0.0;
        for (std::size_t k = 0; k < n_; ++k) sum += row[k] * x_.data()[k];
        return sum;
    }
    void read_shared() {
        const std::size_t n_pairs = tree_.options_.n_types * n_ * n_;
        bad_shared_ = false;
        const auto read = [&](const double* scores, const double* limits, std::size_t size, double* out) {
            for (std::size_t j = 0; j < size; ++j) {
                out[j] = factor_ * ((scores ? scores[j] : 0.0) + (limits ? limits[j] : 0.0));
                bad_shared_ |= !(out[j] < kInfinity);
            }
        };
        read(shared_, tree_.options_.limits, n_pairs, shared_scores_.require(n_pairs));
        const bool with_roots = tree_.options_.with_roots && shared_;
        read(with_roots ? shared_ + n_pairs : nullptr, tree_.options_.root_limits, n_, roots_.require(n_));
        shifts_.resize(tree_.options_.n_types);
        double* out = shared_exponentials_.require(n_pairs);
        for (std::size_t type = 0; type < shifts_.size(); ++type)
            shifts_[type] = exponentiate(shared_scores_.data() + type * n_ * n_, out + type * n_ * n_);
    }

    const TreeStructure& tree_;
    std::size_t n_, example_ = 0, length_ = 0;
    const double *node_ = nullptr, *edges_ = nullptr, *shared_ = nullptr;
    double factor_ = 0.0, total_ = 0.0;
    bool bad_ = false, bad_shared_ = false;
    std::vector<double> shifts_;
    Buffer b_, message_, shared_scores_, shared_exponentials_, roots_, edge_scores_, edge_exponentials_, x_, row_,
        share_;
};

// Calls body(pass, example, place of its first row in the view) for each example after a pass up; those without nodes
// have one labelling, of score 0.
template <class Body>
void TreeStructure::for_examples(Examples examples, const ScoreView& view, std::size_t n_threads, Status* statuses,
                                 bool sums, Body body) const {
    n_threads = std::max<std::size_t>(1, std::min(n_threads, examples.size()));
    std::vector<Pass> passes;
    for (std::size_t i = 0; i < n_threads; ++i) passes.emplace_back(*this);
    const std::size_t base = first(examples.first);
    parallel_for(examples.size(), n_threads, [&](std::size_t worker, std::size_t i) {
        Pass& pass = passes[worker];
        pass.begin(examples.first + i, base, view);
        if (sums)
            pass.up_sum();
        else
            pass.up_max();
        statuses[i] = pass.status();
        if (statuses[i] == Status::ok) body(pass, i, first(examples.first + i) - base);
    });
}

void TreeStructure::log_partition(Examples examples, const ScoreView& view, std::size_t n_threads, double* out,
                                  Status* statuses) const {
    for_examples(examples, view, n_threads, statuses, true,
                 [&](const Pass& pass, std::size_t i, std::size_t) { out[i] = pass.total(); });
}

void TreeStructure::maximum(Examples examples, const ScoreView& view, std::size_t n_threads, double* out,
                            Status* statuses) const {
    for_examples(examples, view, n_threads, statuses, false,
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
    for_examples(examples, view, n_threads, statuses, true, [&](Pass& pass, std::size_t i, std::size_t row) {
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
    for_examples(examples, view, n_threads, statuses, false,
                 [&](Pass& pass, std::size_t i, std::size_t row) { decode(pass, examples.first + i, labels + row); });
}

// One tree after another, in the memory of one pass.
class TreeStructure::OneTree final : public Block {
  public:
    explicit OneTree(const TreeStructure& tree) : tree_(tree), pass_(tree) {}

    Answer marginals(std::size_t example, const ScoreView& scores, const PartSums& sums) override {
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
        pass_.begin(example, tree_.first(example), scores);
    }

    const TreeStructure& tree_;
    Pass pass_;
};

std::unique_ptr<Block> TreeStructure::block() const {
    return std::make_unique<OneTree>(*this);
}

void TreeStructure::max_marginals(Examples examples, const ScoreView& view, std::size_t n_threads, double* own,
                                  Status* statuses) const {
    const std::size_t n = n_labels_;
    for_examples(examples, view, n_threads, statuses, false, [&](Pass& pass, std::size_t i, std::size_t row) {
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
    for_examples(examples, view, n_threads, statuses, true, [&](Pass& pass, std::size_t i, std::size_t) {
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
    for_examples(examples, view, n_threads, statuses, true, [&](Pass& pass, std::size_t i, std::size_t row) {
        RandomStream random(seed, examples.first + i);
        pass.down([&](std::size_t t, std::size_t a, const double* share) {
            const std::int32_t up = pass.parent(t);
            for (std::size_t s = 0; s < n_samples; ++s) {
                std::int32_t* own = labels + s * stride + row;
                if (up >= 0 && static_cast<std::size_t>(own[up]) != a) continue;
                own[t] = static_cast<std::int32_t>(draw({share, n}, random.uniform()));
            }
        });
    });
}

// The best labellings of what is below each node, by the label of the node.
class TreeStructure::Lists {
  public:
    Lists(Pass& pass, std::size_t length, std::size_t n_labels, std::size_t k)
        : pass_(pass), length_(length), n_(n_labels), k_(k), cells_(length * n_labels) {}

    // The k best of the example: labels [k][stride], scores [k].
    void solve(const double* node, double factor, std::int32_t* labels, std::size_t stride, double* scores) {
        for (std::size_t t = 0; t < length_; ++t)
            for (std::size_t a = 0; a < n_; ++a) cell(t, a).push_back({factor * node[t * n_ + a], {}});
        List all{{0.0, {}}};
        for (std::size_t place = length_; place-- > 0;) {
            const std::size_t t = pass_.node_at(place);
            const bool is_root = pass_.parent(t) < 0;
            const double* table = is_root ? nullptr : pass_.edge(t);
            for (std::size_t a = 0; a < (is_root ? 1 : n_); ++a) {
                const List below = message(t, is_root ? pass_.root() : table + a * n_);
                List& above = is_root ? all : cell(static_cast<std::size_t>(pass_.parent(t)), a);
                above = combined(above, below);
            }
        }
        for (std::size_t r = 0; r < k_; ++r) {
            const bool found = r < all.size() && all[r].score > -kInfinity;
            scores[r] = found ? all[r].score : -kInfinity;
            std::fill_n(labels + r * stride, length_, -1);
            if (found) trace(all[r], labels + r * stride);
        }
    }

  private:
    // A labelling of some subtrees: for each of them its root's label, and the rank in that label's list.
    struct Choice {
        std::uint32_t node, label, rank;
    };
    struct Entry {
        double score;
        std::vector<Choice> choices;
    };
    using List = std::vector<Entry>;  // best first, k at most

    List& cell(std::size_t t, std::size_t a) { return cells_[t * n_ + a]; }

    // The best ways to go on below an edge.
    List message(std::size_t t, const double* row) {
        List found;
        for (std::size_t k = 0; k < n_; ++k)
            for (std::size_t r = 0; r < cell(t, k).size(); ++r) {
                const double score = row[k] + cell(t, k)[r].score;
                if (score > -kInfinity)
                    found.push_back({score,
                                     {{static_cast<std::uint32_t>(t), static_cast<std::uint32_t>(k),
                                       static_cast<std::uint32_t>(r)}}});
            }
        cut(found);
        return found;
    }
    List combined(const List& one, const List& two) const {
        List found;
        for (std::size_t i = 0; i < one.size(); ++i)
            // Of k best sums neither rank can be beyond: (i + 1) (j + 1) of them are at least as good.
            for (std::size_t j = 0; j < two.size() && (i + 1) * (j + 1) <= k_; ++j) {
                Entry entry{one[i].score + two[j].score, one[i].choices};
                entry.choices.insert(entry.choices.end(), two[j].choices.begin(), two[j].choices.end());
                found.push_back(std::move(entry));
            }
        cut(found);
        return found;
    }
    void cut(List& list) const {
        std::stable_sort(list.begin(), list.end(), [](const Entry& a, const Entry& b) { return a.score > b.score; });
        if (list.size() > k_) list.resize(k_);
    }
    void trace(const Entry& entry, std::int32_t* labels) {
        std::vector<Choice> open = entry.choices;  // trees may be deep: no recursion
        while (!open.empty()) {
            const Choice choice = open.back();
            open.pop_back();
            labels[choice.node] = static_cast<std::int32_t>(choice.label);
            const auto& below = cell(choice.node, choice.label)[choice.rank].choices;
            open.insert(open.end(), below.begin(), below.end());
        }
    }

    Pass& pass_;
    std::size_t length_, n_, k_;
    std::vector<List> cells_;
};

void TreeStructure::k_best(Examples examples, const ScoreView& view, std::size_t n_threads, std::size_t k,
                           std::int32_t* labels, double* scores, Status* statuses) const {
    const std::size_t stride = first(examples.last) - first(examples.first);
    for_examples(examples, view, n_threads, statuses, false, [&](Pass& pass, std::size_t i, std::size_t row) {
        Lists lists(pass, length(examples.first + i), n_labels_, k);
        lists.solve(view.own[0] + row * n_labels_, view.inverse_temperature, labels + row, stride, scores + i * k);
    });
}

void TreeStructure::score(Examples examples, const ScoreView& view, std::size_t, const std::int32_t* labels,
                          double* out, Status* statuses) const {
    PartList parts;
    const std::size_t base = first(examples.first);
    for (std::size_t i = 0; i < examples.size(); ++i) {
        const std::size_t example = examples.first + i, row = first(example) - base;
        list_parts(example, labels + row, parts);
        ScoreView own = view;
        own.own[0] += row * n_labels_;
        if (options_.with_edges && own.own[1]) own.own[1] += row * n_labels_ * n_labels_;
        out[i] =
            refusal(example, labels + row).empty()
                ? view.inverse_temperature * score_parts(example, own, {{parts.own[0], parts.own[1], {}}, parts.shared})
                : -kInfinity;
        statuses[i] = out[i] < kInfinity ? Status::ok : Status::bad_number;
    }
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
