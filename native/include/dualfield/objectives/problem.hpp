// What is fitted: examples of a structure, the map that scores them, and the truth about them.
//
//   minimise over w   R(w) + sum_i c_i [ M_T(A_i w + D_i) - <A_i w, u_i> ]
//
// D_i is the cost of each wrong label. Where examples are labelled in part, the second term is the smoothed maximum
// over the labellings that are allowed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "dualfield/scores/score_map.hpp"
#include "dualfield/structures/structure.hpp"

namespace dualfield {

struct Problem {
    const Structure* structure = nullptr;
    const ScoreMap* scores = nullptr;
    const std::int32_t* labels = nullptr;  // [label_offsets.back()]; null for prediction
    const double* weights = nullptr;       // [n]: c_i
    const double* cost = nullptr;          // [K][K], true label first, zeros on the diagonal; may be null
    // As the first table: which parts partly labelled examples may have; may be null.
    const std::uint8_t* allowed = nullptr;
    double temperature = 1.0;  // 0: the maximum itself, the hinge

    std::size_t size() const { return scores->size(); }
    std::size_t n_examples() const { return structure->n_examples(); }
    std::size_t n_nodes() const { return static_cast<std::size_t>(structure->label_offsets().back()); }
    std::size_t first(std::size_t example) const { return structure->first(example); }
    std::size_t length(std::size_t example) const { return structure->length(example); }
    std::size_t longest() const {
        std::size_t found = 0;
        for (std::size_t i = 0; i < n_examples(); ++i) found = std::max(found, length(i));
        return found;
    }
    const std::int32_t* truth(std::size_t example) const { return labels + first(example); }
};

// The parts u_i of the true labellings.
class Truth {
  public:
    // Throws std::invalid_argument, naming the example, where a true labelling is forbidden. Partly labelled examples
    // have no parts.
    explicit Truth(const Problem& problem);

    PartSpan parts(std::size_t example) const;
    // Adds `mass` at the parts of an example to the sums of that example.
    template <class S>
    void add(std::size_t example, S mass, const std::array<S*, kMostTables>& own, S* shared) const {
        const PartSpan found = parts(example);
        for (std::size_t g = 0; g < layout_.tables.size(); ++g) {
            S* row = own[g];
            for (const std::int32_t part : found.own[g]) {
                if (part >= 0) row[part] += mass;
                row += layout_.tables[g].width;
            }
        }
        for (const std::int32_t part : found.shared) shared[part] += mass;
    }

  private:
    const PartLayout& layout_;
    std::array<std::vector<std::int32_t>, kMostTables> own_;  // by row of each table
    std::vector<std::int32_t> shared_;
    std::vector<std::int64_t> first_shared_;  // [n + 1]
};

}  // namespace dualfield
