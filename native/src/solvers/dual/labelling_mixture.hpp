// The dual point of an example at temperature zero: a few labellings that share its mass.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "dualfield/core/layout.hpp"
#include "dualfield/objectives/problem.hpp"

namespace dualfield {

struct MixedLabelling {
    std::vector<std::int32_t> labels;
    double mass = 0.0;
    double score = 0.0;  // when it was last looked at
};

class LabellingMixture {
  public:
    explicit LabellingMixture(const std::int32_t* truth = nullptr, std::size_t length = 0) {
        if (truth) all_.push_back({{truth, truth + length}, 1.0, 0.0});
    }

    std::vector<MixedLabelling>& all() { return all_; }
    const std::vector<MixedLabelling>& all() const { return all_; }
    // The place of a labelling; one that is new has no mass.
    std::size_t find(const std::vector<std::int32_t>& labels) {
        for (std::size_t y = 0; y < all_.size(); ++y)
            if (all_[y].labels == labels) return y;
        all_.push_back({labels, 0.0, 0.0});
        return all_.size() - 1;
    }
    std::size_t best() const {
        std::size_t found = 0;
        for (std::size_t y = 1; y < all_.size(); ++y)
            if (all_[y].score > all_[found].score) found = y;
        return found;
    }
    // The worst that has mass.
    std::size_t worst() const {
        std::size_t found = all_.size();
        for (std::size_t y = 0; y < all_.size(); ++y)
            if (all_[y].mass > 0.0 && (found == all_.size() || all_[y].score < all_[found].score)) found = y;
        return found;
    }
    double mean() const {
        double sum = 0.0;
        for (const MixedLabelling& one : all_) sum += one.mass * one.score;
        return sum;
    }
    void move(std::size_t from, std::size_t to, double mass) {
        all_[from].mass = mass >= all_[from].mass ? 0.0 : all_[from].mass - mass;
        all_[to].mass += mass;
    }
    // Forgets what has no mass, and makes masses sum to one again.
    void tidy() {
        std::erase_if(all_, [](const MixedLabelling& one) { return !(one.mass > 0.0); });
        double sum = 0.0;
        for (const MixedLabelling& one : all_) sum += one.mass;
        for (MixedLabelling& one : all_) one.mass /= sum;
    }

  private:
    std::vector<MixedLabelling> all_;
};

}  // namespace dualfield
