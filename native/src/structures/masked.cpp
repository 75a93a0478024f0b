#include "dualfield/structures/masked.hpp"

#include <algorithm>
#include <stdexcept>

#include "dualfield/core/buffer.hpp"
#include "dualfield/core/layout.hpp"
#include "dualfield/structures/slope.hpp"

namespace dualfield {

// The scores of some examples with those of forbidden labels taken out, in memory that is reused.
class MaskedStructure::Masked {
  public:
    explicit Masked(const MaskedStructure& structure) : structure_(structure) {}

    const ScoreView& of(Examples examples, const ScoreView& view) {
        const std::size_t n = structure_.n_labels(), begin = structure_.first(examples.first),
                          end = structure_.first(examples.last);
        double* node = node_.require(std::max<std::size_t>((end - begin) * n, 1));
        for (std::size_t t = begin; t < end; ++t)
            for (std::size_t k = 0; k < n; ++k) {
                const std::size_t at = (t - begin) * n + k;
                node[at] = structure_.allows(t, k) ? view.own[0][at] : -kInfinity;
            }
        view_ = view;
        view_.own[0] = node;
        return view_;
    }

  private:
    const MaskedStructure& structure_;
    Buffer node_;
    ScoreView view_;
};

MaskedStructure::MaskedStructure(const Structure& inner, const std::uint8_t* sets, const std::int32_t* set_of)
    : inner_(inner), sets_(sets), set_of_(set_of) {
    parts_ = inner.parts();
    label_offsets_ = inner.label_offsets();
    if (parts_.tables[0].width != inner.n_labels() || !std::ranges::equal(parts_.tables[0].offsets, label_offsets_))
        throw std::invalid_argument(
            "only structures with a row of labels for each node can have some of them forbidden");
}

void MaskedStructure::log_partition(Examples examples, const ScoreView& view, std::size_t n_threads, double* out,
                                    Status* statuses) const {
    inner_.log_partition(examples, Masked(*this).of(examples, view), n_threads, out, statuses);
}

void MaskedStructure::marginals(Examples examples, const ScoreView& view, std::size_t n_threads, const PartSums& sums,
                                double* out, Status* statuses) const {
    inner_.marginals(examples, Masked(*this).of(examples, view), n_threads, sums, out, statuses);
}

void MaskedStructure::maximum(Examples examples, const ScoreView& view, std::size_t n_threads, double* out,
                              Status* statuses) const {
    inner_.maximum(examples, Masked(*this).of(examples, view), n_threads, out, statuses);
}

void MaskedStructure::argmax(Examples examples, const ScoreView& view, std::size_t n_threads, std::int32_t* labels,
                             Status* statuses) const {
    inner_.argmax(examples, Masked(*this).of(examples, view), n_threads, labels, statuses);
}

void MaskedStructure::bounded_argmax(Examples examples, const ScoreView& view, std::size_t n_threads,
                                     std::int32_t* labels, double* bounds, Status* statuses) const {
    inner_.bounded_argmax(examples, Masked(*this).of(examples, view), n_threads, labels, bounds, statuses);
}

void MaskedStructure::best_point(Examples examples, const ScoreView& view, std::size_t n_threads, const PartSums& sums,
                                 double* out, Status* statuses) const {
    inner_.best_point(examples, Masked(*this).of(examples, view), n_threads, sums, out, statuses);
}

void MaskedStructure::score(Examples examples, const ScoreView& view, std::size_t n_threads, const std::int32_t* labels,
                            double* out, Status* statuses) const {
    inner_.score(examples, Masked(*this).of(examples, view), n_threads, labels, out, statuses);
}

void MaskedStructure::list_parts(std::size_t example, const std::int32_t* labels, PartList& out) const {
    inner_.list_parts(example, labels, out);
}

void MaskedStructure::max_marginals(Examples examples, const ScoreView& view, std::size_t n_threads, double* own,
                                    Status* statuses) const {
    inner_.max_marginals(examples, Masked(*this).of(examples, view), n_threads, own, statuses);
}

void MaskedStructure::entropy(Examples examples, const ScoreView& view, std::size_t n_threads, double* out,
                              Status* statuses) const {
    inner_.entropy(examples, Masked(*this).of(examples, view), n_threads, out, statuses);
}

void MaskedStructure::sample(Examples examples, const ScoreView& view, std::size_t n_threads, std::size_t n_samples,
                             std::uint64_t seed, std::int32_t* labels, Status* statuses) const {
    inner_.sample(examples, Masked(*this).of(examples, view), n_threads, n_samples, seed, labels, statuses);
}

void MaskedStructure::k_best(Examples examples, const ScoreView& view, std::size_t n_threads, std::size_t k,
                             std::int32_t* labels, double* scores, Status* statuses) const {
    inner_.k_best(examples, Masked(*this).of(examples, view), n_threads, k, labels, scores, statuses);
}

std::string MaskedStructure::no_labelling(std::size_t example) const {
    return inner_.no_labelling(example);
}

std::string MaskedStructure::refusal(std::size_t example, const std::int32_t* labels) const {
    for (std::size_t t = 0; t < length(example); ++t)
        if (!allows(first(example) + t, static_cast<std::size_t>(labels[t])))
            return "that of node " + std::to_string(t) + " is not in the label set of its node.";
    return inner_.refusal(example, labels);
}

double MaskedStructure::score_parts(std::size_t example, const ScoreView& scores, const PartSpan& parts) const {
    return inner_.score_parts(example, scores, parts);
}

void MaskedStructure::add_cost(std::size_t example, const std::int32_t* truth, const double* cost, double scale,
                               double* own) const {
    inner_.add_cost(example, truth, cost, scale, own);
}

double MaskedStructure::expected_cost(std::size_t example, const std::int32_t* truth, const double* cost,
                                      const double* own) const {
    return inner_.expected_cost(example, truth, cost, own);
}

class MaskedStructure::OneExample final : public Block {
  public:
    explicit OneExample(const MaskedStructure& structure) : masked_(structure), inner_(structure.inner_.block()) {}

    Answer marginals(std::size_t example, const ScoreView& scores, const PartSums& sums) override {
        return inner_->marginals(example, masked_.of({example, example + 1}, scores), sums);
    }
    Answer best(std::size_t example, const ScoreView& scores, std::int32_t* labels) override {
        return inner_->best(example, masked_.of({example, example + 1}, scores), labels);
    }

  private:
    Masked masked_;
    std::unique_ptr<Block> inner_;
};

std::unique_ptr<Block> MaskedStructure::block() const {
    return std::make_unique<OneExample>(*this);
}

class MaskedStructure::OneSlope final : public Slope {
  public:
    OneSlope(const MaskedStructure& structure, std::unique_ptr<Slope> inner)
        : masked_(structure), inner_(std::move(inner)) {}

    Status begin(std::size_t example, const ScoreView& scores) override {
        return inner_->begin(example, masked_.of({example, example + 1}, scores));
    }
    double derive(const ScoreView& direction, const PartSums& change) override {
        return inner_->derive(direction, change);
    }

  private:
    Masked masked_;
    std::unique_ptr<Slope> inner_;
};

std::unique_ptr<Slope> MaskedStructure::slope() const {
    std::unique_ptr<Slope> inner = inner_.slope();
    return inner ? std::make_unique<OneSlope>(*this, std::move(inner)) : nullptr;
}

}  // namespace dualfield
