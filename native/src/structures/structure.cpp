#include "dualfield/structures/structure.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "dualfield/core/layout.hpp"
#include "dualfield/core/parallel.hpp"
#include "dualfield/structures/slope.hpp"
#include "partition.hpp"

namespace dualfield {
namespace {

[[noreturn]] void not_answered(const char* question) {
    throw std::invalid_argument(std::string(question) + " is not answered for this structure");
}

// Asks the structure itself, one example at a time.
class PlainBlock final : public Block {
  public:
    explicit PlainBlock(const Structure& structure) : structure_(structure) {}

    Answer marginals(std::size_t example, const ScoreView& scores, const PartSums& sums) override {
        Answer answer{0.0, Status::ok};
        PartSums wanted = sums;
        wanted.slack = &answer.slack;
        structure_.marginals({example, example + 1}, scores, 1, wanted, &answer.value, &answer.status);
        return answer;
    }
    Answer best(std::size_t example, const ScoreView& scores, std::int32_t* labels) override {
        Answer answer{0.0, Status::ok};
        structure_.argmax({example, example + 1}, scores, 1, labels, &answer.status);
        if (answer.status == Status::ok) {
            Status unused = Status::ok;
            structure_.score({example, example + 1}, scores, 1, labels, &answer.value, &unused);
        }
        return answer;
    }

