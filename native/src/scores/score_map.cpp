#include "dualfield/scores/score_map.hpp"

#include <algorithm>
#include <numeric>

#include "dualfield/vector/routines.hpp"

namespace dualfield {
namespace {

// Calls use(output, weight, value) for every weight that adds to the outputs of a row.
template <class Use>
void for_weights(const ScoreMap::Table& table, std::size_t row, Use use) {
    const LinearMap& map = *table.map;
    const std::size_t width = map.width(), n_vectors = width / kLanes;
    const auto column = [&](std::size_t c, double value) {
        const LinearMap::Place place = map.places()[c];
        if (place.count != LinearMap::kWhole) {
            for (std::size_t i = place.start; i < place.start + place.count; ++i)
                use(static_cast<std::size_t>(map.listed_outputs()[i]), map.listed_begin() + i, value);
            return;
        }
        for (std::size_t k = 0; k < map.n_outputs(); ++k)
            if (map.masks()[place.start * n_vectors + k / kLanes] >> (k % kLanes) & 1u)
                use(k, place.start * width + k, value);
    };
    const FeatureRows& rows = table.rows;
    if (rows.dense) {
        for (std::size_t c = 0; c < rows.n_columns; ++c)
            if (const double value = rows.dense[row * rows.n_columns + c]; value != 0.0) column(c, value);
    } else {
        for (std::int64_t q = rows.indptr[row]; q < rows.indptr[row + 1]; ++q)
            column(static_cast<std::size_t>(rows.indices[q]), rows.values ? rows.values[q] : 1.0);
    }
}

}  // namespace

ScoreMap::ScoreMap(const PartLayout& parts, std::vector<Table> tables, const double* shared_mask)
    : parts_(parts), tables_(std::move(tables)), shared_mask_(shared_mask), begins_{0} {
    for (const Table& table : tables_) begins_.push_back(begins_.back() + (table.map ? table.map->size() : 0));
}

std::size_t ScoreMap::n_entries() const {
    const FeatureRows& rows = tables_[0].rows;
    const auto n_rows = static_cast<std::size_t>(parts_.tables[0].offsets.back());
    return rows.dense ? n_rows * rows.n_columns : static_cast<std::size_t>(rows.indptr ? rows.indptr[n_rows] : 0);
}

double ScoreMap::square() const {
    const double* values = tables_[0].rows.dense ? tables_[0].rows.dense : tables_[0].rows.values;
    if (!values) return static_cast<double>(n_entries());
    return std::inner_product(values, values + n_entries(), values, 0.0);
}

void ScoreMap::prepare() const {
    std::call_once(planned_, [&] {
        if (has_features() && !tables_[0].rows.dense)
            plan_.emplace(*tables_[0].map, tables_[0].rows, static_cast<std::size_t>(parts_.tables[0].offsets.back()));
    });
}

std::size_t ScoreMap::scratch_size() const {
    std::size_t widest = parts_.n_shared;
    for (const OwnTable& table : parts_.tables) widest = std::max(widest, table.width);
    return 2 * padded(widest);
}

void ScoreMap::score_nodes(const double* w, std::size_t first, std::size_t last, double* own, double* scratch) const {
    if (plan_)
        routines().score_plan(*tables_[0].map, *plan_, w, first, last, own, scratch);
    else
        routines().score_rows(*tables_[0].map, tables_[0].rows, w, first, last, own, scratch);
}

double ScoreMap::move_nodes(std::size_t first, std::size_t last, const double* sums, double scale, double* w,
                            double* scratch) const {
    const Table& nodes = tables_[0];
    if (plan_) return routines().add_plan(*nodes.map, *plan_, sums, scale, first, last, w, scratch, nullptr);
    return routines().add_rows(*nodes.map, nodes.rows, sums, scale, first, last, w, scratch, nullptr);
}

void ScoreMap::score(const double* w, Examples examples, const std::array<double*, kMostTables>& own,
                     double* scratch) const {
    // Nodes of examples that follow each other have features that follow each other.
    const OwnTable& nodes = parts_.tables[0];
    score_nodes(w, nodes.first(examples.first), nodes.first(examples.last), own[0], scratch);
    for (std::size_t g = 1; g < tables_.size(); ++g) {
        const OwnTable& table = parts_.tables[g];
        double* out = own[g];
        for (std::size_t i = examples.first; i < examples.last; ++i) {
            const std::size_t begin = table.feature_row(i), n_rows = table.n_rows(i);
            if (n_rows == 0) continue;
            routines().score_rows(*tables_[g].map, tables_[g].rows, w + begins_[g], begin, begin + n_rows, out,
                                  scratch);
            out += n_rows * table.width;
        }
    }
}

double ScoreMap::add_table(std::size_t g, std::size_t example, const double* sums, double scale, double* w,
                           double* scratch, const Shrinkage* shrinkage) const {
    const Table& table = tables_[g];
    const std::size_t begin = parts_.tables[g].feature_row(example), end = begin + parts_.tables[g].n_rows(example);
    if (g == 0 && plan_) return routines().add_plan(*table.map, *plan_, sums, scale, begin, end, w, scratch, shrinkage);
    return routines().add_rows(*table.map, table.rows, sums, scale, begin, end, w + begins_[g], scratch, shrinkage);
}

void ScoreMap::add(std::size_t example, const PartSums& sums, double scale, double* w, double* scratch) const {
    for (std::size_t g = 0; g < tables_.size(); ++g)
        if (parts_.tables[g].n_rows(example) > 0) add_table(g, example, sums.own[g], scale, w, scratch, nullptr);
    double* shared = w + shared_begin();
    for (std::size_t c = 0; c < parts_.n_shared; ++c) shared[c] += scale * sums.shared[c] * shared_mask_[c];
}

double ScoreMap::move(std::size_t example, const PartSums& sums, double scale, double* w, double* scratch,
                      const Shrinkage* shrinkage) const {
    double grown = 0.0;
    for (std::size_t g = 0; g < tables_.size(); ++g)
        if (parts_.tables[g].n_rows(example) > 0)
            grown += add_table(g, example, sums.own[g], scale, w, scratch, shrinkage);
    if (parts_.n_shared > 0)
        grown +=
            routines().add_masked(sums.shared, shared_mask_, scale, parts_.n_shared, w + shared_begin(), shrinkage);
    return grown;
}

void ScoreMap::list_weights(std::size_t example, PartWeights& out) const {
    out.begins.assign(1, 0);
    out.entries.clear();
    std::vector<std::size_t> next;
    for (std::size_t g = 0; g < tables_.size(); ++g) {
        const std::size_t first = parts_.tables[g].feature_row(example), width = parts_.tables[g].width;
        for (std::size_t r = first; r < first + parts_.tables[g].n_rows(example); ++r) {
            // By counting: how many weights each part of the row has, then where they go.
            next.assign(width + 1, 0);
            for_weights(tables_[g], r, [&](std::size_t part, std::size_t, double) { ++next[part + 1]; });
            next[0] = out.entries.size();
            std::partial_sum(next.begin(), next.end(), next.begin());
            out.begins.insert(out.begins.end(), next.begin() + 1, next.end());
            out.entries.resize(next.back());
            for_weights(tables_[g], r, [&](std::size_t part, std::size_t weight, double value) {
                out.entries[next[part]++] = {begins_[g] + weight, value};
            });
        }
    }
    for (std::size_t c = 0; c < parts_.n_shared; ++c) {
        if (shared_mask_[c] != 0.0) out.entries.push_back({shared_begin() + c, shared_mask_[c]});
        out.begins.push_back(out.entries.size());
    }
}

void ScoreMap::prefetch(std::size_t example) const {
    const OwnTable& nodes = parts_.tables[0];
    if (plan_) plan_->prefetch(nodes.first(example), nodes.first(example + 1));
}

}  // namespace dualfield
