// The examples of a batch as sets of labellings: how the parts of each are laid out, and exact answers about their
// scores.
//
//   score_i(y) = <theta_i, u_i(y)>,      M_T(theta_i) = T log sum_y exp(score_i(y) / T),      M_0 = max_y score_i(y)
//
// u_i(y) are the 0/1 indicators of the parts that a labelling has. *Own* parts have scores that differ from place to
// place; they are rows of tables, such as a row of labels for each node. *Shared* parts have one score for all places,
// such as the transitions of a chain, and u counts how often they occur. A structure knows nothing else: neither where
// scores come from nor what they are good for.
//
// A *relaxation* answers for a larger set than that of the marginals, with an entropy that is at least as large: its
// log-partition is an upper bound of the one above, its marginals are a point of that set. It finds both by iterations,
// so that the log-partition is above <theta, mu> + H(mu) by a slack, which exact answers do not have.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dualfield {

class ChainStructure;
class Slope;
struct JunctionParts;

enum class Status : std::uint8_t {
    ok = 0,
    impossible = 1,  // every labelling is forbidden
    bad_number = 2,  // NaN or +inf among the scores
};

// A table of own parts. Example i has the rows offsets[i] ... offsets[i + 1] - 1 of it, and features for them, where
// there are any, in as many rows from feature_rows[i] on.
struct OwnTable {
    std::size_t width = 0;                       // parts of a row
    std::span<const std::int64_t> offsets;       // [n + 1]
    std::span<const std::int64_t> feature_rows;  // [n]

    std::size_t first(std::size_t example) const { return static_cast<std::size_t>(offsets[example]); }
    std::size_t n_rows(std::size_t example) const {
        return static_cast<std::size_t>(offsets[example + 1] - offsets[example]);
    }
    std::size_t feature_row(std::size_t example) const { return static_cast<std::size_t>(feature_rows[example]); }
};

inline constexpr std::size_t kMostTables = 3;

struct PartLayout {
    std::vector<OwnTable> tables;  // the first has a row for each node, or what stands for a node
    std::size_t n_shared = 0;

    // Own parts of all examples before this one, and of this one: table by table.
    std::size_t own_begin(std::size_t example) const {
        std::size_t total = 0;
        for (const OwnTable& table : tables) total += table.first(example) * table.width;
        return total;
    }
    std::size_t n_own(std::size_t example) const { return own_begin(example + 1) - own_begin(example); }
};

// Scores of some examples that follow each other. They are multiplied by the inverse temperature; -inf forbids.
struct ScoreView {
    std::array<const double*, kMostTables> own{};  // rows of these examples; null: zeros, not for the first table
    const double* shared = nullptr;                // [n_shared]; null: zeros
    double inverse_temperature = 1.0;
};

// Where marginals go.
struct PartSums {
    std::array<double*, kMostTables> own{};  // laid out as scores are; null: not wanted, not for the first table
    double* shared = nullptr;                // [examples][n_shared]; null: not wanted
    double* slack = nullptr;                 // [examples], as of Block::Answer; null: not wanted
};

// The parts of one labelling: for each row of a table its part, or -1 for none; shared ones as often as they occur.
struct PartList {
    std::array<std::vector<std::int32_t>, kMostTables> own;
    std::vector<std::int32_t> shared;
};
struct PartSpan {
    std::array<std::span<const std::int32_t>, kMostTables> own;
    std::span<const std::int32_t> shared;
};

struct Examples {
    std::size_t first, last;
    std::size_t size() const { return last - first; }
};

// One example after another, with scores of its own: for solvers that visit examples one by one. Has memory that it
// reuses; one for each thread.
class Block {
  public:
    virtual ~Block() = default;
    struct Answer {
        double value;  // log-partition, or the maximum
        Status status;
        double slack = 0.0;  // by which a log-partition is above <scores, marginals> plus their entropy
        double from_below() const { return value - slack; }
    };
    // The scores are as they are, at temperature 1. All sums are wanted.
    virtual Answer marginals(std::size_t example, const ScoreView& scores, const PartSums& sums) = 0;
    virtual Answer best(std::size_t example, const ScoreView& scores, std::int32_t* labels) = 0;
};

// Labels are codes, in as many places as label_offsets say: one for each node where nodes have labels. After a question
// the statuses [examples] tell which examples have an answer; what was written for the others is undefined. Every
// example is computed on its own, so answers do not depend on the number of threads.
class Structure {
  public:
    virtual ~Structure() = default;

    const PartLayout& parts() const { return parts_; }
    std::size_t n_examples() const { return label_offsets_.size() - 1; }
    std::span<const std::int64_t> label_offsets() const { return label_offsets_; }
    std::size_t first(std::size_t example) const { return static_cast<std::size_t>(label_offsets_[example]); }
    std::size_t length(std::size_t example) const {
        return static_cast<std::size_t>(label_offsets_[example + 1] - label_offsets_[example]);
    }
    virtual std::size_t n_labels() const = 0;  // label codes are below it
    // The label of candidates that are not part of the output, where rows stand for candidates; -1: there is none.
    virtual std::int32_t empty_label() const { return -1; }