  private:
    const Structure& structure_;
};

}  // namespace

void Structure::max_marginals(Examples, const ScoreView&, std::size_t, double*, Status*) const {
    not_answered("max_marginals");
}

void Structure::entropy(Examples, const ScoreView&, std::size_t, double*, Status*) const {
    not_answered("entropy");
}

void Structure::sample(Examples, const ScoreView&, std::size_t, std::size_t, std::uint64_t, std::int32_t*,
                       Status*) const {
    not_answered("sample");
}

void Structure::k_best(Examples examples, const ScoreView& view, std::size_t n_threads, std::size_t k,
                       std::int32_t* labels, double* scores, Status* statuses) const {
    if (parts_.tables[0].width != n_labels() || !std::ranges::equal(parts_.tables[0].offsets, label_offsets_))
        not_answered("k_best");
    const std::size_t stride = first(examples.last) - first(examples.first);
    n_threads = std::max<std::size_t>(1, std::min(n_threads, examples.size()));
    std::vector<std::unique_ptr<Block>> blocks;
    for (std::size_t i = 0; i < n_threads; ++i) blocks.push_back(block());
    parallel_for(examples.size(), n_threads, [&](std::size_t worker, std::size_t i) {
        const std::size_t example = examples.first + i, row = first(example) - first(examples.first);
        ScoreView own = view_of(example, examples.first, view);
        own.inverse_temperature = 1.0;
        std::vector<std::size_t> begins(length(example) + 1);
        for (std::size_t t = 0; t < begins.size(); ++t) begins[t] = t * n_labels();
        Partition partition(begins, own.own[0], [&](const double* node, std::int32_t* best) {
            ScoreView view_of_set = own;
            view_of_set.own[0] = node;
            return blocks[worker]->best(example, view_of_set, best);
        });
        statuses[i] = partition.begin();
        if (statuses[i] != Status::ok) return;
        for (std::size_t r = 0; r < k; ++r) {
            const double value = partition.next(labels + r * stride + row);
            scores[i * k + r] = value > -kInfinity ? view.inverse_temperature * value : value;
        }
    });
}

void Structure::indicate(Examples examples, const std::int32_t* labels, const PartSums& sums) const {
    PartList parts;
    std::array<double*, kMostTables> own = sums.own;
    double* shared = sums.shared;
    for (std::size_t i = examples.first; i < examples.last; ++i) {
        list_parts(i, labels + (first(i) - first(examples.first)), parts);
        for (std::size_t g = 0; g < parts_.tables.size(); ++g) {
            const std::size_t width = parts_.tables[g].width, n_rows = parts_.tables[g].n_rows(i);
            std::fill_n(own[g], n_rows * width, 0.0);
            for (std::size_t r = 0; r < parts.own[g].size(); ++r)
                if (parts.own[g][r] >= 0) own[g][r * width + static_cast<std::size_t>(parts.own[g][r])] += 1.0;
            own[g] += n_rows * width;
        }
        std::fill_n(shared, parts_.n_shared, 0.0);
        for (const std::int32_t part : parts.shared) shared[part] += 1.0;
        shared += parts_.n_shared;
    }
}

void Structure::bounded_argmax(Examples examples, const ScoreView& view, std::size_t n_threads, std::int32_t* labels,
                               double* bounds, Status* statuses) const {
    argmax(examples, view, n_threads, labels, statuses);
    maximum(examples, view, n_threads, bounds, statuses);
}

void Structure::best_point(Examples examples, const ScoreView& view, std::size_t n_threads, const PartSums& sums,
                           double* out, Status* statuses) const {
    std::vector<std::int32_t> labels(first(examples.last) - first(examples.first));
    argmax(examples, view, n_threads, labels.data(), statuses);
    if (sums.slack) std::fill_n(sums.slack, examples.size(), 0.0);
    // Labels of examples without an answer are undefined; nobody asks for their parts.
    if (!std::all_of(statuses, statuses + examples.size(), [](Status one) { return one == Status::ok; })) return;
    indicate(examples, labels.data(), sums);
    score(examples, view, n_threads, labels.data(), out, statuses);
}

std::string Structure::no_labelling(std::size_t) const {
    return {};
}

std::unique_ptr<Slope> Structure::slope() const {
    return nullptr;
}

void Structure::directional(Examples examples, const ScoreView& scores, const ScoreView& direction,
                            std::size_t n_threads, const PartSums& change, double* out, Status* statuses) const {
    n_threads = std::max<std::size_t>(1, std::min(n_threads, examples.size()));
    std::vector<std::unique_ptr<Slope>> slopes;
    for (std::size_t i = 0; i < n_threads; ++i) slopes.push_back(slope());
    if (!slopes[0]) not_answered("directional");
    parallel_for(examples.size(), n_threads, [&](std::size_t worker, std::size_t i) {
        const std::size_t example = examples.first + i;
        statuses[i] = slopes[worker]->begin(example, view_of(example, examples.first, scores));
        if (statuses[i] == Status::ok)
            out[i] = slopes[worker]->derive(view_of(example, examples.first, direction),
                                            sums_of(example, examples.first, change));
    });
}

void Slope::add_covariance(const PartLayout& layout, std::size_t example, double scale, double* out) {
    const std::size_t n = layout.n_own(example) + layout.n_shared;
    unit_.assign(n, 0.0);
    column_.resize(n);
    ScoreView direction;
    PartSums change;
    std::size_t at = 0;
    for (std::size_t g = 0; g < layout.tables.size(); ++g) {
        direction.own[g] = unit_.data() + at;
        change.own[g] = column_.data() + at;
        at += layout.tables[g].n_rows(example) * layout.tables[g].width;
    }
    direction.shared = unit_.data() + at;
    change.shared = column_.data() + at;
    for (std::size_t part = 0; part < n; ++part) {
        unit_[part] = 1.0;
        derive(direction, change);
        for (std::size_t other = 0; other < n; ++other) out[part * n + other] += scale * column_[other];
        unit_[part] = 0.0;
    }
}

std::string Structure::refusal(std::size_t, const std::int32_t*) const {
    return {};
}

ScoreView Structure::view_of(std::size_t example, std::size_t from, const ScoreView& view) const {
    ScoreView own = view;
    for (std::size_t g = 0; g < parts_.tables.size(); ++g) {
        const OwnTable& table = parts_.tables[g];
        if (own.own[g]) own.own[g] += (table.first(example) - table.first(from)) * table.width;
    }
    return own;
}

PartSums Structure::sums_of(std::size_t example, std::size_t from, const PartSums& sums) const {
    PartSums own = sums;
    for (std::size_t g = 0; g < parts_.tables.size(); ++g) {
        const OwnTable& table = parts_.tables[g];
        if (own.own[g]) own.own[g] += (table.first(example) - table.first(from)) * table.width;
    }
    if (own.shared) own.shared += (example - from) * parts_.n_shared;
    return own;
}

void Structure::score(Examples examples, const ScoreView& view, std::size_t, const std::int32_t* labels, double* out,
                      Status* statuses) const {
    PartList parts;
    for (std::size_t i = 0; i < examples.size(); ++i) {
        const std::size_t example = examples.first + i;
        const std::int32_t* own = labels + (first(example) - first(examples.first));
        list_parts(example, own, parts);
        const PartSpan found{{parts.own[0], parts.own[1], parts.own[2]}, parts.shared};
        out[i] = refusal(example, own).empty()
                     ? view.inverse_temperature * score_parts(example, view_of(example, examples.first, view), found)
                     : -kInfinity;
        statuses[i] = out[i] < kInfinity ? Status::ok : Status::bad_number;
    }
}

double Structure::score_parts(std::size_t, const ScoreView& scores, const PartSpan& parts) const {
    // What rounding takes from the sum is added at the end (Neumaier 1974): labellings of large examples are compared.
    double total = 0.0, lost = 0.0;
    const auto add = [&](double score) {
        const double sum = total + score;
        lost += std::abs(total) >= std::abs(score) ? (total - sum) + score : (score - sum) + total;
        total = sum;
    };
    for (std::size_t g = 0; g < parts_.tables.size(); ++g) {
        if (!scores.own[g]) continue;
        const double* row = scores.own[g];
        for (const std::int32_t part : parts.own[g]) {
            if (part >= 0) add(row[part]);
            row += parts_.tables[g].width;
        }
    }
    if (scores.shared)
        for (const std::int32_t part : parts.shared) add(scores.shared[part]);
    return std::abs(total) < kInfinity ? total + lost : total;
}

void Structure::add_cost(std::size_t example, const std::int32_t* truth, const double* cost, double scale,
                         double* own) const {
    const std::size_t width = parts_.tables[0].width;
    for (std::size_t t = 0; t < length(example); ++t)
        for (std::size_t k = 0; k < width; ++k)
            own[t * width + k] += cost[static_cast<std::size_t>(truth[t]) * width + k] / scale;
}

double Structure::expected_cost(std::size_t example, const std::int32_t* truth, const double* cost,
                                const double* own) const {
    const std::size_t width = parts_.tables[0].width;
    double total = 0.0;
    for (std::size_t t = 0; t < length(example); ++t)
        for (std::size_t k = 0; k < width; ++k)
            total += cost[static_cast<std::size_t>(truth[t]) * width + k] * own[t * width + k];
    return total;
}

std::unique_ptr<Block> Structure::block() const {
    return std::make_unique<PlainBlock>(*this);
}

}  // namespace dualfield
