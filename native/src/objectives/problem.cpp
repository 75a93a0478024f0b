#include "dualfield/objectives/problem.hpp"

#include <stdexcept>
#include <string>

namespace dualfield {

Truth::Truth(const Problem& problem) : layout_(problem.structure->parts()), first_shared_{0} {
    if (problem.allowed) return;
    PartList parts;
    first_shared_.reserve(problem.n_examples() + 1);
    for (std::size_t i = 0; i < problem.n_examples(); ++i) {
        const std::string refused = problem.structure->refusal(i, problem.truth(i));
        if (!refused.empty())
            throw std::invalid_argument("The labels of example " + std::to_string(i) + " are not allowed: " + refused);
        problem.structure->list_parts(i, problem.truth(i), parts);
        for (std::size_t g = 0; g < layout_.tables.size(); ++g)
            own_[g].insert(own_[g].end(), parts.own[g].begin(), parts.own[g].end());
        shared_.insert(shared_.end(), parts.shared.begin(), parts.shared.end());
        first_shared_.push_back(static_cast<std::int64_t>(shared_.size()));
    }
}

PartSpan Truth::parts(std::size_t example) const {
    PartSpan found;
    for (std::size_t g = 0; g < layout_.tables.size(); ++g)
        found.own[g] = {own_[g].data() + layout_.tables[g].first(example), layout_.tables[g].n_rows(example)};
    const auto begin = static_cast<std::size_t>(first_shared_[example]);
    found.shared = {shared_.data() + begin, static_cast<std::size_t>(first_shared_[example + 1]) - begin};
    return found;
}

}  // namespace dualfield