    // [examples]: log sum_y exp(score(y)).
    virtual void log_partition(Examples, const ScoreView&, std::size_t n_threads, double* out, Status*) const = 0;
    // The same, and the probability of each part, of shared ones summed over their places. Only relaxations write a
    // slack.
    virtual void marginals(Examples, const ScoreView&, std::size_t n_threads, const PartSums&, double* out,
                           Status*) const = 0;
    // [examples]: the highest score.
    virtual void maximum(Examples, const ScoreView&, std::size_t n_threads, double* out, Status*) const = 0;
    // The best labelling; among equals the one whose last label is lowest, then the one before it, and so on.
    virtual void argmax(Examples, const ScoreView&, std::size_t n_threads, std::int32_t* labels, Status*) const = 0;
    // The same, and bounds [examples] that no labelling scores more than. By argmax and maximum, unless one pass finds
    // both.
    virtual void bounded_argmax(Examples, const ScoreView&, std::size_t n_threads, std::int32_t* labels, double* bounds,
                                Status*) const;
    // A point with the highest score: the indicator of the best labelling. A relaxation has a point of its larger set,
    // which may be fractional, and a slack: out [examples] is the highest score, or a bound above it, and the point
    // scores less by the slack. All sums are wanted. By argmax.
    virtual void best_point(Examples, const ScoreView&, std::size_t n_threads, const PartSums&, double* out,
                            Status*) const;
    // [examples]: the scores of given labellings; -inf where forbidden. Statuses tell of bad numbers only. By their
    // parts.
    virtual void score(Examples, const ScoreView&, std::size_t n_threads, const std::int32_t* labels, double* out,
                       Status*) const;
    // The parts of a labelling of an example; labels [length].
    virtual void list_parts(std::size_t example, const std::int32_t* labels, PartList& out) const = 0;

    // The 0/1 indicators of given labellings, laid out as marginals are.
    void indicate(Examples examples, const std::int32_t* labels, const PartSums& sums) const;

    // Questions that a structure need not answer, but for the k best, which are found with the best of subsets.
    // For each part of the first table, the highest score of a labelling that has it.
    virtual void max_marginals(Examples, const ScoreView&, std::size_t n_threads, double* own, Status*) const;
    // [examples]: - sum_y p(y) log p(y).
    virtual void entropy(Examples, const ScoreView&, std::size_t n_threads, double* out, Status*) const;
    // Exact draws from p(y): labels [n_samples][places].
    virtual void sample(Examples, const ScoreView&, std::size_t n_threads, std::size_t n_samples, std::uint64_t seed,
                        std::int32_t* labels, Status*) const;
    // The k best labellings, best first: labels [k][places], scores [examples][k]; where there are fewer, -1 and -inf.
    virtual void k_best(Examples, const ScoreView&, std::size_t n_threads, std::size_t k, std::int32_t* labels,
                        double* scores, Status*) const;

    // Why an example has no labelling, where the structure knows; empty: scores of -inf and constraints leave none.
    virtual std::string no_labelling(std::size_t example) const;
    // The change of the marginals, laid out as they are, along a direction of the scores, which is laid out as scores
    // are and finite; all sums are wanted. out [examples]: that of the log-partition. By slopes.
    void directional(Examples, const ScoreView& scores, const ScoreView& direction, std::size_t n_threads,
                     const PartSums& change, double* out, Status*) const;
    // What finds them; null where the question is not answered.
    virtual std::unique_ptr<Slope> slope() const;

    // Why a labelling is forbidden; empty if it is not.
    virtual std::string refusal(std::size_t example, const std::int32_t* labels) const;
    // The score of a labelling whose parts are known, without the inverse temperature; the scores are of that example.
    // The scores of one of the examples that a view shows, the first of which is `from`.
    ScoreView view_of(std::size_t example, std::size_t from, const ScoreView& view) const;
    // The same for sums.
    PartSums sums_of(std::size_t example, std::size_t from, const PartSums& sums) const;
    virtual double score_parts(std::size_t example, const ScoreView& scores, const PartSpan& parts) const;
    // Adds cost[truth][label] / scale to the scores of the first table: the cost of wrong labels, [K][K].
    virtual void add_cost(std::size_t example, const std::int32_t* truth, const double* cost, double scale,
                          double* own) const;
    // <cost, mu> for marginals of the first table.
    virtual double expected_cost(std::size_t example, const std::int32_t* truth, const double* cost,
                                 const double* own) const;
    virtual std::unique_ptr<Block> block() const;
    // The chain that it is, for solvers that know chains; null if it is none.
    virtual const ChainStructure* chain() const { return nullptr; }
    // The cliques of an example, for solvers that keep tables of them; false where there are none of that form, or
    // where scores are of more than two nodes.
    virtual bool list_junction(std::size_t, JunctionParts&) const { return false; }

  protected:
    // Derived classes lay out their parts; the arrays that spans view must outlive the structure.
    PartLayout parts_;
    std::span<const std::int64_t> label_offsets_;
};

}  // namespace dualfield
