#include "dualfield/structures/structure.hpp"

#include <stdexcept>

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
        structure_.marginals({example, example + 1}, scores, 1, sums, &answer.value, &answer.status);
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

void Structure::k_best(Examples, const ScoreView&, std::size_t, std::size_t, std::int32_t*, double*, Status*) const {
    not_answered("k_best");
}

std::string Structure::refusal(std::size_t, const std::int32_t*) const {
    return {};
}

double Structure::score_parts(std::size_t, const ScoreView& scores, const PartSpan& parts) const {
    double total = 0.0;
    for (std::size_t g = 0; g < parts_.tables.size(); ++g) {
        if (!scores.own[g]) continue;
        const double* row = scores.own[g];
        for (const std::int32_t part : parts.own[g]) {
            if (part >= 0) total += row[part];
            row += parts_.tables[g].width;
        }
    }
    if (scores.shared)
        for (const std::int32_t part : parts.shared) total += scores.shared[part];
    return total;
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
