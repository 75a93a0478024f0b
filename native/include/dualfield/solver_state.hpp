// The state of a solver between two passes, as named arrays: enough to go on later to the very same result.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <ranges>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace dualfield {

using StateArray = std::variant<std::vector<float>, std::vector<double>, std::vector<std::uint64_t>>;
template <class T>
concept Number = std::is_arithmetic_v<T>;
using SolverState = std::map<std::string, StateArray>;

// A solver lists what belongs to its state once, in a template that is given either of these two.
class StateWriter {
  public:
    template <std::ranges::range Values>
    void operator()(const char* name, const Values& values) {
        state_[name] = std::vector<std::ranges::range_value_t<Values>>(values.begin(), values.end());
    }
    template <Number T>
    void operator()(const char* name, T value) {
        state_[name] = std::vector<T>{value};
    }
    SolverState release() { return std::move(state_); }

  private:
    SolverState state_;
};

class StateReader {
  public:
    explicit StateReader(const SolverState& state) : state_(state) {}

    template <std::ranges::range Values>
    void operator()(const char* name, Values& values) const {
        const auto& found = find<std::ranges::range_value_t<Values>>(name, values.size());
        std::copy(found.begin(), found.end(), values.begin());
    }
    template <Number T>
    void operator()(const char* name, T& value) const {
        value = find<T>(name, 1).front();
    }

  private:
    template <class T>
    const std::vector<T>& find(const char* name, std::size_t size) const {
        const auto at = state_.find(name);
        const auto* found = at == state_.end() ? nullptr : std::get_if<std::vector<T>>(&at->second);
        if (!found || found->size() != size)
            throw std::invalid_argument(std::string("the state of the solver does not belong to this problem: ") +
                                        name + " is missing or has another size");
        return *found;
    }
    const SolverState& state_;
};

}  // namespace dualfield
