#include "dualfield/scores/linear_map.hpp"

#include <algorithm>
#include <stdexcept>

namespace dualfield {
namespace {

// Columns with at least one in so many of the outputs have a whole row of weights: faster than a list from there on.
constexpr std::size_t kWholeFrom = 6;

}  // namespace

LinearMap::LinearMap(std::size_t n_outputs, std::span<const std::int64_t> indptr, std::span<const std::int32_t> outputs)
    : n_outputs_(n_outputs), n_features_(outputs.size()) {
    if (n_outputs == 0) throw std::invalid_argument("n_outputs must be at least 1");
    if (indptr.empty() || indptr.front() != 0 || indptr.back() != static_cast<std::int64_t>(outputs.size()))
        throw std::invalid_argument("indptr must run from 0 to the number of features");
    places_.resize(indptr.size() - 1);
    const std::size_t vectors = width() / kLanes;
    for (std::size_t c = 0; c < places_.size(); ++c) {
        if (indptr[c + 1] < indptr[c] || indptr[c + 1] > indptr.back())
            throw std::invalid_argument("indptr must not decrease");
        const auto own =
            outputs.subspan(static_cast<std::size_t>(indptr[c]), static_cast<std::size_t>(indptr[c + 1] - indptr[c]));
        for (std::size_t i = 0; i < own.size(); ++i)
            if (own[i] < 0 || static_cast<std::size_t>(own[i]) >= n_outputs || (i > 0 && own[i] <= own[i - 1]))
                throw std::invalid_argument("outputs of a column must rise within [0, n_outputs)");
        if (own.size() * kWholeFrom >= n_outputs && own.size() > 1) {
            places_[c] = {static_cast<std::uint32_t>(n_whole_++), kWhole};
            masks_.resize(n_whole_ * vectors, 0);
            std::uint8_t* mask = masks_.data() + (n_whole_ - 1) * vectors;
            for (const std::int32_t output : own)
                mask[static_cast<std::size_t>(output) / kLanes] |=
                    static_cast<std::uint8_t>(1u << (static_cast<std::size_t>(output) % kLanes));
        } else {
            places_[c] = {static_cast<std::uint32_t>(listed_outputs_.size()), static_cast<std::uint32_t>(own.size())};
            listed_outputs_.insert(listed_outputs_.end(), own.begin(), own.end());
        }
    }
    if (n_whole_ >= kWhole || listed_outputs_.size() >= kWhole)
        throw std::invalid_argument("more than four thousand million weights");
}

void LinearMap::feature_places(std::int64_t* out) const {
    const std::size_t vectors = width() / kLanes;
    for (const Place& place : places_) {
        if (place.count == kWhole) {
            for (std::size_t k = 0; k < n_outputs_; ++k)
                if (masks_[place.start * vectors + k / kLanes] >> (k % kLanes) & 1u)
                    *out++ = static_cast<std::int64_t>(place.start * width() + k);
        } else {
            for (std::uint32_t i = 0; i < place.count; ++i)
                *out++ = static_cast<std::int64_t>(listed_begin() + place.start + i);
        }
    }
}

FeaturePlan::FeaturePlan(const LinearMap& map, const FeatureRows& rows, std::size_t n_rows)
    : whole_begin_(n_rows + 1, 0), listed_begin_(n_rows + 1, 0) {
    const LinearMap::Place* places = map.places();
    for (std::size_t r = 0; r < n_rows; ++r) {
        std::size_t whole = 0, listed = 0;
        for (std::int64_t q = rows.indptr[r]; q < rows.indptr[r + 1]; ++q) {
            const LinearMap::Place place = places[rows.indices[q]];
            if (place.count == LinearMap::kWhole)
                ++whole;
            else
                listed += place.count;
        }
        whole_begin_[r + 1] = whole_begin_[r] + whole;
        listed_begin_[r + 1] = listed_begin_[r] + listed;
    }
    whole_.resize(whole_begin_.back());
    listed_.resize(listed_begin_.back());
    outputs_.resize(listed_begin_.back());
    if (rows.values) {
        whole_values_.resize(std::max<std::size_t>(whole_.size(), 1));  // not empty: there are values
        listed_values_.resize(listed_.size());
    }
    std::size_t w = 0, l = 0;
    for (std::int64_t q = 0; q < rows.indptr[n_rows]; ++q) {
        const LinearMap::Place place = places[rows.indices[q]];
        if (place.count == LinearMap::kWhole) {
            if (rows.values) whole_values_[w] = rows.values[q];
            whole_[w++] = place.start;
        } else {
            for (std::uint32_t i = 0; i < place.count; ++i, ++l) {
                if (rows.values) listed_values_[l] = rows.values[q];
                outputs_[l] = map.listed_outputs()[place.start + i];
                listed_[l] = place.start + i;
            }
        }
    }
}

ObservedFeatures observe_features(const FeatureRows& rows, std::span<const std::int32_t> labels, std::size_t n_outputs,
                                  std::size_t least) {
    const std::size_t n_rows = labels.size(), n_columns = rows.n_columns;
    // Calls use(column, label) for every entry that counts.
    const auto for_entries = [&](auto use) {
        for (std::size_t r = 0; r < n_rows; ++r) {
            if (labels[r] < 0) continue;
            if (rows.dense) {
                for (std::size_t c = 0; c < n_columns; ++c)
                    if (rows.dense[r * n_columns + c] != 0.0) use(c, labels[r]);
            } else {
                for (std::int64_t q = rows.indptr[r]; q < rows.indptr[r + 1]; ++q)
                    if (!rows.values || rows.values[q] != 0.0)
                        use(static_cast<std::size_t>(rows.indices[q]), labels[r]);
            }
        }
    };
    // The labels of each column side by side, by counting.
    std::vector<std::int64_t> ends(n_columns + 1, 0);
    for_entries([&](std::size_t column, std::int32_t) { ++ends[column + 1]; });
    for (std::size_t c = 0; c < n_columns; ++c) ends[c + 1] += ends[c];
    std::vector<std::int32_t> seen(static_cast<std::size_t>(ends.back()));
    {
        std::vector<std::int64_t> next(ends.begin(), ends.end() - 1);
        for_entries(
            [&](std::size_t column, std::int32_t label) { seen[static_cast<std::size_t>(next[column]++)] = label; });
    }
    ObservedFeatures out;
    out.indptr.assign(1, 0);
    out.indptr.reserve(n_columns + 1);
    std::vector<std::size_t> counts(n_outputs, 0);
    std::vector<std::int32_t> met;
    for (std::size_t c = 0; c < n_columns; ++c) {
        met.clear();
        for (std::int64_t q = ends[c]; q < ends[c + 1]; ++q) {
            const std::int32_t label = seen[static_cast<std::size_t>(q)];
            if (counts[static_cast<std::size_t>(label)]++ == 0) met.push_back(label);
        }
        std::sort(met.begin(), met.end());
        for (const std::int32_t label : met) {
            if (counts[static_cast<std::size_t>(label)] >= least) out.outputs.push_back(label);
            counts[static_cast<std::size_t>(label)] = 0;
        }
        out.indptr.push_back(static_cast<std::int64_t>(out.outputs.size()));
    }
    return out;
}

}  // namespace dualfield
