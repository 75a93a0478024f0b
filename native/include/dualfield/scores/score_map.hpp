// A_i of the formula: from a vector of parameters to the scores of the parts of each example, and back.
//
// Each table of own parts is scored by features, a row of them for each row of the table; shared parts have weights of
// their own. The vector has the weights of the tables one after another, then those of the shared parts.
#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <optional>
#include <vector>

#include "dualfield/scores/linear_map.hpp"
#include "dualfield/scores/shrinkage.hpp"
#include "dualfield/structures/structure.hpp"

namespace dualfield {

// The weights that score each part of an example, and how much of a weight the score has: those of part p are
// entries[begins[p]] ... entries[begins[p + 1] - 1]. Own parts table by table, then shared ones.
struct PartWeights {
    struct Entry {
        std::size_t weight;
        double factor;
    };
    std::vector<std::size_t> begins;
    std::vector<Entry> entries;
};

class ScoreMap {
  public:
    struct Table {
        const LinearMap* map = nullptr;  // from columns to the parts of a row; null: scores come from elsewhere
        FeatureRows rows;
    };
    // shared_mask [n_shared]: 1 where a shared part has a weight, 0 where it scores nothing. All must outlive the map.
    ScoreMap(const PartLayout& parts, std::vector<Table> tables, const double* shared_mask);

    const PartLayout& parts() const { return parts_; }
    std::size_t table_begin(std::size_t table) const { return begins_[table]; }
    std::size_t shared_begin() const { return begins_.back(); }
    std::size_t size() const { return shared_begin() + parts_.n_shared; }
    const double* shared_mask() const { return shared_mask_; }
    const Table& table(std::size_t g) const { return tables_[g]; }
    bool has_features() const { return tables_[0].map != nullptr; }
    // Numbers of which the features consist.
    std::size_t n_entries() const;

    // The sum of their squares: all |A_i|^2 together but for the shared parts.
    double square() const;

    // Looks up sparse features once for many passes. Without it every pass looks them up.
    void prepare() const;
    const FeaturePlan* plan() const { return plan_ ? &*plan_ : nullptr; }

    std::size_t scratch_size() const;  // of what the calls below work with
    // Scores of the own parts of some examples, laid out as a ScoreView has them.
    void score(const double* w, Examples examples, const std::array<double*, kMostTables>& own, double* scratch) const;
    // Those of shared parts [n_shared]: their weights.
    const double* shared(const double* w) const { return w + shared_begin(); }
    // w += scale * A_i' sums.
    void add(std::size_t example, const PartSums& sums, double scale, double* w, double* scratch) const;
    // The same; returns how much |w|^2 / 2 grows. With a shrinkage the dual weights are moved, and w follows; returns
    // how much the conjugate grows.
    double move(std::size_t example, const PartSums& sums, double scale, double* w, double* scratch,
                const Shrinkage* shrinkage = nullptr) const;
    // Scores of rows [first, last) of the first table alone, and moves of the weights that score them.
    void score_nodes(const double* w, std::size_t first, std::size_t last, double* own, double* scratch) const;
    double move_nodes(std::size_t first, std::size_t last, const double* sums, double scale, double* w,
                      double* scratch) const;
    // A_i of an example, a row for each part. A weight may be listed twice for a part: both factors count.
    void list_weights(std::size_t example, PartWeights& out) const;
    // Asks for what describes an example that comes soon.
    void prefetch(std::size_t example) const;

  private:
    double add_table(std::size_t g, std::size_t example, const double* sums, double scale, double* w, double* scratch,
                     const Shrinkage* shrinkage) const;

    const PartLayout& parts_;
    std::vector<Table> tables_;
    const double* shared_mask_;
    std::vector<std::size_t> begins_;  // of each table in the vector, and of the shared parts
    mutable std::once_flag planned_;
    mutable std::optional<FeaturePlan> plan_;  // of the first table
};

}  // namespace dualfield
